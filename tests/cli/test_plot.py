"""`keras-transformer plot`: each picture as a file, and one line for what was wrong."""

import json
import shutil
import struct
import warnings
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from keras_transformer import cli
from keras_transformer.search import TRANSLATE, Search
from keras_transformer.text import SentencePieceTokenizer
from keras_transformer.translate.quality_estimation import QualityEstimator
from keras_transformer.translate.translator import Translator

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def folder(tiny_transformer, tmp_path_factory):
    texts = ["one two three", "three two one", "two"]
    tokenizer = SentencePieceTokenizer.train(texts, texts, vocab_size=24, byte_fallback=False)
    size = tokenizer.source_vocab_size
    model = tiny_transformer(source_vocab_size=size, target_vocab_size=size, max_length=40)
    folder = tmp_path_factory.mktemp("plotting")
    Translator(model, tokenizer, "en", "de").save(folder)
    logs = [dict(loss=3.0, val_loss=4.0, seconds=1.0), dict(loss=2.0, val_loss=3.0, seconds=1.0)]
    (folder / "checkpoints" / "epoch-0002").mkdir(parents=True)
    state = folder / "checkpoints" / "epoch-0002" / "state.json"
    state.write_text(json.dumps({"run": {}, "history": logs}))
    (folder / "test.en").write_text("one two\nthree\n\ntwo two one\n")
    (folder / "test.de").write_text("two one\nthree\n\none two two\n")
    return folder


@pytest.fixture
def run(monkeypatch, folder):
    """`run(kind, *arguments, status=0)`; FOLDER stands for the translator's."""
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)

    def call(*arguments, status=0):
        arguments = [str(a).replace("FOLDER", str(folder)) for a in arguments]
        result = CliRunner().invoke(cli.app, ["plot", *arguments])
        assert result.exit_code == status, result.output
        return result

    return call


def size_of(path):
    """Return the width and height of a whole picture."""
    content = path.read_bytes()
    if path.suffix == ".svg":
        assert ElementTree.fromstring(content).tag.endswith("svg")
        return None
    assert content.startswith(b"\x89PNG\r\n\x1a\n") and content.rstrip().endswith(b"IEND\xaeB`\x82")
    return struct.unpack(">II", content[16:24])


TEST_SET = ["--source", "FOLDER/test.en", "--reference", "FOLDER/test.de", "--beam-size", 1]
KINDS = {
    "attention": ["attention", "FOLDER", "one two", "--target", "two"],
    "attention-head": [
        "attention",
        "FOLDER",
        "one two",
        "--target",
        "two",
        "--layer",
        1,
        "--head",
        0,
    ],
    "attention-lines": [
        *("attention", "FOLDER", "one", "--target", "two"),
        *("--lines", "--part", "decoder", "--word", 0),
    ],
    "positions": ["positions", "--d-model", 8, "--length", 5],
    "schedule": ["schedule", "--warmup-steps", 10],
    "schedule-linear": ["schedule", "--peak", 0.1, "--warmup-steps", 5, "--total-steps", 50],
    "history": ["history", "FOLDER"],
    "lengths": ["lengths", "FOLDER", *TEST_SET],
    "reliability": ["reliability", "FOLDER", *TEST_SET],
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_of_each(kind, run, tmp_path):
    path = tmp_path / f"{kind}.{'svg' if kind in ('history', 'schedule') else 'png'}"
    result = run(*KINDS[kind], "--output", path)
    assert result.stdout == f"{path}\n"
    size = size_of(path)
    assert size is None or min(size) > 200
    assert [x.name for x in tmp_path.iterdir()] == [path.name]


def test_reliability_of_a_calibration(run, folder, tmp_path):
    own = shutil.copytree(folder, tmp_path / "own")
    search = Search(beam_size=1)
    options = {name: getattr(search, name) for name in TRANSLATE}
    QualityEstimator((-9.0, 0.0), (0.5, 0.5), 100, "", options, ("en", "de")).save(own)
    path = tmp_path / "a.svg"
    run("reliability", own, *TEST_SET, "--calibrated", "--bins", 2, "-o", path)
    assert size_of(path) is None
    other = ["--calibrated", "--length-penalty", 1, "-o", path]
    warning, line = run("reliability", own, *TEST_SET, *other, status=2).stderr.splitlines()
    assert "quality.json is of another search (length_penalty)" in warning
    assert "--calibrated must be left out" in line


@pytest.mark.parametrize(
    "arguments,message",
    [
        (["schedule", "-o", "x.jpg"], "--output must be a .png or .svg file"),
        (["attention", "FOLDER", " ", "-o", "x.png"], "source must be a text"),
        (
            ["attention", "FOLDER", "one", "--target", "two", "--layer", 7, "-o", "x.png"],
            "some of 0 to 1",
        ),
        (["attention", "FOLDER", "one", "--word", 0, "-o", "x.png"], "given with --lines"),
        (
            ["attention", "FOLDER", "one", "--lines", "--layer", 0, "--layer", 1, "-o", "x.png"],
            "--layer must be one",
        ),
        (["history", "FOLDER/checkpoints", "-o", "x.png"], "with its checkpoints"),
        (["history", "FOLDER/none.csv", "-o", "x.png"], "No such file"),
        (["reliability", "FOLDER", *TEST_SET, "--calibrated", "-o", "x.png"], "has none of this"),
    ],
    ids=["suffix", "blank", "layer", "word", "layers", "history", "no file", "no calibration"],
)
def test_what_was_wrong(arguments, message, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    [line] = run(*arguments, status=2).stderr.splitlines()
    assert line.startswith("keras-transformer: ") and message in line
    assert not list(tmp_path.iterdir())


def test_help_has_examples(run):
    for kind in ("attention", "positions", "schedule", "history", "lengths", "reliability"):
        assert f"keras-transformer plot {kind}" in run(kind, "--help").stdout
