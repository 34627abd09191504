"""Scripts, one a task, on the parts of the library; `recipes` is the folder of the package."""

import keras_transformer  # noqa: F401  (chooses the backend, before anything imports Keras)
