"""Image data sets as arrays, and batches of them with augmentation by shifts and flips."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import numpy as np

from keras_transformer.config import require, require_whole
from keras_transformer.data.archives import MOST_BYTES, read_tar
from keras_transformer.data.text_files import opened
from keras_transformer.system.extras import missing

DATASETS = ("cifar10", "mnist")
MOST_PIXELS = 1 << 24  # maximum number of pixels of an image in an archive


def read_idx(path: str | os.PathLike) -> np.ndarray:
    """Read an idx file of unsigned bytes, the format of MNIST (LeCun et al. 1998).

    Args:
        path: The file; decompressed if its name ends in `.gz` or `.zst`.

    Returns:
        A uint8 array with the shape that the file gives.

    Raises:
        ValueError: If the file is not an idx file of unsigned bytes, is truncated, or has more than
            `archives.MOST_BYTES` bytes.
    """
    with opened(path) as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ValueError(f"{path} must have at most {MOST_BYTES:,} bytes, got more")
    if len(data) < 4 or len(data) < 4 + 4 * data[3] or data[:3] != b"\0\0\x08":
        raise ValueError(
            f"{path} is not an idx file of unsigned bytes: it begins with {data[:4]!r}"
        )
    shape = np.frombuffer(data, ">i4", data[3], offset=4)
    values = np.frombuffer(data, np.uint8, offset=4 + 4 * data[3])
    if values.size != shape.prod():
        raise ValueError(f"{path} must hold {shape.prod()} values, got {values.size}")
    return values.reshape(shape)


def read_digits(
    images_path: str | os.PathLike, labels_path: str | os.PathLike
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Read images of ten classes and their labels from two idx files.

    Returns:
        Images (N, height, width, 1) uint8, labels (N,) int32, and the class names "0" to "9".

    Raises:
        ValueError: If a file is not an idx file, the numbers of images and labels differ, or a
            label is above 9.
    """
    images, labels = read_idx(images_path), read_idx(labels_path)
    require(images.ndim == 3, f"the shape of {images_path}", images.shape, "(N, height, width)")
    accepted = f"{images.shape[:1]}, one label per image"
    require(labels.shape == images.shape[:1], f"the shape of {labels_path}", labels.shape, accepted)
    most = int(labels.max(initial=0))
    require(most < 10, f"labels of {labels_path}", most, "from 0 to 9")
    return images[..., None], labels.astype("int32"), [str(digit) for digit in range(10)]


def read_image_archive(path: str | os.PathLike) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Read the images of a tar file that has one folder per class.

    Args:
        path: A tar file of images `.../CLASS/NAME`, all of one size, in formats that Pillow reads.

    Returns:
        Images (N, height, width, 3) uint8, class numbers (N,) int32, and the class names in
        alphabetical order.

    Raises:
        FileNotFoundError: If the file does not exist.
        ImportError: If Pillow is missing.
        ValueError: If it is not a tar file, a file in it is not an image or has more than
            `MOST_PIXELS` pixels, there is no image, or sizes differ.
    """
    try:
        from PIL import Image
    except ImportError as error:
        raise missing("reading images", "images") from error
    images, labels = [], []
    for name, content in read_tar(path):
        try:
            image = Image.open(io.BytesIO(content))
            size = image.width * image.height
            require(size <= MOST_PIXELS, "its size", size, f"at most {MOST_PIXELS:,} pixels")
            pixels = np.asarray(image.convert("RGB"))
        except Exception as error:  # a broken file can raise any error
            raise ValueError(f"{path}: {name} must be an image: {error}") from error
        images.append(pixels)
        shape, same = pixels.shape[:2], images[0].shape[:2]
        require(shape == same, f"{path}: the size of {name}", shape, str(same))
        labels.append(PurePosixPath(name).parent.name)
    if not images:
        raise ValueError(f"{path} holds no images")
    classes, numbers = np.unique(labels, return_inverse=True)
    return np.stack(images), numbers.astype("int32"), classes.tolist()


def load_images(
    dataset: str, folder: str | os.PathLike
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray], list[str]]:
    """Load a data set: (images, labels) for training, the same for testing, and the class names.

    Args:
        dataset: "mnist" (LeCun et al. 1998) or "cifar10" (Krizhevsky 2009).
        folder: Folder with the data set: `mnist/train-images-idx3-ubyte.gz`,
            `mnist/train-labels-idx1-ubyte.gz` and the same with `t10k` for testing; or
            `cifar10-jpeg/train.tar.gz` and `cifar10-jpeg/test.tar.gz`.

    Raises:
        FileNotFoundError: If a file does not exist.
        ImportError: If Pillow is missing, for CIFAR-10.
        ValueError: If `dataset` is unknown, a file is damaged, or training and test images differ
            in their classes or sizes.
    """
    require(dataset in DATASETS, "dataset", dataset, f"one of {DATASETS}")
    folder = Path(folder)
    if dataset == "mnist":
        kinds = ("images-idx3", "labels-idx1")
        parts = [
            read_digits(*(folder / "mnist" / f"{part}-{kind}-ubyte.gz" for kind in kinds))
            for part in ("train", "t10k")
        ]
    else:
        files = [folder / "cifar10-jpeg" / f"{part}.tar.gz" for part in ("train", "test")]
        parts = list(map(read_image_archive, files))
    (images, labels, classes), (test_images, test_labels, test_classes) = parts
    require(test_classes == classes, "classes of the test images", test_classes, str(classes))
    sizes = images.shape[1:], test_images.shape[1:]
    require(sizes[1] == sizes[0], "the shape of a test image", sizes[1], str(sizes[0]))
    return (images, labels), (test_images, test_labels), classes


def moved(
    images: np.ndarray, rng: np.random.Generator, pixels: int, flip: bool = False
) -> np.ndarray:
    """Return images that are randomly shifted, horizontally and vertically.

    Pixels that are shifted in from outside repeat the edge of the image.

    Args:
        images: Images (B, height, width, channels).
        rng: Random number generator.
        pixels: Maximum shift, in pixels.
        flip: Whether to mirror each image, left to right, with the probability 1/2.
    """
    height, width = images.shape[1:3]
    rows = np.arange(len(images))
    padded = np.pad(images, ((0, 0), (pixels, pixels), (pixels, pixels), (0, 0)), mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (height, width), axis=(1, 2))
    down, right = rng.integers(0, 2 * pixels + 1, (2, len(images)))
    images = np.moveaxis(windows[rows, down, right], 1, -1)
    if flip:
        is_mirrored = rng.random(len(images)) < 0.5
        images = np.where(is_mirrored[:, None, None, None], images[:, :, ::-1], images)
    return np.ascontiguousarray(images)


def batches(
    images: np.ndarray,
    labels: np.ndarray,
    batch_size: int,
    seed: int = 0,
    pixels: int = 0,
    flip: bool = False,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Return an endless iterator over batches (images, labels), reshuffled in each epoch.

    An incomplete last batch of an epoch is dropped.

    Args:
        images: Images (N, height, width, channels).
        labels: Labels (N,).
        batch_size: Images per batch.
        seed: Seed of the order and the augmentation.
        pixels, flip: See `moved`.

    Raises:
        ValueError: If there are fewer images than `batch_size`, or the numbers of images and labels
            differ.
    """
    require_whole("batch_size", batch_size, 1)
    most = len(images)
    require(batch_size <= most, "batch_size", batch_size, f"at most {most}, the number of images")
    require(len(labels) == most, "labels", len(labels), f"{most}, one per image")
    return _batches(images, labels, batch_size, np.random.default_rng(seed), pixels, flip)


def _batches(images, labels, batch_size, rng, pixels, flip):
    while True:
        order = rng.permutation(len(images))
        for start in range(0, len(order) - batch_size + 1, batch_size):
            chosen = order[start : start + batch_size]
            yield moved(images[chosen], rng, pixels, flip), labels[chosen]
