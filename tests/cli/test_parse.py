"""`keras-transformer parse`: a tree for each line."""

import json

from tests.tasks.small_parser import SENTENCES, make_parser


def test_trees(run, failure, randomize, tmp_path):
    parser = make_parser(randomize)
    parser.save(tmp_path)
    first, last = parser.parse([SENTENCES[0], SENTENCES[1]])
    stdin = f"{SENTENCES[0]}\n\n{SENTENCES[1]}\n"
    assert run("parse", tmp_path, stdin=stdin).stdout.split("\n") == [str(first), "", str(last), ""]
    (greedy,) = parser.parse([SENTENCES[0]], beam_size=1)
    (tmp_path / "in.txt").write_text(SENTENCES[0])
    files = ["-i", tmp_path / "in.txt", "-o", tmp_path / "x"]
    run("parse", tmp_path, "--json", "--beam-size", 1, *files)
    record = json.loads((tmp_path / "x").read_text())
    assert record == {"text": SENTENCES[0], "tree": str(greedy)}
    long = run("parse", tmp_path, "--strict", stdin="a " * 50, status=2)
    assert "sentences must have at most 36 words each" in failure(long)
    message = "is not a saved translator but a parser: use Parser and the command parse"
    assert message in failure(run("translate", tmp_path, stdin="a", status=2))
