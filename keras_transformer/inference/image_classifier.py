"""Classes of images."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from keras import ops

from keras_transformer.config import require, require_whole
from keras_transformer.inference.folder import CONFIG, load_model, read_config, save_folder
from keras_transformer.inference.image_format import ImageFormat
from keras_transformer.inference.runner import Runner, search_batches
from keras_transformer.inference.text_classifier import Label, ranked
from keras_transformer.models import ViT


class ImageClassifier:
    """Finds the class of each image with what `training.image_classification` or `import` saved.

    ```python
    classifier = ImageClassifier.load("saved_models/vit-mnist")
    (labels,) = classifier.classify(["digit.png"])
    print(labels[0].label, labels[0].probability)
    ```

    Images are resized to the model's size, without regard to their proportions, and normalized
    like those that it was trained on.

    Args:
        model: A `ViT`.
        classes: Name of each class.
        image_format: Format of the images that the model was trained on.

    Raises:
        ValueError: If the numbers of classes or of channels are not the model's.
    """

    what, task = "image classifier", "image_classification"

    def __init__(self, model: ViT, classes: Sequence[str], image_format: ImageFormat):
        count, channels = model.config.num_classes, model.config.num_channels
        fits = isinstance(classes, list | tuple) and all(isinstance(x, str) for x in classes)
        accepted = f"{count} names, one for each of the model's classes"
        require(fits and len(classes) == count, "classes", classes, accepted)
        found, accepted = len(image_format.mean), f"{channels}, the model's"
        require(found == channels, "the channels of image_format", found, accepted)
        self.model, self.classes, self.image_format = model, tuple(classes), image_format
        self._runner = Runner()

    def classify(
        self,
        images: Sequence[str | os.PathLike | BinaryIO | np.ndarray] | np.ndarray,
        *,
        batch_size: int = 32,
    ) -> list[list[Label]]:
        """Return all classes of each image with their probabilities, the most probable first.

        Args:
            images: Arrays (height, width[, channels]) of bytes, or of floats from 0 to 1; one
                array (B, height, width, channels) of them; or image files, PNG, JPEG and all that
                Pillow reads. A grey file fits a model of colours, too.
            batch_size: Images per batch.

        Raises:
            ImportError: If Pillow is missing, which reads files and resizes.
            FileNotFoundError: If there is no such file.
            ValueError: If an argument is out of range, a file cannot be read, or an image has
                other channels than those that the model was trained on.
        """
        single = isinstance(images, str | os.PathLike) or hasattr(images, "read")
        single = single or (isinstance(images, np.ndarray) and images.ndim != 4)
        if single:
            shown = images.shape if isinstance(images, np.ndarray) else repr(images)
            raise ValueError(f"images must be a sequence of images, got one: {shown!s:.80}")
        require_whole("batch_size", batch_size, 1)
        size: Any = self.model.config.image_size
        channels = self.model.config.num_channels
        found: list[list[Label]] = [[] for _ in images]
        for chosen, rows, _ in search_batches([1] * len(images), batch_size, 1):
            batch = np.zeros((rows, *size, channels), "float32")
            for row, i in enumerate(chosen):
                batch[row] = self.image_format.read(images[i], size)
            (odds,) = self._runner.arrays(self.model, "odds", self._function, [batch])
            if not np.isfinite(odds[: len(chosen)]).all():
                raise ValueError("model must give finite logits, got none: are weights NaN?")
            for i, own in zip(chosen, odds, strict=False):
                found[i] = ranked(self.classes, own)
        return found

    def _function(self):
        return lambda images: ops.softmax(ops.cast(self.model(images), "float32"), axis=-1)

    def save(self, folder: str | os.PathLike, base: str | os.PathLike | None = None) -> None:
        """Write `model.keras` and `config.json`; any backend can load them.

        Args:
            folder: Folder to write.
            base: See `Translator.save`.
        """
        facts = {"task": self.task, "classes": list(self.classes), **asdict(self.image_format)}
        save_folder(folder, self.model, None, facts, base=base)

    @classmethod
    def load(cls, folder: str | os.PathLike, precision: str | None = None) -> ImageClassifier:
        """Load what `save`, a training script or `keras-transformer import` wrote.

        Args:
            folder: Folder of the saved model.
            precision: See `Translator.load`; None: as saved.

        Raises:
            ValueError: If the folder is not such a model, or a file in it is broken.
        """
        config = read_config(folder, cls.what, None, precision)
        model = load_model(folder, config, None, precision)
        if not isinstance(model, ViT):
            raise ValueError(f"{folder} is not a saved {cls.what} but a {type(model).__name__}")
        given: Any = {name: config.get(name) for name in ("mean", "deviation")}
        try:
            # Older folders have no "resampling".
            image_format = ImageFormat(resampling=config.get("resampling", "bilinear"), **given)
            return cls(model, config.get("classes"), image_format)  # type: ignore[arg-type]
        except ValueError as error:
            raise ValueError(f"{Path(folder, CONFIG)}: {error}") from error
