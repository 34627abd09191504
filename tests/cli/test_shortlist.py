"""`keras-transformer shortlist`: a file in the folder, and translations with it."""

import pytest

from keras_transformer import Translator

pytestmark = pytest.mark.once("files and texts: no tensor differs")


TEXTS = ["one two three", "three two one", "two", "one"]


def test_a_shortlist(run, failure, translator, tmp_path):
    text = tmp_path / "text.en"
    translator.save(tmp_path / "run")
    text.write_text("\n".join(TEXTS))
    arguments = "shortlist", tmp_path / "run", "--source", text, "--target", text
    printed = run(*arguments, "--per-piece", 2, "--frequent", 3, "--most-pairs", 3).stdout
    assert printed.strip() == str(tmp_path / "run" / "shortlist.safetensors")
    loaded = Translator.load(tmp_path / "run")
    assert loaded.shortlist.candidates.shape[1] == 2 and len(loaded.shortlist.frequent) == 3
    (line,) = run("translate", tmp_path / "run", "--shortlist", stdin=TEXTS[0]).stdout.splitlines()
    assert [line] == loaded.translate(TEXTS[:1], shortlist=True)

    empty = tmp_path / "empty"
    empty.write_text("")
    message = failure(run("shortlist", tmp_path / "run", "--source", empty, status=2))
    assert "empty" in message
    message = failure(run("shortlist", tmp_path, "--source", text, status=2))
    assert "is not a saved translator" in message
