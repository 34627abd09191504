"""`keras-transformer embed`: vectors as lines, as JSON and as an array; similar lines."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from keras_transformer import TextEmbedder, cli
from keras_transformer.models import BERT, BERTConfig
from keras_transformer.models.sentence import Embedding
from keras_transformer.text.text_tokenizer import TextTokenizer

TEXTS = ["a good film", "", "bad films"]
STDIN = "\n".join(TEXTS) + "\n"


def run(*arguments, stdin="", status=0):
    result = CliRunner().invoke(cli.app, [str(a) for a in arguments], input=stdin)
    assert result.exit_code == status, result.output
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoder")
    tokenizer = TextTokenizer.train(["a good film", "bad films"], "wordpiece", 40)
    sizes = dict(d_model=8, num_layers=1, num_heads=2, max_length=16)
    TextEmbedder(BERT(BERTConfig(tokenizer.vocab_size, **sizes)), tokenizer).save(folder)
    return folder


def test_vectors(folder, tmp_path):
    expected = TextEmbedder.load(folder).embed(TEXTS)
    lines = run("embed", folder, stdin=STDIN).stdout.splitlines()
    found = np.array([line.split(" ") for line in lines], "float32")
    np.testing.assert_allclose(found, expected, atol=1e-6)
    records = run("embed", folder, "--json", stdin=STDIN).stdout.splitlines()
    records = [json.loads(line) for line in records]
    assert [x["text"] for x in records] == TEXTS
    np.testing.assert_allclose([x["embedding"] for x in records], expected, atol=1e-6)
    run("embed", folder, "-o", tmp_path / "x.npy", stdin=STDIN)
    array = np.load(tmp_path / "x.npy")
    assert array.dtype == np.float32
    np.testing.assert_allclose(array, expected, atol=1e-6)
    run("embed", folder, "-o", tmp_path / "x.npy", stdin="")
    assert np.load(tmp_path / "x.npy").shape == (0, 8)
    first = run("embed", folder, "--pooling", "cls", stdin=STDIN).stdout.splitlines()[0]
    cls = TextEmbedder.load(folder, pooling="cls").embed(TEXTS[:1])[0]
    np.testing.assert_allclose(np.array(first.split(), "float32"), cls, atol=1e-6)
    short = run("embed", folder, "--size", 3, stdin=STDIN).stdout.splitlines()[0]
    cut = expected[0, :3] / np.linalg.norm(expected[0, :3])
    np.testing.assert_allclose(np.array(short.split(), "float32"), cut, atol=1e-6)


def test_similar_lines(folder, tmp_path):
    file = tmp_path / "films.txt"
    file.write_text("bad films\na bad film\na good film\n")
    arguments = "embed", folder, "--similar-to", file
    lines = run(*arguments, stdin=STDIN).stdout.splitlines()
    candidates = sorted(file.read_text().splitlines())
    assert [sorted(line.split("\t")) for line in lines] == [candidates] * len(TEXTS)
    assert lines[0].split("\t")[0] == TEXTS[0] and lines[2].split("\t")[0] == TEXTS[2]
    records = run(*arguments, "--json", "-k", 1, stdin=STDIN).stdout.splitlines()
    record = json.loads(records[2])
    assert record["text"] == TEXTS[2] and len(record["similar"]) == 1
    assert record["similar"][0] == {"text": "bad films", "score": pytest.approx(1)}


def test_prompts(folder, tmp_path):
    known = TextEmbedder.load(folder)
    own = Embedding(
        prompts={"query": "a film ", "document": "bad "}, default_prompt_name="document"
    )
    tool = TextEmbedder(known.model, known.tokenizer, embedding=own)
    tool.save(tmp_path / "prompted")

    def vectors(*arguments):
        lines = run("embed", tmp_path / "prompted", *arguments, stdin=STDIN).stdout.splitlines()
        return np.array([line.split(" ") for line in lines], "float32")

    for arguments, options in (
        ((), {}),
        (("--prompt-name", "query"), {"prompt_name": "query"}),
        (("--prompt", "the "), {"prompt": "the "}),
        (("--prompt", ""), {"prompt": ""}),
    ):
        np.testing.assert_allclose(vectors(*arguments), tool.embed(TEXTS, **options), atol=1e-5)
    (tmp_path / "x.txt").write_text(STDIN)
    arguments = ("embed", tmp_path / "prompted", "--similar-to", tmp_path / "x.txt", "--json")
    records = map(json.loads, run(*arguments, "-k", 3, stdin=STDIN).stdout.splitlines())
    for record, own in zip(records, tool.similar(TEXTS, TEXTS, 3), strict=True):
        scores = [x["score"] for x in record["similar"]]
        assert scores == pytest.approx([x.score for x in own], abs=1e-5)
    shown = run("info", tmp_path / "prompted").stdout
    assert "default_prompt_name" in shown


def test_bad_input_gets_one_line(folder, tmp_path):
    (tmp_path / "empty.txt").write_text("")
    for arguments, stdin, message in (
        (("--json", "-o", "x.npy"), "", "x.npy holds vectors only: --json and --similar-to"),
        (("--similar-to", tmp_path / "empty.txt"), "", "empty.txt must have at least one line"),
        (("--similar-to", tmp_path / "none.txt"), "", "none.txt"),
        (("--pooling", "sum"), "", "pooling must be one of ('mean', 'cls', 'max', "),
        (("--size", "9"), "", "size must be at most 8, the size of the vectors, got 9"),
        (
            ("--prompt-name", "x"),
            "a\n",
            "prompt_name must be one of none: the model has no prompts",
        ),
        (("--similar-to", "x.txt", "--prompt", "x"), "", "--prompt is no option of it"),
        (("--strict",), "a " * 30, "at most 16 tokens each"),
    ):
        (line,) = run("embed", folder, *arguments, stdin=stdin, status=2).stderr.splitlines()
        assert message in line
