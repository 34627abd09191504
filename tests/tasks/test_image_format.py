"""Images as input: the values of `transformers`, Pillow's filters, and what is refused."""

import io
import json
from inspect import get_annotations

import numpy as np
import pytest
import transformers
from PIL import Image

from keras_transformer.models import ViTConfig
from keras_transformer.tasks.image_format import (
    ImageFormat,
    image_format_of,
    image_size_of,
    table_of,
)

pytestmark = pytest.mark.once("NumPy and Pillow")

COLOURS = ImageFormat([0.5, 0.4, 0.3], [0.5, 0.25, 0.2])
GREY = ImageFormat([0.25], [0.5])


def pixels(*shape):
    return np.random.default_rng(0).integers(0, 256, shape).astype("uint8")


def png(array, mode=None, **options):
    file = io.BytesIO()
    image = Image.fromarray(array)
    (image.convert(mode) if mode else image).save(file, "png", **options)
    file.seek(0)
    return file


@pytest.mark.parametrize(
    "options",
    [
        dict(image_mean=[0.1, 0.2, 0.3], image_std=[0.5, 0.6, 0.7], resample=3),
        dict(rescale_factor=1 / 127.5, resample=0),
        dict(do_normalize=False, resample=2),
        dict(do_rescale=False, image_mean=[9, 9, 9], image_std=[99, 98, 97], resample=1),
        dict(image_mean=0.25, image_std=0.75),
        # What changes nothing, as the parity shows.
        dict(crop_size=5, pad_size=9, do_convert_rgb=True, image_seq_length=4, device="cpu"),
        dict(disable_grouping=True, return_tensors="np", processor_class="X"),
    ],
)
def test_parity_with_transformers(options, tmp_path):
    size = {"height": 8, "width": 12}
    theirs = transformers.ViTImageProcessorPil(size=size, **options)
    theirs.save_pretrained(tmp_path)
    ours = image_format_of(tmp_path, 3, (8, 12))
    for shape in ((8, 12, 3), (19, 9, 3)):
        image = pixels(*shape)
        expected = theirs(image, return_tensors="np")["pixel_values"][0]
        found = np.moveaxis(ours.read(image, (8, 12)), -1, 0)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(10, 15, 3), (31, 22, 3)])
def test_the_images_of_a_deit_are_cut(shape, tmp_path):
    size, crop = {"height": 10, "width": 15}, {"height": 8, "width": 12}
    theirs = transformers.DeiTImageProcessorPil(size=size, crop_size=crop)
    theirs.save_pretrained(tmp_path)
    ours = image_format_of(tmp_path, 3, (8, 12), "deit")
    image = pixels(*shape)
    expected = theirs(image, return_tensors="np")["pixel_values"][0]
    found = np.moveaxis(ours.read(image, (8, 12)), -1, 0)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    for size in (9, {"height": 10, "width": 16}):
        theirs.size = size
        theirs.save_pretrained(tmp_path)
        with pytest.raises(ValueError, match="size in .* must be sides in the proportion of"):
            image_format_of(tmp_path, 3, (8, 12), "deit")
    with pytest.raises(ValueError, match="^crop_size in .*, which is not supported"):
        image_format_of(tmp_path, 3, (4, 6), "deit")


@pytest.mark.parametrize("shape", [(10, 15, 3), (31, 22, 3), (9, 9, 3)])
def test_the_images_of_a_dinov2_keep_their_proportions(shape, tmp_path):
    config = ViTConfig(0, image_size=32, patch_size=4)
    assert image_size_of(tmp_path, config, "dinov2") == (32, 32)
    options = dict(size={"shortest_edge": 11}, crop_size={"height": 8, "width": 8})
    theirs = transformers.BitImageProcessorPil(**options)
    theirs.save_pretrained(tmp_path)
    assert image_size_of(tmp_path, config, "dinov2") == (8, 8)
    ours = image_format_of(tmp_path, 3, (8, 8), "dinov2")
    image = pixels(*shape)
    expected = theirs(image, return_tensors="np")["pixel_values"][0]
    found = np.moveaxis(ours.read(image, (8, 8)), -1, 0)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    for name, value, said in (
        ("size", {"shortest_edge": 7}, "size in .* must be a shortest_edge of at least 8, the cr"),
        ("size", {"height": 11, "width": 11}, "size in .* must be a shortest_edge of at least 8"),
        ("do_center_crop", False, "^do_center_crop in .* is False, which is not supported"),
    ):
        (tmp_path / "preprocessor_config.json").write_text(json.dumps(options | {name: value}))
        with pytest.raises(ValueError, match=said):
            image_format_of(tmp_path, 3, (8, 8), "dinov2")
    for value in (10, 8000):
        (tmp_path / "preprocessor_config.json").write_text(json.dumps({"crop_size": value}))
        with pytest.raises(ValueError, match="crop_size in .* must be multiples of 4 up to 4096"):
            image_size_of(tmp_path, config, "dinov2")


@pytest.mark.parametrize("kind,name", [("deit", "DeiT"), ("dinov2_with_registers", "Bit")])
def test_every_field_of_a_processor_that_crops_is_in_a_column(kind, name):
    theirs = getattr(transformers, f"{name}ImageProcessorPil")()
    table = table_of(224, 224, kind)
    assert theirs.to_dict().keys() <= {*table.read, *table.harmless, *table.refused}


def test_without_a_file_the_values_are_those_of_vit(tmp_path):
    assert image_format_of(tmp_path, 1) == ImageFormat([0.5], [0.5], "bilinear")


def test_a_format_that_is_not_supported(tmp_path):
    for theirs, said in (
        ({"resample": 9}, "resample in .* must be a filter of Pillow, 0 to 5, got 9"),
        ({"rescale_factor": 0}, "rescale_factor in .* must be a number above 0, got 0"),
        ({"image_std": 0}, "image_std in .* must be numbers above 0, got"),
        ({"image_mean": [0.5]}, r"image_mean in .* must be 3 numbers, one per channel, got \[0.5"),
        ([], ".* must hold an object, got list"),
    ):
        (tmp_path / "preprocessor_config.json").write_text(json.dumps(theirs))
        with pytest.raises(ValueError, match=f"^{said}"):
            image_format_of(tmp_path, 3)


# Values that `ViTImageProcessor` takes, of fields that change the image.
UNUSUAL = dict(
    size={"shortest_edge": 224}, do_center_crop=True, do_pad=True, default_to_square=False,
    data_format="channels_last", input_data_format="channels_last",
    image_processor_type="CLIPImageProcessor", feature_extractor_type="DeiTFeatureExtractor",
)  # fmt: skip


def test_every_field_is_in_a_column(tmp_path):
    """Each field of the class of `transformers`: read, harmless, or refused by name."""
    theirs, table = transformers.ViTImageProcessorPil(), table_of(224, 224)
    known = {x for x in vars(theirs) if not x.startswith("_")} | theirs.to_dict().keys()
    known |= {name for cls in theirs.valid_kwargs.__mro__ for name in get_annotations(cls)}
    columns = {*table.read, *table.harmless, *table.refused}
    assert known <= columns and UNUSUAL.keys() == table.refused.keys()
    for name, value in UNUSUAL.items():
        (tmp_path / "preprocessor_config.json").write_text(json.dumps({name: value}))
        with pytest.raises(ValueError, match=f"^{name} in .* is .*, which is not supported"):
            image_format_of(tmp_path, 3)
    (tmp_path / "preprocessor_config.json").write_text(json.dumps({"size": 384}))
    with pytest.raises(ValueError, match="^size in .* is 384, .* supported is .*'width': 224"):
        image_format_of(tmp_path, 3)
    assert image_format_of(tmp_path, 3, (384, 384)).mean == [0.5] * 3


def test_arrays_and_files_are_the_same():
    array = pixels(6, 4, 3)
    expected = (array / 255 - [0.5, 0.4, 0.3]) / [0.5, 0.25, 0.2]
    for image in (array, array / 255, (array / 255).astype("float32"), png(array)):
        found = COLOURS.read(image, (6, 4))
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_grey():
    array = pixels(6, 4)
    expected = ((array / 255 - 0.25) / 0.5)[..., None]
    for image in (array, array[..., None], png(array)):
        np.testing.assert_allclose(GREY.read(image, (6, 4)), expected, atol=1e-5)
    # A model of colours reads it three times.
    three = COLOURS.read(png(array), (6, 4))
    np.testing.assert_array_equal(three, COLOURS.read(np.stack([array] * 3, -1), (6, 4)))


def test_files_of_other_kinds(tmp_path):
    array = pixels(6, 4, 3)
    clear = np.concatenate([array, pixels(6, 4, 1)], axis=-1)
    np.testing.assert_array_equal(
        COLOURS.read(png(clear), (6, 4)), COLOURS.read(png(array), (6, 4))
    )
    turned = Image.Exif()
    turned[0x0112] = 6  # the camera was turned
    found = COLOURS.read(png(array, exif=turned), (4, 6))
    np.testing.assert_array_equal(found, COLOURS.read(np.rot90(array, -1), (4, 6)))
    Image.fromarray(array).save(tmp_path / "x.jpg")
    with Image.open(tmp_path / "x.jpg") as opened:
        decoded = np.asarray(opened)
    found = COLOURS.read(tmp_path / "x.jpg", (6, 4))
    np.testing.assert_array_equal(found, COLOURS.read(decoded, (6, 4)))


def test_images_of_the_wrong_depth():
    colours, deep = png(pixels(6, 4, 3)), png(pixels(6, 4).astype("uint16") * 200)
    for image_format, image, said in (
        (GREY, pixels(6, 4, 3), "the channels of an image must be 1, the number .*, got 3"),
        (COLOURS, pixels(6, 4), "the channels of an image must be 3, the number .*, got 1"),
        (GREY, colours, r"the mode of .* must be L \(grey\).*, got 'RGB'"),
        (COLOURS, deep, "the mode of .* must be one of 8 bits per channel, got 'I;16'"),
        (COLOURS, pixels(6, 4, 3).astype("int32"), "the type of an image must be uint8, or"),
        (COLOURS, pixels(6, 4, 3) / 200, "the values of an image must be bytes, or floats from"),
        (COLOURS, np.full((6, 4, 3), np.nan), "the values of an image must be"),
        (COLOURS, pixels(6, 0, 3), "the shape of an image must be"),
        (COLOURS, pixels(6), "the shape of an image must be"),
    ):
        with pytest.raises(ValueError, match=said):
            image_format.read(image, (6, 4))


def test_files_that_are_no_images(tmp_path):
    (tmp_path / "x.png").write_text("text")
    whole = png(pixels(40, 40, 3)).getvalue()
    (tmp_path / "cut.png").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "empty.png").touch()
    for name in ("x.png", "cut.png", "empty.png"):
        with pytest.raises(ValueError, match=f"{name} cannot be read as an image"):
            COLOURS.read(tmp_path / name, (6, 4))
    with pytest.raises(FileNotFoundError):
        COLOURS.read(tmp_path / "none.png", (6, 4))


def test_bad_formats():
    for mean, deviation, resampling, said in (
        (None, [1.0], "bilinear", "mean must be a list of numbers, one per channel, got None"),
        ([0.5], ["x"], "bilinear", "deviation must be a list of numbers"),
        ([0.5], [0.0], "bilinear", "deviation must be 1 numbers above 0, like mean"),
        ([0.5], [0.5, 0.5], "bilinear", "deviation must be 1 numbers above 0, like mean"),
        ([0.5], [0.5], "sharp", "resampling must be one of .*, got 'sharp'"),
    ):
        with pytest.raises(ValueError, match=said):
            ImageFormat(mean, deviation, resampling)
    with pytest.raises(ValueError, match="keep_proportions must be True or False, got 1"):
        ImageFormat([0.5], [0.5], keep_proportions=1)
