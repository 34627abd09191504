"""The `ImageEmbedder`, which computes a vector for each image."""

from __future__ import annotations

import numpy as np
from keras import ops

from keras_transformer.saved.kinds import kind_of
from keras_transformer.tasks.image_task import Images, ImageTask
from keras_transformer.tasks.similarity import unit


class ImageEmbedder(ImageTask):
    """An image embedder: a vector for each image, usually by a ViT without a classifier.

    ```python
    embedder = ImageEmbedder.load("saved_models/vit-in21k")
    vectors = embedder.embed(["cat.png", "dog.png"])
    ```

    The vector is the last hidden state of the class token (Dosovitskiy et al. 2021, equation 4).
    Images are resized, cropped and normalized as for an `ImageClassifier`.

    Args:
        model: A `ViT`; its classifier, if it has one, is not used.
        image_format: Format of the images that the model was trained on.

    Raises:
        ValueError: If the number of channels is not the model's.
    """

    kind = kind_of("ImageEmbedder")

    def embed(self, images: Images, *, normalize: bool = True, batch_size: int = 32) -> np.ndarray:
        """Return the vector of each image: (n, D), float32.

        Args:
            images, batch_size: See `ImageClassifier.classify`.
            normalize: Whether vectors are scaled to norm 1, so that their dot products are cosines.

        Raises:
            ImportError, FileNotFoundError, ValueError: See `ImageClassifier.classify`.
        """
        vectors = np.empty((len(images), self.model.config.d_model), "float32")
        for i, vector in self._run(images, batch_size):
            vectors[i] = vector
        return unit(vectors) if normalize else vectors

    def function(self):
        return lambda images: ops.cast(self.model.hidden(images)[:, 0], "float32")

    def _facts(self):
        return {}

    @classmethod
    def _of(cls, model, image_format, config):
        return cls(model, image_format)
