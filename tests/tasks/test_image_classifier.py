"""ImageClassifier: what `transformers` says of an imported ViT, and folders of our own."""

import json

import numpy as np
import pytest
import torch
import transformers
from PIL import Image

from keras_transformer import ImageClassifier, load_pretrained
from keras_transformer.models import ViT, ViTConfig
from keras_transformer.tasks.image_format import ImageFormat
from tests.backends import EVERY_CASE

SIZES = dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=24)
NAMES = {0: "cat", 1: "dog", 2: "cow"}


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """A ViT of `transformers` with its processor, and the folder that we made of it."""
    source, folder = (tmp_path_factory.mktemp(name) for name in ("source", "imported"))
    torch.manual_seed(0)
    config = transformers.ViTConfig(
        **SIZES, image_size=8, patch_size=4, id2label=NAMES, initializer_range=0.5
    )
    theirs = transformers.ViTForImageClassification(config).eval()
    theirs.save_pretrained(source)
    processor = transformers.ViTImageProcessorPil(
        size={"height": 8, "width": 8}, resample=3, image_mean=[0.4, 0.5, 0.6]
    )
    processor.save_pretrained(source)
    load_pretrained(source).save(folder)
    return theirs, processor, folder


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Arrays of several sizes, and the first of them as a file."""
    generator = np.random.default_rng(1)
    arrays = [
        generator.integers(0, 256, (*size, 3)).astype("uint8") for size in ((8, 8), (13, 9), (8, 8))
    ]
    path = tmp_path_factory.mktemp("images") / "x.png"
    Image.fromarray(arrays[0]).save(path)
    return [*arrays, path]


def odds(labels):
    return {x.label: x.probability for x in labels}


def test_parity_of_an_imported_vit(imported, images):
    theirs, processor, folder = imported
    classifier = ImageClassifier.load(folder)
    found = classifier.classify(images)
    for image, labels in zip(images[:3], found, strict=False):
        with torch.no_grad():
            inputs = processor(image, return_tensors="pt")
            expected = theirs(**inputs).logits.softmax(-1)[0].tolist()
        names = dict(zip(NAMES.values(), expected, strict=True))
        assert odds(labels) == pytest.approx(names, abs=1e-4)
        assert [x.label for x in labels] == sorted(names, key=names.get, reverse=True)
    assert odds(found[3]) == pytest.approx(odds(found[0]), abs=1e-6)
    # In other batches, from one array, and from floats they are the same.
    again = classifier.classify([images[0] / 255, images[2]], batch_size=1)
    assert odds(again[0]) == pytest.approx(odds(found[0]), abs=1e-5)
    (_, last) = classifier.classify(np.stack([images[0], images[2]]))
    assert odds(last) == pytest.approx(odds(found[2]), abs=1e-5)
    assert classifier.classify([]) == []


@pytest.mark.once("made of parts that are tested under each backend")
def test_a_folder_and_back(tmp_path, randomize):
    sizes = dict(d_model=8, d_ff=8, num_layers=1, num_heads=2)
    vit = randomize(ViT(ViTConfig(2, image_size=4, patch_size=4, num_channels=1, **sizes)))
    classifier = ImageClassifier(vit, ["no", "yes"], ImageFormat([0.1], [0.3]))
    classifier.save(tmp_path)
    image = np.arange(16, dtype="uint8").reshape(4, 4)
    (labels,) = classifier.classify([image])
    assert labels == ImageClassifier.load(tmp_path).classify([image])[0]
    logits = vit(((image / 255 - 0.1) / 0.3).astype("float32")[None, ..., None])
    logits = np.asarray(logits.detach() if hasattr(logits, "detach") else logits)[0]
    expected = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
    found = odds(labels)
    assert [found["no"], found["yes"]] == pytest.approx(expected.tolist(), abs=1e-5)
    if EVERY_CASE:
        (eight,) = ImageClassifier.load(tmp_path, "int8").classify([image])
        assert odds(eight) == pytest.approx(found, abs=0.05)
    # Folders of older scripts name no filter.
    config = json.loads((tmp_path / "config.json").read_text())
    assert config.pop("resampling") == "bilinear"
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert ImageClassifier.load(tmp_path).image_format == classifier.image_format
    for name, value, said in (
        ("classes", ["no"], "classes must be 2 names, one for each of the model's classes"),
        ("classes", None, "classes must be 2 names"),
        ("mean", None, "mean must be a list of numbers"),
        ("deviation", [1, 1], "deviation must be 1 numbers above 0"),
    ):
        (tmp_path / "config.json").write_text(json.dumps(config | {name: value}))
        with pytest.raises(ValueError, match=f"config.json: {said}"):
            ImageClassifier.load(tmp_path)
