"""Trained translators in forms that others run: a TensorFlow SavedModel of strings."""

from keras_transformer.export.saved_model import saved_model

__all__ = ["saved_model"]
