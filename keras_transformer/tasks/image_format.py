"""Conversion of images to the input of a model: decode, resize, crop and normalize."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

import numpy as np

from keras_transformer.config import is_number, require
from keras_transformer.hub.preprocessor import read_preprocessor
from keras_transformer.models import ViTConfig
from keras_transformer.system.extras import missing
from keras_transformer.system.foreign_fields import FieldTable

RESAMPLINGS = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")  # Pillow's 0 to 5
GREY = ("1", "L", "LA", "La")  # Pillow's modes without colour
MOST_PIXELS = 1 << 12  # longest side of a crop: positions for it are made before images are read
# Mean and deviation of the processors with the defaults of CLIP.
CLIP = [0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]
_PROCESSORS = dict(vit="ViT", deit="DeiT", dinov2="Bit", dinov2_with_registers="Bit")


@dataclass(frozen=True)
class ImageFormat:
    """The preparation of images for a model: normalization, resampling filter and crop.

    Args:
        mean: Mean of each channel, for values from 0 to 1.
        deviation: Standard deviation of each channel, above 0, for values from 0 to 1.
        resampling: Filter to resize images with, one of `RESAMPLINGS`.
        crop: Fraction of the height and of the width, in (0, 1], that is kept around the centre.
        keep_proportions: Whether resizing keeps the proportions of an image. The shorter side then
            gets the length that the longer side of the result has before the crop.

    Raises:
        ValueError: If a value is out of range, or `mean` and `deviation` differ in length.
    """

    mean: Sequence[float]
    deviation: Sequence[float]
    resampling: str = "bilinear"
    crop: float = 1.0
    keep_proportions: bool = False

    def __post_init__(self):
        for name in ("mean", "deviation"):
            value = getattr(self, name)
            are_numbers = isinstance(value, list | tuple) and len(value) > 0
            are_numbers = are_numbers and all(
                type(x) in (int, float) and np.isfinite(x) for x in value
            )
            require(are_numbers, name, value, "a list of numbers, one per channel")
        count = len(self.mean)
        matches_mean = len(self.deviation) == count and min(self.deviation) > 0
        require(matches_mean, "deviation", self.deviation, f"{count} numbers above 0, like mean")
        known = self.resampling in RESAMPLINGS
        require(known, "resampling", self.resampling, f"one of {RESAMPLINGS}")
        require(is_number(self.crop) and 0 < self.crop <= 1, "crop", self.crop, "in (0, 1]")
        keeps = self.keep_proportions
        require(isinstance(keeps, bool), "keep_proportions", keeps, "True or False")

    def normalized(self, images: np.ndarray) -> np.ndarray:
        """Return images scaled to [0, 1], less the mean, divided by the deviation: float32.

        Args:
            images: Values (..., channels) from 0 to 255.
        """
        mean, deviation = (np.array(x, "float32") for x in (self.mean, self.deviation))
        return (images / np.float32(255) - mean) / deviation

    def read(self, image: Any, size: tuple[int, int]) -> np.ndarray:
        """Return an image as normalized input of the model, float32; arguments as in `pixels`."""
        return self.normalized(self.pixels(image, size))

    def pixels(self, image: Any, size: tuple[int, int]) -> np.ndarray:
        """Return an image, resized and cropped, as bytes (height, width, channels).

        Args:
            image: Array (height, width[, channels]) of bytes, or of floats from 0 to 1, which are
                rounded to multiples of 1 / 255; or an image file of any format that Pillow reads.
            size: Height and width of the result.

        Raises:
            ImportError: If Pillow is missing for a file or for resizing.
            FileNotFoundError: If the file does not exist.
            ValueError: If the image cannot be read, or has another number of channels than the
                model.
        """
        channels = len(self.mean)
        pixels = _bytes(image) if isinstance(image, np.ndarray) else _decoded(image, channels)
        accepted = f"{channels}, the number that the model was trained on"
        require(pixels.shape[2] == channels, "the channels of an image", pixels.shape[2], accepted)
        whole = tuple(round(side / self.crop) for side in size)
        if self.keep_proportions:
            shorter = min(pixels.shape[:2])
            whole = tuple(max(whole) * side // shorter for side in pixels.shape[:2])
        if pixels.shape[:2] != whole:
            pixels = _resized(pixels, whole, RESAMPLINGS.index(self.resampling))
        top, left = ((side - kept) // 2 for side, kept in zip(whole, size, strict=True))
        return pixels[top : top + size[0], left : left + size[1]]


def table_of(height: int, width: int, kind: str = "vit") -> FieldTable:
    """Return which fields of an image processor (`transformers` 5.23) are read or refused.

    Args:
        height, width: Size of the model's images in pixels.
        kind: The `model_type` of the model: "vit"; "deit", whose processor resizes images to a
            larger size, and crops them; or "dinov2", with registers or without, whose processor
            also keeps their proportions.
    """
    sizes: tuple[Any, ...] = ({"height": height, "width": width}, [height, width])
    sizes = (*sizes, height) if height == width else sizes
    plain = {"size": sizes, "do_center_crop": (False, None), "default_to_square": (True, None)}
    crops = {"do_center_crop": (True, None), "crop_size": (*sizes, None)}
    crops |= {"default_to_square": (kind == "deit", None)}
    name, is_cropped = _PROCESSORS[kind], kind != "vit"
    processors = (f"{name}ImageProcessor{end}" for end in ("", "Fast", "Pil"))
    return FieldTable(
        read=(
            "rescale_factor",
            "do_rescale",
            "do_normalize",
            "image_mean",
            "image_std",
            "resample",
            *(("size",) if is_cropped else ()),
        ),
        harmless=(
            *("processor_class", "auto_map", "device", "return_tensors", "disable_grouping"),
            *("image_seq_length", "do_convert_rgb"),  # image files are converted in any case
            "do_resize",  # images are resized in any case, because a ViT accepts one size only
            *(() if is_cropped else ("crop_size",)),  # only read with `do_center_crop`
            "pad_size",  # only read with `do_pad`
        ),
        refused={
            **(crops if is_cropped else plain),
            "do_pad": (False, None),
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
    """Return the format of the images of a ViT in Hugging Face's layout.

    Args:
        folder: Folder of the checkpoint, with the format in `preprocessor_config.json`, or in the
            part "image_processor" of `processor_config.json`. Without both, it is the default of
            `transformers`: mean and deviation are 0.5, or those of CLIP for a DINOv2.
        channels: Number of the model's channels.
        size: Height and width of the model's images in pixels.
        kind: See `table_of`.

    Raises:
        ValueError: If the file is broken, or a field has a value that is not supported.
    """
    fields, place = read_preprocessor(folder, "image_processor", table_of(*size, kind))
    scale = fields.get("rescale_factor", 1 / 255) if fields.get("do_rescale", True) else 1.0
    require(is_number(scale) and scale > 0, f"rescale_factor in {place}", scale, "a number above 0")
    mean, deviation = [0.0] * channels, [1.0] * channels
    if fields.get("do_normalize", True):
        usual_mean, usual_deviation = CLIP if _PROCESSORS[kind] == "Bit" else (0.5, 0.5)
        mean = _per_channel(fields, "image_mean", usual_mean, channels, place)
        deviation = _per_channel(fields, "image_std", usual_deviation, channels, place)
        require(min(deviation) > 0, f"image_std in {place}", deviation, "numbers above 0")
    number, most = fields.get("resample", 2 if kind == "vit" else 3), len(RESAMPLINGS) - 1
    is_filter = type(number) is int and 0 <= number <= most
    require(is_filter, f"resample in {place}", number, f"a filter of Pillow, 0 to {most}")
    # The file's mean and deviation are for pixels times `rescale_factor`; convert them to pixels
    # divided by 255.
    mean, deviation = ([x / scale / 255 for x in values] for values in (mean, deviation))
    crop, keeps_proportions = 1.0, False
    if kind == "deit":
        crop = _crop(fields.get("size", 256), size, place)
    elif _PROCESSORS[kind] == "Bit":
        shortest, keeps_proportions = _shortest_edge(fields, size, place), True
        crop = max(size) / shortest
    return ImageFormat(mean, deviation, RESAMPLINGS[number], crop, keeps_proportions)


def image_size_of(folder: str | os.PathLike, config: ViTConfig, kind: str) -> tuple[int, int]:
    """Return height and width of the images that a checkpoint's processor makes, in pixels.

    Those of a DINOv2 are usually smaller than the images of its training. Without a processor, they
    have the size of the model's images.

    Args:
        folder: See `image_format_of`.
        config: Config of the model.
        kind: See `table_of`.

    Raises:
        ValueError: If the file is broken, or `crop_size` is not a multiple of the model's
            `patch_size`, or above `MOST_PIXELS`.
    """
    size: Any = config.image_size
    if _PROCESSORS[kind] != "Bit":
        return size
    height, width = size
    table = table_of(height, width, kind)
    table = replace(table, read=(*table.read, *table.refused), refused={})
    fields, place = read_preprocessor(folder, "image_processor", table)
    if not fields:
        return size
    crop, step = fields.get("crop_size") or 224, config.patch_size
    sides = _sides(crop)
    is_multiple = all(type(x) is int and 0 < x <= MOST_PIXELS and x % step == 0 for x in sides)
    require(is_multiple, f"crop_size in {place}", crop, f"multiples of {step} up to {MOST_PIXELS}")
    return sides


def _sides(size):
    """Return height and width of a field, which is one number or an object."""
    if isinstance(size, dict):
        return size.get("height"), size.get("width")
    return (size, size)


def _shortest_edge(fields, size, place):
    """Return the length of the shorter side of images before the crop."""
    whole = fields.get("size", max(size) if not fields else 224)
    edge = whole.get("shortest_edge") if isinstance(whole, dict) and len(whole) == 1 else whole
    accepted = f"a shortest_edge of at least {max(size)}, the crop"
    require(type(edge) is int and edge >= max(size), f"size in {place}", whole, accepted)
    return edge


def _crop(whole, size, place):
    """Return the fraction of each side that a crop keeps.

    Args:
        whole: The file's field `size`, the size before the crop: one number or an object.
        size: Height and width of the model's images in pixels.
        place: Name of the file in messages.
    """
    sides = _sides(whole)
    has_proportion = all(type(x) is int and x >= y for x, y in zip(sides, size, strict=True))
    has_proportion = has_proportion and size[0] * sides[1] == size[1] * sides[0]
    accepted = f"sides in the proportion of {tuple(size)} or above"
    require(has_proportion, f"size in {place}", whole, accepted)
    return size[0] / sides[0]


def _per_channel(fields, name, default, channels, place):
    """Return the numbers of a field per channel; one number in the file holds for all channels."""
    value = fields.get(name, default)
    value = [value] * channels if is_number(value) else value
    has_channels = (
        isinstance(value, list | tuple) and len(value) == channels and all(map(is_number, value))
    )
    require(has_channels, f"{name} in {place}", value, f"{channels} numbers, one per channel")
    return value


def _bytes(image):
    """Return an array as bytes (height, width, channels)."""
    shape, accepted = image.shape, "(height, width) or (height, width, channels), none 0"
    require(image.ndim in (2, 3) and 0 not in shape, "the shape of an image", shape, accepted)
    if np.issubdtype(image.dtype, np.floating):
        in_range = bool(((image >= 0) & (image <= 1)).all())
        least, most = float(image.min()), float(image.max())
        require(in_range, "the values of an image", (least, most), "bytes, or floats from 0 to 1")
        image = np.round(image * 255).astype(np.uint8)
    accepted = "uint8, or floats from 0 to 1"
    require(image.dtype == np.uint8, "the type of an image", str(image.dtype), accepted)
    return image if image.ndim == 3 else image[..., None]


def _decoded(file: str | os.PathLike | BinaryIO, channels: int) -> np.ndarray:
    """Return the bytes of an image file: (height, width, 1 or 3).

    A grey image becomes RGB if the model has several channels. Transparency is dropped, as in
    `transformers`.
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
    # If the model has neither 1 nor 3 channels, `pixels` refuses the result.
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
