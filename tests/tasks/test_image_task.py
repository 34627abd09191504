"""Tests of `ImageTask`: images and weights that it refuses, and saved folders."""

import numpy as np
import pytest

from keras_transformer import ImageClassifier, ImageEmbedder
from keras_transformer.models import ViT, ViTConfig
from keras_transformer.tasks.image_format import ImageFormat

FORMAT = ImageFormat([0.5] * 3, [0.5] * 3)


@pytest.fixture(params=[ImageClassifier, ImageEmbedder], ids=lambda kind: kind.__name__)
def tool(request, randomize):
    sizes = dict(image_size=8, patch_size=4, d_model=8, num_layers=1, num_heads=2)
    vit = randomize(ViT(ViTConfig(2, **sizes)))
    if request.param is ImageClassifier:
        return ImageClassifier(vit, ["no", "yes"], FORMAT)
    return ImageEmbedder(vit, FORMAT)


def use(tool, images, **options):
    run = tool.classify if isinstance(tool, ImageClassifier) else tool.embed
    return run(images, **options)


def test_bad_input(tool):
    image = np.zeros((8, 8, 3), "uint8")
    for given, said in (
        ("x.png", "images must be a sequence of images, got one"),
        (image, r"images must be a sequence of images, got one: \(8, 8, 3\)"),
        ([image[..., 0]], "the channels of an image must be 3, the number .*, got 1"),
    ):
        with pytest.raises(ValueError, match=said):
            use(tool, given)
    with pytest.raises(FileNotFoundError):
        use(tool, ["no such.png"])
    with pytest.raises(ValueError, match="batch_size must be a whole number of at least 1"):
        use(tool, [image], batch_size=0)
    tool.image_format = ImageFormat([0.5], [0.5])
    with pytest.raises(ValueError, match="the channels of image_format must be 3, the model's"):
        extra = [tool.classes] if isinstance(tool, ImageClassifier) else []
        type(tool)(tool.model, *extra, tool.image_format)


def test_weights_that_are_no_numbers(tool):
    for weight in tool.model.weights:
        weight.assign(np.full(weight.shape, np.nan, "float32"))
    with pytest.raises(ValueError, match="model must give finite numbers, got none"):
        use(tool, np.zeros((1, 8, 8, 3), "uint8"))


def test_saved_folders(tool, tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (3, 8, 8, 3)).astype("uint8")
    tool.save(tmp_path)
    again = use(type(tool).load(tmp_path), images)
    assert len(again) == 3 and np.array_equal(again, use(tool, images))
