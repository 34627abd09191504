"""Base class of the models: each is built from a frozen config and saved as that config."""

from __future__ import annotations

import os
import warnings
from typing import Any, Self

import keras

from keras_transformer.backend import BACKEND, reuse_memory
from keras_transformer.backend.private import in_strategy
from keras_transformer.layers.layer import replacing_weights


class ConfiguredModel(keras.Model):
    """A functional model that is built from one frozen config and saved as that config.

    A subclass has `config_class`, is made from `(config, dtype=None, **options)`, and sets `config`
    and its dtype policy `_policy`. `to_dict` and `from_dict` of the config serialize it.
    """

    quantization: str | None = None  # mode of the weights, such as "int8"

    def quantize(self, mode: str | None = None, **options: Any) -> None:
        """Quantize the weights; the saved config records the mode, so loading restores it."""
        with warnings.catch_warnings(), replacing_weights():
            warnings.filterwarnings("ignore", message=".*does not have a `quantize` method")
            super().quantize(mode, **options)
        self.quantization = mode

    def make_train_function(self, force: bool = False) -> Any:
        """Make the function that `fit` calls for each step."""
        reuse_memory()
        if BACKEND == "tensorflow" and not self.optimizer.built and not in_strategy(self):
            # Variables made inside a step would make TensorFlow trace the whole step twice.
            self.optimizer.build(self.trainable_variables)
        return super().make_train_function(force)

    def export(
        self, filepath: str | os.PathLike, format: str = "tf_saved_model", **options: Any
    ) -> None:
        """Export the model in one of Keras's formats."""
        if BACKEND == "torch" and format == "tf_saved_model":
            raise ValueError(
                f"format must be 'onnx' or another that Keras writes with PyTorch, got {format!r}: "
                "save the model with `save`, load it with KERAS_BACKEND=tensorflow and export there"
            )
        super().export(filepath, format=format, **options)

    def get_config(self) -> dict[str, Any]:
        config = {
            "config": self.config.to_dict(),
            "dtype": keras.dtype_policies.serialize(self._policy),
            "name": self.name,
        }
        return config | ({"quantization": self.quantization} if self.quantization else {})

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Self:
        config = dict(config)
        sizes = cls.config_class.from_dict(config.pop("config"))
        dtype = config.pop("dtype", None)
        if isinstance(dtype, dict):
            dtype = keras.dtype_policies.deserialize(dtype)
        quantization = config.pop("quantization", None)
        model = cls(sizes, dtype=dtype, **config)
        if quantization:
            model.quantize(quantization)
        return model
