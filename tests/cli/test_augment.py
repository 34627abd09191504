"""Commands that make training text with translators."""

import pytest

from keras_transformer.translate.translator import Translator

LINES = ["one two", "", "three", "two two one"]


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("".join(line + "\n" for line in LINES))
    return path


def rows(path):
    return [line.split("\t") for line in path.read_text("utf-8").splitlines()]


def test_distill(run, failure, translator, folder, text, tmp_path):
    given = ["--input", text, "--max-extra-length", 4]
    run("distill", folder, *given, "--output", tmp_path / "pairs.tsv", "--chunk-size", 2)
    best = dict(zip(LINES, translator.translate(LINES, max_extra_length=4), strict=True))
    expected = [[x, " ".join(y.split())] for x, y in best.items() if y.strip()]
    assert rows(tmp_path / "pairs.tsv") == expected and expected
    result = run("distill", folder, *given, "--output", tmp_path / "pairs.tsv", status=2)
    assert "pairs.tsv must not exist" in failure(result)
    output = tmp_path / "closest.tsv"
    both = ["--reference", text, "--num-hypotheses", 3, "--ensemble", folder]
    run("distill", folder, *given, *both, "--output", output)
    assert len(rows(output)) <= 3


def test_a_stopped_command_goes_on(run, folder, text, tmp_path, monkeypatch):
    given = ["--input", text, "--max-extra-length", 4, "--chunk-size", 1, "--seed", 5]
    run("back-translate", folder, *given, "--output", tmp_path / "whole.tsv")
    assert all(row[0].startswith("<BT> ") for row in rows(tmp_path / "whole.tsv"))
    output, sample = tmp_path / "pairs.tsv", Translator.sample

    def stopped(self, texts, **options):
        if "three" in texts:
            raise ValueError("out of order")
        return sample(self, texts, **options)

    monkeypatch.setattr(Translator, "sample", stopped)
    run("back-translate", folder, *given, "--output", output, status=2)
    monkeypatch.setattr(Translator, "sample", sample)
    result = run("back-translate", folder, *given, "--output", output)
    assert "resumed after 2 lines" in result.stderr
    assert output.read_text() == (tmp_path / "whole.tsv").read_text()


def test_text_of_the_other_language(run, failure, folder, text, tmp_path):
    other = text.rename(tmp_path / "text.de")
    for command in ("distill", "back-translate"):
        arguments = ["--input", other, "--output", tmp_path / "pairs.tsv"]
        message = failure(run(command, folder, *arguments, status=2))
        assert "--input must be text in en, which the translator reads" in message
        assert not (tmp_path / "pairs.tsv").exists()
