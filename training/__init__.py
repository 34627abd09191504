"""Runs: one flat script a task on the library's parts, and their recipes."""

import keras_transformer  # noqa: F401  (chooses the backend, before anything imports Keras)
