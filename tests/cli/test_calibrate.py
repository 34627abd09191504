"""`keras-transformer calibrate`: the file in the translator's folder, and what is printed."""

import itertools
import json
import shutil

import pytest

from keras_transformer.translate.quality_estimation import QualityEstimator

SEARCH = ["--max-extra-length", 4, "--beam-size", 1]


@pytest.fixture
def files(folder, tmp_path):
    """A copy of the translator, and 125 pairs."""
    lines = [" ".join(x) for x in itertools.product(("one", "two", "three"), repeat=4)]
    (tmp_path / "dev.en").write_text("\n".join(["", *lines, *lines[:44]]))
    (tmp_path / "dev.de").write_text("\n".join(["", *lines[::-1], *lines[:44]]))
    return shutil.copytree(folder, tmp_path / "own"), tmp_path / "dev.en", tmp_path / "dev.de"


def test_a_calibration_of_the_search(run, failure, files, tmp_path):
    own, source, reference = files
    result = run("calibrate", own, "--source", source, "--reference", reference, *SEARCH)
    assert f"{own}/quality.json" in result.stdout.replace("\\", "/")
    for name in ("sentences  125", "pearson", "spearman"):
        assert name in result.stdout
    assert json.loads((own / "quality.json").read_text())["search"]["beam_size"] == 1
    assert QualityEstimator.read(own, max_extra_length=4, beam_size=1).sentences == 125


def test_too_few_pairs_leave_nothing(run, failure, files, tmp_path):
    own, *_ = files
    (tmp_path / "few.tsv").write_text("one\ttwo\n" * 9)
    found = failure(run("calibrate", own, "--source", tmp_path / "few.tsv", *SEARCH, status=2))
    assert "pairs must be at least 100 that fit the model" in found and "got 9" in found
    assert not (own / "quality.json").exists()
    found = failure(run("calibrate", tmp_path, "--source", tmp_path / "few.tsv", status=2))
    assert "is not a saved translator" in found
