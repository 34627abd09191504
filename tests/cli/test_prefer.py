"""Command that writes the preferences of a metric."""

import pytest

from keras_transformer.data.preferences import read_preferences
from tests.tasks.small_metric import small_metric

pytestmark = pytest.mark.once("the metric and the translator have their own tests")


def test_preferences_for_training(run, folder, failure, tmp_path):
    small_metric("kiwi").save(tmp_path / "kiwi")
    (tmp_path / "in.en").write_text("one two\n\nfour five six\n")
    paths = ["--metric", tmp_path / "kiwi", "-i", tmp_path / "in.en", "-o", tmp_path / "out.jsonl"]
    options = ["--candidates", 4, "--max-length", 5]
    result = run("prefer", folder, *paths, *options)
    pairs = read_preferences(tmp_path / "out.jsonl")
    assert [x.prompt for x in pairs] == ["one two", "four five six"]
    assert "2 preferences of 3 texts" in result.stderr
    for pair in pairs:
        texts = [pair.prompt] * 2, [pair.chosen, pair.rejected]
        best, worst = small_metric("kiwi").score(*texts)
        assert best > worst
    for text in ("", "\n \n"):
        (tmp_path / "empty.en").write_text(text)
        result = run("prefer", folder, *paths, "-i", tmp_path / "empty.en", status=2)
        assert "empty.en must have at least one line of text, got none" in failure(result)
    result = run("prefer", folder, *paths, "--metric", folder, status=2)
    assert "is not a saved learned metric but a translator" in failure(result)
    (tmp_path / "refs.de").write_text("x\n")
    result = run("prefer", folder, *paths, "--reference", tmp_path / "refs.de", status=2)
    assert "--reference must have as many lines as --input, 3, got 1" in failure(result)
    result = run("prefer", folder, *paths[:-1], tmp_path / "in.en", status=2)
    assert "--output must be another file than --input" in failure(result)
