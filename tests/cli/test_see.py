"""`keras-transformer see`: a line for each image file, a class or a vector."""

import json

import numpy as np
import pytest
from PIL import Image

from keras_transformer import ImageClassifier, ImageEmbedder
from keras_transformer.models import ViT, ViTConfig
from keras_transformer.tasks.image_format import ImageFormat


@pytest.fixture(scope="module")
def classifier(randomize):
    sizes = dict(image_size=4, patch_size=4, num_channels=1, d_model=8, num_layers=1, num_heads=2)
    vit = randomize(ViT(ViTConfig(2, **sizes)))
    return ImageClassifier(vit, ["no", "yes"], ImageFormat([0.1], [0.3]))


def test_images(run, failure, classifier, tmp_path):
    classifier.save(tmp_path / "vit")
    generator, files = np.random.default_rng(0), [tmp_path / f"{i}.png" for i in range(3)]
    for file in files:
        Image.fromarray(generator.integers(0, 256, (5, 6)).astype("uint8")).save(file)
    found = classifier.classify(files)
    lines = run("see", tmp_path / "vit", *files, "--batch-size", 2).stdout.splitlines()
    for line, file, labels in zip(lines, files, found, strict=True):
        assert line == f"{labels[0].label}\t{labels[0].probability:.4f}\t{file}"
    record = json.loads(run("see", tmp_path / "vit", "--json", files[0]).stdout)
    assert record["image"] == str(files[0])
    assert [x["label"] for x in record["labels"]] == [x.label for x in found[0]]

    Image.fromarray(np.zeros((5, 6, 3), "uint8")).save(files[0])
    for arguments, message in (
        ((tmp_path / "vit", files[0]), "must be L (grey): the model was trained on 1 channel"),
        ((tmp_path / "vit", tmp_path / "none.png"), "none.png"),
        ((tmp_path / "vit", tmp_path / "vit" / "config.json"), "cannot be read as an image"),
        ((tmp_path, files[1]), "is not a saved image model: it has no config.json"),
    ):
        assert message in failure(run("see", *arguments, status=2))
    message = "not a saved text classifier but an image classifier: use ImageClassifier and the"
    assert message in failure(run("classify", tmp_path / "vit", status=2))


def test_vectors(run, classifier, tmp_path):
    embedder = ImageEmbedder(classifier.model, classifier.image_format)
    embedder.save(tmp_path / "vit")
    files = [tmp_path / "a.png", tmp_path / "b.png"]
    for value, file in enumerate(files):
        Image.fromarray(np.full((4, 4), 99 * value, "uint8")).save(file)
    expected = embedder.embed(files)
    lines = run("see", tmp_path / "vit", *files).stdout.splitlines()
    found = np.array([line.split(" ") for line in lines], "float32")
    np.testing.assert_allclose(found, expected, atol=1e-6)
    record = json.loads(run("see", tmp_path / "vit", "--json", files[1]).stdout)
    assert record["image"] == str(files[1])
    np.testing.assert_allclose(record["embedding"], expected[1], atol=1e-6)
