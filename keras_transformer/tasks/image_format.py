"""Images as the input of a model: decoded, resized and normalized."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from keras_transformer.config import is_number, require
from keras_transformer.hub.preprocessor import read_preprocessor
from keras_transformer.system.extras import missing
from keras_transformer.system.foreign_fields import FieldTable

RESAMPLINGS = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")  # Pillow's 0 to 5
GREY = ("1", "L", "LA", "La")  # modes of Pillow without colours


@dataclass(frozen=True)
class ImageFormat:
    """The size of images and the distribution of their values that a model was trained on.

    Args:
        mean: Mean of each channel, for values from 0 to 1.
        deviation: Standard deviation of each channel, above 0, for values from 0 to 1.
        resampling: Filter for images of another size, one of `RESAMPLINGS`.
        crop: Share of the height and of the width that is kept around an image's centre.

    Raises:
        ValueError: If a value is out of range, or `mean` and `deviation` differ in length.
    """

    mean: Sequence[float]
    deviation: Sequence[float]
    resampling: str = "bilinear"
    crop: float = 1.0

    def __post_init__(self):
        for name in ("mean", "deviation"):
            value = getattr(self, name)
            fits = isinstance(value, list | tuple) and len(value) > 0
            fits = fits and all(type(x) in (int, float) and np.isfinite(x) for x in value)
            require(fits, name, value, "a list of numbers, one per channel")
        count = len(self.mean)
        fits = len(self.deviation) == count and min(self.deviation) > 0
        require(fits, "deviation", self.deviation, f"{count} numbers above 0, like mean")
        known = self.resampling in RESAMPLINGS
        require(known, "resampling", self.resampling, f"one of {RESAMPLINGS}")
        require(is_number(self.crop) and 0 < self.crop <= 1, "crop", self.crop, "in (0, 1]")

    def normalized(self, images: np.ndarray) -> np.ndarray:
        """Return images (..., channels) of bytes as float32, with the model's mean and deviation.

        Args:
            images: Values from 0 to 255.
        """
        mean, deviation = (np.array(x, "float32") for x in (self.mean, self.deviation))
        return (images / np.float32(255) - mean) / deviation

    def read(self, image: Any, size: tuple[int, int]) -> np.ndarray:
        """Return an image as input of the model, float32; see `pixels`."""
        return self.normalized(self.pixels(image, size))

    def pixels(self, image: Any, size: tuple[int, int]) -> np.ndarray:
        """Return an image as bytes (height, width, channels).

        Args:
            image: Array (height, width[, channels]) of bytes, or of floats from 0 to 1, which are
                rounded to multiples of 1 / 255; or an image file in any format of Pillow.
            size: Height and width of the result.

        Raises:
            ImportError: If Pillow is missing for a file or for resizing.
            FileNotFoundError: If there is no such file.
            ValueError: If the image cannot be read, or has other channels than the model.
        """
        channels = len(self.mean)
        pixels = _bytes(image) if isinstance(image, np.ndarray) else _decoded(image, channels)
        accepted = f"{channels}, the number that the model was trained on"
        require(pixels.shape[2] == channels, "the channels of an image", pixels.shape[2], accepted)
        whole = tuple(round(side / self.crop) for side in size)
        if pixels.shape[:2] != whole:
            pixels = _resized(pixels, whole, RESAMPLINGS.index(self.resampling))
        top, left = ((side - kept) // 2 for side, kept in zip(whole, size, strict=True))
        return pixels[top : top + size[0], left : left + size[1]]


def table_of(height: int, width: int, kind: str = "vit") -> FieldTable:
    """Return what is done with each field of `ViTImageProcessor` (5.23), by the images' size.

    That of a DeiT cuts images of this size out of larger ones.
    """
    sizes: tuple[Any, ...] = ({"height": height, "width": width}, [height, width])
    sizes = (*sizes, height) if height == width else sizes
    plain = {"size": sizes, "do_center_crop": (False, None)}
    crops = {"do_center_crop": (True, None), "crop_size": (*sizes, None)}
    name = "DeiT" if kind == "deit" else "ViT"
    processors = (f"{name}ImageProcessor{end}" for end in ("", "Fast", "Pil"))
    return FieldTable(
        read=(
            "rescale_factor",
            "do_rescale",
            "do_normalize",
            "image_mean",
            "image_std",
            "resample",
            *(("size",) if kind == "deit" else ()),
        ),
        harmless=(
            *("processor_class", "auto_map", "device", "return_tensors", "disable_grouping"),
            *("image_seq_length", "do_convert_rgb"),  # files of images are converted in any case
            "do_resize",  # a ViT accepts no image of another size
            *(("crop_size",) if kind != "deit" else ()),  # of `do_center_crop`
            "pad_size",  # of `do_pad`
        ),
        refused={
            **(crops if kind == "deit" else plain),
            "do_pad": (False, None),
            "default_to_square": (True, None),
            "data_format": ("channels_first", None),
            "input_data_format": (None,),
            "image_processor_type": (*processors, None),
            "feature_extractor_type": (f"{name}FeatureExtractor", None),
        },
    )


def image_format_of(
    folder: str | os.PathLike,
    channels: int,
    size: tuple[int, int] = (224, 224),
    kind: str = "vit",
) -> ImageFormat:
    """Return the format of a ViT in Hugging Face's layout, from `preprocessor_config.json`.

    Args:
        folder: Folder of the checkpoint; without the file, ViT's own values count: mean and
            deviation 0.5.
        channels: Number of the model's channels.
        size: Height and width of the model's images.
        kind: The `model_type` of the model: "vit", or "deit", whose images are cut.

    Raises:
        ValueError: If the file is broken, or asks for what is not supported.
    """
    theirs, place = read_preprocessor(folder, "image_processor", table_of(*size, kind))
    scale = theirs.get("rescale_factor", 1 / 255) if theirs.get("do_rescale", True) else 1.0
    fits = is_number(scale) and scale > 0
    require(fits, f"rescale_factor in {place}", scale, "a number above 0")
    mean, deviation = [0.0] * channels, [1.0] * channels
    if theirs.get("do_normalize", True):
        mean = _per_channel(theirs, "image_mean", channels, place)
        deviation = _per_channel(theirs, "image_std", channels, place)
        fits = min(deviation) > 0
        require(fits, f"image_std in {place}", deviation, "numbers above 0")
    number, most = theirs.get("resample", 3 if kind == "deit" else 2), len(RESAMPLINGS) - 1
    fits = type(number) is int and 0 <= number <= most
    require(fits, f"resample in {place}", number, f"a filter of Pillow, 0 to {most}")
    # Theirs are of values times `rescale_factor`, ours of values from 0 to 1.
    mean, deviation = ([x / scale / 255 for x in values] for values in (mean, deviation))
    crop = _crop(theirs.get("size", 256), size, place) if kind == "deit" else 1.0
    return ImageFormat(mean, deviation, RESAMPLINGS[number], crop)


def _crop(whole, size, place):
    """Return the share of each side that is kept of images of a `size` in the file."""
    sides = [whole.get(x) for x in ("height", "width")] if isinstance(whole, dict) else [whole] * 2
    fits = all(type(x) is int and x >= y for x, y in zip(sides, size, strict=True))
    fits = fits and size[0] * sides[1] == size[1] * sides[0]
    require(fits, f"size in {place}", whole, f"sides in the proportion of {tuple(size)} or above")
    return size[0] / sides[0]


def _per_channel(theirs, name, channels, place):
    """Return a field that is one number for each channel, or one for all of them."""
    value = theirs.get(name, 0.5)
    value = [value] * channels if is_number(value) else value
    fits = isinstance(value, list | tuple) and len(value) == channels and all(map(is_number, value))
    require(fits, f"{name} in {place}", value, f"{channels} numbers, one per channel")
    return value


def _bytes(image):
    """Return an array as bytes (height, width, channels)."""
    shape, accepted = image.shape, "(height, width) or (height, width, channels), none 0"
    require(image.ndim in (2, 3) and 0 not in shape, "the shape of an image", shape, accepted)
    if np.issubdtype(image.dtype, np.floating):
        fits = bool(((image >= 0) & (image <= 1)).all())
        least, most = float(image.min()), float(image.max())
        require(fits, "the values of an image", (least, most), "bytes, or floats from 0 to 1")
        image = np.round(image * 255).astype(np.uint8)
    accepted = "uint8, or floats from 0 to 1"
    require(image.dtype == np.uint8, "the type of an image", str(image.dtype), accepted)
    return image if image.ndim == 3 else image[..., None]


def _decoded(file: str | os.PathLike | BinaryIO, channels: int) -> np.ndarray:
    """Return the bytes of an image file; grey gets the channels of colours if the model has them.

    A transparent image loses its transparency, as in `transformers`.
    """
    pillow, operations = _pillow()
    try:
        with pillow.open(file) as opened:
            image = operations.exif_transpose(opened)
    except (FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    except Exception as error:  # a broken file can raise any error
        raise ValueError(f"{file} cannot be read as an image: {error}") from error
    mode = image.mode
    accepted = "one of 8 bits per channel"
    require(not mode.startswith(("I", "F")), f"the mode of {file}", mode, accepted)
    if channels == 1:
        accepted = "L (grey): the model was trained on 1 channel"
        require(mode in GREY, f"the mode of {file}", mode, accepted)
    # Of other numbers there are no files; `read` says so.
    image = np.asarray(image.convert("L" if channels == 1 else "RGB"))
    return image if image.ndim == 3 else image[..., None]


def _resized(image, size, resampling):
    pillow, _ = _pillow()
    height, width = size
    channels = [pillow.fromarray(np.ascontiguousarray(x)) for x in np.moveaxis(image, -1, 0)]
    return np.stack([np.asarray(x.resize((width, height), resampling)) for x in channels], axis=-1)


def _pillow():
    try:
        from PIL import Image, ImageOps
    except ImportError as error:
        raise missing("reading or resizing images", "images") from error
    return Image, ImageOps
