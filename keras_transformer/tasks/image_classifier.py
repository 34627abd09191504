"""The `ImageClassifier`, which finds the classes of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keras_transformer.config import require
from keras_transformer.models import ViT
from keras_transformer.models.problems import problem_of
from keras_transformer.saved.kinds import kind_of
from keras_transformer.tasks.image_format import ImageFormat
from keras_transformer.tasks.image_task import Images, ImageTask
from keras_transformer.tasks.labels import (
    Label,
    Value,
    activated,
    check_threshold,
    in_a_line,
    labelled,
)


class ImageClassifier(ImageTask):
    """An image classifier: a ViT that `training.image_classification` or `import` saved.

    ```python
    classifier = ImageClassifier.load("saved_models/vit-mnist")
    (labels,) = classifier.classify(["digit.png"])
    print(labels[0].label, labels[0].probability)
    ```

    Images are resized, cropped if the model's format has a crop (DeiT, DINOv2), and normalized like
    the images that the model was trained on. Resizing keeps their proportions only if the format
    says so (DINOv2).

    Args:
        model: A `ViT`.
        classes: Names of the classes, in the order of the model's outputs.
        image_format: Format of the images that the model was trained on.

    Raises:
        ValueError: If the numbers of classes or of channels are not the model's.
    """

    kind = kind_of("ImageClassifier")

    def __init__(self, model: ViT, classes: Sequence[str], image_format: ImageFormat):
        count = model.config.num_classes
        are_names = isinstance(classes, list | tuple) and all(isinstance(x, str) for x in classes)
        accepted = f"{count} names, one for each of the model's classes"
        require(are_names and len(classes) == count, "classes", classes, accepted)
        super().__init__(model, image_format)
        self.classes = tuple(classes)

    def classify(
        self, images: Images, *, threshold: float | None = None, batch_size: int = 32
    ) -> list[list[Label] | list[Value]]:
        """Return the classes of each image with their probabilities, the most probable first.

        If the model is a regression, return a `Value` for each class instead, in the order of
        `classes`.

        Args:
            images: Arrays (height, width[, channels]) of bytes, or of floats from 0 to 1; one
                array (B, height, width, channels) of them; or image files of any format that Pillow
                reads, such as PNG and JPEG. A model of colour images also takes grey files.
            threshold: See `TextClassifier.classify`.
            batch_size: Images per batch.

        Raises:
            ImportError: If Pillow is missing, and a file must be read or an image resized.
            FileNotFoundError: If a file does not exist.
            ValueError: If an argument is out of range, a file cannot be read, or an image has
                another number of channels than the model.
        """
        check_threshold(threshold, self.problem)
        rows = dict(self._run(images, batch_size))
        return [
            labelled(self.classes, rows[i], self.problem, threshold) for i in range(len(images))
        ]

    @property
    def problem(self) -> str:
        """The meaning of the model's outputs, one of `models.problems.PROBLEM_TYPES`."""
        return problem_of(self.model.config.problem_type, len(self.classes))

    def in_words(self, found: list[Label] | list[Value]) -> str:
        """Return the labels of an image as a line of text; see `labels.in_a_line`."""
        return in_a_line(found, self.problem)

    def function(self):
        return lambda images: activated(self.model(images), self.problem)

    def _facts(self):
        return {"classes": list(self.classes)}

    @classmethod
    def _of(cls, model, image_format, config):
        classes: Any = config.get("classes")
        return cls(model, classes, image_format)
