"""Base class of the objects that run a ViT for a task: loading, saving and batches."""

from __future__ import annotations

import abc
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Self

import numpy as np

from keras_transformer.backend import COMPILES_EACH_SHAPE
from keras_transformer.config import require, require_whole
from keras_transformer.models import ViT
from keras_transformer.running.batches import search_batches
from keras_transformer.running.runner import Runner
from keras_transformer.saved.contents import CONFIG, read_config
from keras_transformer.saved.folder import load_model, save_folder
from keras_transformer.saved.kinds import Kind
from keras_transformer.system.named_models import located
from keras_transformer.tasks.image_format import ImageFormat

Images = Sequence[str | os.PathLike | BinaryIO | np.ndarray] | np.ndarray


class ImageTask(abc.ABC):
    """Base class of the tasks for images: a ViT with the format of its images.

    A subclass turns the outputs of the ViT into the results of one task.

    Images are resized, cropped if the model's format has a crop (DeiT, DINOv2), and normalized like
    the images that the model was trained on. Resizing keeps their proportions only if the format
    says so (DINOv2).

    Args:
        model: A `ViT`.
        image_format: Format of the images that the model was trained on.

    Raises:
        ValueError: If the number of channels is not the model's.
    """

    kind: ClassVar[Kind]

    def __init__(self, model: ViT, image_format: ImageFormat):
        channels = model.config.num_channels
        count, accepted = len(image_format.mean), f"{channels}, the model's"
        require(count == channels, "the channels of image_format", count, accepted)
        self.model, self.image_format = model, image_format
        self._runner = Runner()

    def save(self, folder: str | os.PathLike, base: str | os.PathLike | None = None) -> None:
        """Write `model.keras`, `config.json` and a model card; any backend can load them.

        Args:
            folder: Folder to write to; created if missing.
            base: See `Translator.save`.
        """
        facts = {"task": self.kind.task, **self._facts(), **asdict(self.image_format)}
        save_folder(folder, self.model, None, facts, base=base)

    @classmethod
    def load(cls, folder: str | os.PathLike, precision: str | None = None) -> Self:
        """Load a ViT that `save`, a training script or `keras-transformer import` wrote.

        Args:
            folder: Folder of the saved model.
            precision: See `Translator.load`; None: as saved.

        Raises:
            ValueError: If the folder has no model for this task, or a file in it is broken.
        """
        folder = located(folder)
        config = read_config(folder, cls.kind.what, None, precision)
        model = load_model(folder, config, None, precision)
        if not isinstance(model, ViT):
            kind = type(model).__name__
            raise ValueError(f"{folder} is not a saved {cls.kind.what} but a {kind}")
        fields: Any = {name: config.get(name) for name in ("mean", "deviation")}
        try:
            # Folders of older versions lack these fields.
            newer = ("resampling", "crop", "keep_proportions")
            fields |= {x: config[x] for x in newer if x in config}
            image_format = ImageFormat(**fields)
            return cls._of(model, image_format, config)
        except ValueError as error:
            raise ValueError(f"{Path(folder, CONFIG)}: {error}") from error

    @classmethod
    @abc.abstractmethod
    def _of(cls, model: ViT, image_format: ImageFormat, config: Mapping[str, Any]) -> Self:
        """Make the object from its parts and the `config.json` of its folder."""

    @abc.abstractmethod
    def _facts(self) -> dict[str, Any]:
        """Return the entries of `config.json` besides the task and the format of the images."""

    @abc.abstractmethod
    def function(self) -> Callable:
        """Return the function from normalized images (B, height, width, channels) to (B, ...)."""

    def _run(self, images: Images, batch_size: int) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the index of each image and its row of the result of `function`."""
        single = isinstance(images, str | os.PathLike) or hasattr(images, "read")
        single = single or (isinstance(images, np.ndarray) and images.ndim != 4)
        if single:
            shown = images.shape if isinstance(images, np.ndarray) else repr(images)
            raise ValueError(f"images must be a sequence of images, got one: {shown!s:.80}")
        require_whole("batch_size", batch_size, 1)
        size: Any = self.model.config.image_size
        for chosen, rows, _ in search_batches(
            [1] * len(images), batch_size, 1, COMPILES_EACH_SHAPE
        ):
            batch = np.zeros((rows, *size, self.model.config.num_channels), "float32")
            for row, i in enumerate(chosen):
                batch[row] = self.image_format.read(images[i], size)
            (outputs,) = self._runner.arrays(self.model, self.kind.task, self.function, [batch])
            if not np.isfinite(outputs[: len(chosen)]).all():
                raise ValueError("model must give finite numbers, got none: are weights NaN?")
            yield from zip(chosen, outputs, strict=False)
