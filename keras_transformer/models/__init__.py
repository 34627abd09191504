"""Whole models: functional graphs built from one frozen config."""

from keras_transformer.models.transformer import Transformer

__all__ = ["Transformer"]
