"""Training on several devices: how batches and weights are laid out over them."""

from keras_transformer.distribution.devices import distribute

__all__ = ["distribute"]
