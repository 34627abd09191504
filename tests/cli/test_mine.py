"""Command that finds translations in two files."""

import numpy as np
import pytest

pytestmark = pytest.mark.once("the vectors are made up")

WORDS = {"dog": "Hund", "cat": "Katze", "bird": "Vogel", "horse": "Pferd", "cow": "Kuh"}


class Embedder:
    """Has the same random vector for a word and its translation."""

    @classmethod
    def load(cls, folder, precision=None):
        return cls()

    def embed(self, texts, tokens_per_batch=8192):
        vectors = np.random.default_rng(0).normal(size=(len(WORDS), 8)) + 1
        places = {x: i % len(WORDS) for i, x in enumerate([*WORDS, *WORDS.values()])}
        return vectors[[places[text] for text in texts]].astype("float32")


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.setattr("keras_transformer.tasks.text_embedder.TextEmbedder", Embedder)
    (tmp_path / "a.en").write_text("dog\n\ncat\nbird\n dog\ncow\n")
    (tmp_path / "a.de").write_text("Pferd\nKatze\nHund\nKatze\nVogel\n")
    return tmp_path


def options(folder, output="pairs.tsv", target="a.de"):
    sides = ["--source", folder / "a.en", "--target", folder / target]
    return ["mine", "embedder", *sides, "-o", folder / output]


def test_pairs_best_first(run, files):
    result = run(*options(files), "--neighbours", 2)
    rows = [line.split("\t") for line in (files / "pairs.tsv").read_text().splitlines()]
    margins = [float(row[0]) for row in rows]
    expected = {(x, WORDS[x]) for x in ("dog", "cat", "bird")}
    assert {(x, y) for _, x, y in rows[:3]} == expected
    assert margins == sorted(margins, reverse=True) and min(margins) >= 1
    assert f"{len(rows)} pairs of 4 and 4 sentences" in result.stderr
    assert sorted(x.name for x in files.iterdir()) == ["a.de", "a.en", "pairs.tsv"]
    run(*options(files), "--min-margin", 99)
    assert (files / "pairs.tsv").read_text() == ""


def test_bad_files(run, failure, files):
    result = run(*options(files, output="a.de"), status=2)
    assert "--output must be another file than --target" in failure(result)
    (files / "empty.txt").write_text("\n")
    result = run(*options(files, target="empty.txt"), status=2)
    assert "empty.txt must have at least one line of text" in failure(result)
    assert not (files / "pairs.tsv").exists()


def test_a_folder_of_another_kind(run, failure, folder, tmp_path):
    for name in ("a.en", "a.de"):
        (tmp_path / name).write_text("dog\n")
    command, _, *others = options(tmp_path)
    result = run(command, folder, *others, status=2)
    assert "is not a saved text encoder but a translator" in failure(result)
    result = run(command, tmp_path / "none", *others, status=2)
    assert "none is not a saved text encoder: there is no such folder" in failure(result)
