"""Runs of image classification, from files to a folder."""

import gzip

import numpy as np
import pytest

from keras_transformer import ImageClassifier
from keras_transformer.data.images import read_idx
from keras_transformer.evaluation.assess import read_metrics
from keras_transformer.training import image_classification
from tests.training.senses import write_digits


def test_images(rng, tmp_path):
    write_digits(tmp_path / "mnist", rng)
    options = dict(data_folder=tmp_path, output=tmp_path / "run", epochs=1, batch_size=8)
    image_classification.train(**options, patch_size=14, d_model=8, num_layers=1, num_heads=2)
    metrics = read_metrics(tmp_path / "run")
    assert 0 <= metrics["test"]["accuracy"] <= 1 and metrics["training"]["epochs"] == 1
    classifier = ImageClassifier.load(tmp_path / "run")
    images, labels = (
        read_idx(tmp_path / "mnist" / f"t10k-{kind}-ubyte.gz")
        for kind in ("images-idx3", "labels-idx1")
    )
    found = classifier.classify(list(images))
    right = [own[0].label == str(x) for own, x in zip(found, labels, strict=True)]
    assert np.mean(right) == pytest.approx(metrics["test"]["accuracy"])


def test_unknown_images():
    with pytest.raises(ValueError, match=r"dataset must be one of \('cifar10', 'mnist'\), got 'x'"):
        image_classification.train("x")


def test_images_that_do_not_fit(rng, tmp_path):
    write_digits(tmp_path / "mnist", rng)
    options = dict(data_folder=tmp_path, output=tmp_path / "run", patch_size=14)
    with pytest.raises(ValueError, match="batch_size must be at most 40, .*, got 64"):
        image_classification.train(**options)
    data = bytes([0, 0, 8, 3]) + np.array((12, 28, 24), ">i4").tobytes() + bytes(12 * 28 * 24)
    (tmp_path / "mnist" / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(data))
    with pytest.raises(ValueError, match=r"test image must be \(28, 28, 1\), got \(28, 24, 1\)"):
        image_classification.train(**options)
