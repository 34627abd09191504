"""Base class of the objects that run a ViT: loading, batches, one function."""

from __future__ import annotations

import abc
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Self

import numpy as np

from keras_transformer.config import require, require_whole
from keras_transformer.models import ViT
from keras_transformer.running.runner import Runner, search_batches
from keras_transformer.saved.folder import CONFIG, load_model, read_config, save_folder
from keras_transformer.saved.kinds import Kind
from keras_transformer.tasks.image_format import ImageFormat

Images = Sequence[str | os.PathLike | BinaryIO | np.ndarray] | np.ndarray


class ImageTask(abc.ABC):
    """A ViT with the format of its images, and the function that it computes.

    Images are resized to the model's size, without regard to their proportions, and normalized
    like those that the model was trained on.

    Args:
        model: A `ViT`.
        image_format: Format of the images that the model was trained on.

    Raises:
        ValueError: If the number of channels is not the model's.
    """

    kind: ClassVar[Kind]

    def __init__(self, model: ViT, image_format: ImageFormat):
        channels = model.config.num_channels
        found, accepted = len(image_format.mean), f"{channels}, the model's"
        require(found == channels, "the channels of image_format", found, accepted)
        self.model, self.image_format = model, image_format
        self._runner = Runner()

    def save(self, folder: str | os.PathLike, base: str | os.PathLike | None = None) -> None:
        """Write `model.keras` and `config.json`; any backend can load them.

        Args:
            folder: Folder to write.
            base: See `Translator.save`.
        """
        facts = {"task": self.kind.task, **self._facts(), **asdict(self.image_format)}
        save_folder(folder, self.model, None, facts, base=base)

    @classmethod
    def load(cls, folder: str | os.PathLike, precision: str | None = None) -> Self:
        """Load what `save`, a training script or `keras-transformer import` wrote.

        Args:
            folder: Folder of the saved model.
            precision: See `Translator.load`; None: as saved.

        Raises:
            ValueError: If the folder is not such a model, or a file in it is broken.
        """
        config = read_config(folder, cls.kind.what, None, precision)
        model = load_model(folder, config, None, precision)
        if not isinstance(model, ViT):
            found = type(model).__name__
            raise ValueError(f"{folder} is not a saved {cls.kind.what} but a {found}")
        given: Any = {name: config.get(name) for name in ("mean", "deviation")}
        try:
            # Older folders have neither.
            given |= {x: config[x] for x in ("resampling", "crop") if x in config}
            image_format = ImageFormat(**given)
            return cls._of(model, image_format, config)
        except ValueError as error:
            raise ValueError(f"{Path(folder, CONFIG)}: {error}") from error

    @classmethod
    @abc.abstractmethod
    def _of(cls, model: ViT, image_format: ImageFormat, config: Mapping[str, Any]) -> Self:
        """Return the object of a folder with this `config.json`."""

    @abc.abstractmethod
    def _facts(self) -> dict[str, Any]:
        """Return what `config.json` says besides the format of the images."""

    @abc.abstractmethod
    def _function(self) -> Callable:
        """Return the function from normalized images (B, height, width, channels) to rows."""

    def _run(self, images: Images, batch_size: int) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the index of each image and the row that the function computes for it."""
        single = isinstance(images, str | os.PathLike) or hasattr(images, "read")
        single = single or (isinstance(images, np.ndarray) and images.ndim != 4)
        if single:
            shown = images.shape if isinstance(images, np.ndarray) else repr(images)
            raise ValueError(f"images must be a sequence of images, got one: {shown!s:.80}")
        require_whole("batch_size", batch_size, 1)
        size: Any = self.model.config.image_size
        for chosen, rows, _ in search_batches([1] * len(images), batch_size, 1):
            batch = np.zeros((rows, *size, self.model.config.num_channels), "float32")
            for row, i in enumerate(chosen):
                batch[row] = self.image_format.read(images[i], size)
            (found,) = self._runner.arrays(self.model, self.kind.task, self._function, [batch])
            if not np.isfinite(found[: len(chosen)]).all():
                raise ValueError("model must give finite numbers, got none: are weights NaN?")
            yield from zip(chosen, found, strict=False)
