"""`keras-transformer report`: one file, or one line for what was wrong."""

import shutil

import pytest

SEARCH = ["--max-extra-length", 4, "--beam-size", 1]


@pytest.fixture
def files(folder, tmp_path):
    (tmp_path / "test.en").write_text("one two\n\nthree <script>\n")
    (tmp_path / "test.de").write_text("two\n\none two three\n")
    sides = ["--source", tmp_path / "test.en", "--reference", tmp_path / "test.de"]
    return ["report", shutil.copytree(folder, tmp_path / "own"), *sides, *SEARCH]


def test_a_report(run, files, tmp_path):
    path = tmp_path / "new" / "report.html"
    baseline = ["--baseline", tmp_path / "test.de", "--worst", 1]
    assert run(*files, *baseline, "-o", path).stdout == f"{path}\n"
    text = path.read_text("utf-8")
    assert text.startswith("<!doctype html>") and "own on test.en" in text
    assert text.count("<article><h3>Sentence") == 1 + 2  # the worst, and two below the baseline
    assert "<script" not in text and "Pearson correlation" not in text
    assert [x.name for x in path.parent.iterdir()] == ["report.html"]


def test_what_was_wrong_leaves_the_old_file(run, failure, files, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    (tmp_path / "short.de").write_text("one\n")
    cases = {
        "--output must be an .html file": [*files, "-o", tmp_path / "a.txt"],
        "baseline must be 3 texts": [*files, "--baseline", tmp_path / "short.de", "-o", path],
        "is not a saved translator": ["report", tmp_path, *files[2:], "-o", path],
    }
    for message, arguments in cases.items():
        assert message in failure(run(*arguments, status=2))
    (files[1] / "quality.json").write_text("{")
    assert "quality.json is not valid JSON" in failure(run(*files, "-o", path, status=2))
    assert path.read_text() == "old"
