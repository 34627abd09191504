"""`keras-transformer rank`: lines in the order of their scores."""

import json

import pytest
from typer.testing import CliRunner

from keras_transformer import TextScorer, cli, load_pretrained
from tests.tasks.test_labels import write_text_model

QUERIES = ["a good film"]
TEXTS = ["the film", "the bad film the film", "the good bad film"]


def test_lines_in_order(tmp_path):
    source = write_text_model(tmp_path / "source", "Bert", None, "x")
    load_pretrained(source).save(tmp_path / "ours")
    scorer = TextScorer.load(tmp_path / "ours")

    def run(*arguments, stdin=None):
        stdin = "\n".join(TEXTS) if stdin is None else stdin
        result = CliRunner().invoke(cli.app, [str(x) for x in arguments], input=stdin)
        assert result.exit_code == 0, result.output
        return result.stdout

    found = scorer.rank(QUERIES[0], TEXTS)
    lines = [f"{x.score:.6g}\t{TEXTS[x.index]}" for x in found]
    assert run("rank", tmp_path / "ours", QUERIES[0]).splitlines() == lines
    (record,) = run("rank", tmp_path / "ours", QUERIES[0], "--json", "-k", 1).splitlines()
    best = {"index": found[0].index, "text": TEXTS[found[0].index]}
    assert json.loads(record) == best | {"score": pytest.approx(found[0].score)}
    (line,) = run("classify", tmp_path / "ours", stdin=f"{QUERIES[0]}\t{TEXTS[0]}\n").splitlines()
    assert line == f"x\t{scorer.score(QUERIES[:1], TEXTS[:1])[0]:.4f}"
    card = (tmp_path / "ours" / "README.md").read_text()
    assert "text-ranking" in card and "keras-transformer rank ours" in card
    shown = run("info", tmp_path / "ours")
    assert "TextScorer and the command rank" in shown
