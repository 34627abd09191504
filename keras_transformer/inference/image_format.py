"""Images as the input of a model: decoded, resized and normalized."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from keras_transformer.config import require
from keras_transformer.system.extras import missing
from keras_transformer.system.files import read_json

RESAMPLINGS = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")  # Pillow's 0 to 5
GREY = ("1", "L", "LA", "La")  # modes of Pillow without colours


@dataclass(frozen=True)
class ImageFormat:
    """The size of images and the distribution of their values that a model was trained on.

    Args:
        mean: Mean of each channel, for values from 0 to 1.
        deviation: Standard deviation of each channel, above 0, for values from 0 to 1.
        resampling: Filter for images of another size, one of `RESAMPLINGS`.

    Raises:
        ValueError: If a value is out of range, or `mean` and `deviation` differ in length.
    """

    mean: Sequence[float]
    deviation: Sequence[float]
    resampling: str = "bilinear"

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
            size: Height and width to resize it to.

        Raises:
            ImportError: If Pillow is missing for a file or for resizing.
            FileNotFoundError: If there is no such file.
            ValueError: If the image cannot be read, or has other channels than the model.
        """
        channels = len(self.mean)
        pixels = _bytes(image) if isinstance(image, np.ndarray) else _decoded(image, channels)
        accepted = f"{channels}, the number that the model was trained on"
        require(pixels.shape[2] == channels, "the channels of an image", pixels.shape[2], accepted)
        if pixels.shape[:2] != tuple(size):
            pixels = _resized(pixels, size, RESAMPLINGS.index(self.resampling))
        return pixels


def image_format_of(folder: str | os.PathLike, channels: int) -> ImageFormat:
    """Return the format of a ViT in Hugging Face's layout, from `preprocessor_config.json`.

    Args:
        folder: Folder of the checkpoint; without the file, ViT's own values count: mean and
            deviation 0.5.
        channels: Number of the model's channels.

    Raises:
        ValueError: If the file is broken, or asks for what is not supported.
    """
    path = Path(folder, "preprocessor_config.json")
    theirs = read_json(path) if path.is_file() else {}
    try:
        require(isinstance(theirs, dict), "the content", theirs, "an object")
        crops = theirs.get("do_center_crop", False)
        require(not crops, "do_center_crop", crops, "false: images are resized, not cut")
        scale = theirs.get("rescale_factor", 1 / 255) if theirs.get("do_rescale", True) else 1.0
        accepted = "a number above 0"
        require(type(scale) in (int, float) and scale > 0, "rescale_factor", scale, accepted)
        plain = ImageFormat([0.0] * channels, [1.0] * channels)
        if theirs.get("do_normalize", True):
            usual = [0.5] * channels
            plain = ImageFormat(theirs.get("image_mean", usual), theirs.get("image_std", usual))
        number = theirs.get("resample", 2)
        known = isinstance(number, int) and 0 <= number < len(RESAMPLINGS)
        require(known, "resample", number, f"a filter of Pillow, 0 to {len(RESAMPLINGS) - 1}")
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    # Theirs are of values times `rescale_factor`, ours of values from 0 to 1.
    mean, deviation = ([x / scale / 255 for x in own] for own in (plain.mean, plain.deviation))
    return ImageFormat(mean, deviation, RESAMPLINGS[number])


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
