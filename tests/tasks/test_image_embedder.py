"""ImageEmbedder: the class token's vector of an imported ViT is that of `transformers`."""

import numpy as np
import pytest
import torch
import transformers

from keras_transformer import ImageClassifier, ImageEmbedder, load_pretrained
from keras_transformer.models import with_classes
from keras_transformer.tasks.image_format import ImageFormat

SIZES = dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=24)


def test_parity_of_an_imported_vit(tmp_path):
    torch.manual_seed(0)
    config = transformers.ViTConfig(**SIZES, image_size=8, patch_size=4, initializer_range=0.5)
    theirs = transformers.ViTModel(config).eval()
    theirs.save_pretrained(tmp_path / "source")
    processor = transformers.ViTImageProcessorPil(size={"height": 8, "width": 8}, resample=3)
    processor.save_pretrained(tmp_path / "source")
    load_pretrained(tmp_path / "source").save(tmp_path / "folder")
    embedder = ImageEmbedder.load(tmp_path / "folder")
    generator = np.random.default_rng(1)
    images = [
        generator.integers(0, 256, (*size, 3)).astype("uint8") for size in ((8, 8), (13, 9), (8, 8))
    ]
    found = embedder.embed(images, normalize=False)
    with torch.no_grad():
        inputs = [processor(image, return_tensors="pt")["pixel_values"] for image in images]
        expected = theirs(torch.cat(inputs)).last_hidden_state[:, 0].numpy()
    np.testing.assert_allclose(found, expected, atol=1e-4)
    # In other batches they are the same, and by default their length is 1.
    unit = embedder.embed(images, batch_size=1)
    lengths = np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(unit, expected / lengths, atol=1e-4)
    assert embedder.embed([]).shape == (0, 16)

    # A classifier is not used; an object for classes refuses the folder, and says what takes it.
    whole = ImageEmbedder(with_classes(embedder.model, 3), embedder.image_format)
    np.testing.assert_allclose(whole.embed(images), unit, atol=1e-5)
    with pytest.raises(ValueError, match="but an image encoder: use ImageEmbedder and the comm"):
        ImageClassifier.load(tmp_path / "folder")
    with pytest.raises(ValueError, match="the channels of image_format must be 3, the model's"):
        ImageEmbedder(embedder.model, ImageFormat([0.5], [0.5]))
    with pytest.raises(ValueError, match="images must be a sequence of images, got one"):
        embedder.embed(images[0])


@pytest.mark.once("made of parts that are tested under each backend")
@pytest.mark.parametrize("precision", [None, "int8"])
def test_a_dinov2_trained_on_larger_images(precision, tmp_path):
    """Positions are interpolated at load, to the size of the processor's crop."""
    torch.manual_seed(0)
    sizes = dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, initializer_range=0.5)
    config = transformers.Dinov2WithRegistersConfig(**sizes, image_size=20, patch_size=4)
    theirs = transformers.Dinov2WithRegistersModel(config).eval()
    theirs.save_pretrained(tmp_path / "source")
    crop = {"height": 8, "width": 8}
    processor = transformers.BitImageProcessorPil(size={"shortest_edge": 10}, crop_size=crop)
    processor.save_pretrained(tmp_path / "source")
    load_pretrained(tmp_path / "source", precision=precision).save(tmp_path / "folder")
    embedder = ImageEmbedder.load(tmp_path / "folder")
    assert embedder.model.config.image_size == (8, 8)
    image = np.random.default_rng(1).integers(0, 256, (13, 29, 3)).astype("uint8")
    with torch.no_grad():
        inputs = processor(image, return_tensors="pt")["pixel_values"]
        expected = theirs(inputs).pooler_output.numpy()
    found = embedder.embed([image], normalize=False)
    np.testing.assert_allclose(found, expected, atol=1e-4 if precision is None else 0.05)
