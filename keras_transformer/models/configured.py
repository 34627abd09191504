"""Base class of the models: each is built from a frozen config and saved as that config."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import keras

from keras_transformer.backend import (
    BACKEND,
    copy_to_processes,
    differ_by_process,
    first_part,
    num_replicas,
)
from keras_transformer.backend.private import in_strategy, layers_inside
from keras_transformer.config import BLOCKS, Config, require
from keras_transformer.layers.blocks import WithBlocks, in_blocks
from keras_transformer.layers.layer import replacing_weights
from keras_transformer.layers.mixture_of_experts import MixtureOfExperts
from keras_transformer.layers.remainders import WithRemainder
from keras_transformer.models.overview import Overview
from keras_transformer.models.steps import WeightedSteps
from keras_transformer.optimizers import Adam
from keras_transformer.system.memory import reuse_memory

# Options that Keras 3.15 applies before it sums the gradients of a TensorFlow strategy's replicas.
_SUMMED_LATE = ("gradient_accumulation_steps", "clipnorm", "global_clipnorm", "clipvalue")


class ConfiguredModel(WeightedSteps):
    """A functional model that is built from one frozen config and saved as that config.

    A subclass has `config_class`, is made from `(config, dtype=None, **options)`, and sets `config`
    and its dtype policy `_policy`. `to_dict` and `from_dict` of the config serialize it.
    """

    config_class: type[Config]
    optional_inputs: frozenset[str] = frozenset()  # inputs that a call may leave out
    quantization: str | None = None  # mode of the weights, such as "int8"
    has_remainders: bool = False  # whether int8 weights come with the remainder of their rounding
    saved_quantization: str | None = None  # mode to which `save_folder` quantizes float weights

    def __call__(self, inputs: Any, *arguments: Any, **options: Any) -> Any:
        """Call the model on inputs in any form that `named_inputs` accepts."""
        return super().__call__(self.named_inputs(inputs), *arguments, **options)

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        """Return the output; in JAX's training steps, Keras (3.15) calls this, not `__call__`."""
        return super().call(self.named_inputs(inputs), training=training, mask=mask)

    def named_inputs(self, inputs: Any) -> Any:
        """Return inputs by name; if the model has no named inputs, return them unchanged.

        Args:
            inputs: Dict of tensors; list or tuple of them in the order of the model's inputs; or
                the first input alone.

        Raises:
            ValueError: If an input is missing or unknown.
        """
        if not isinstance(self.input, dict):
            return inputs
        names = list(self.input)
        if not isinstance(inputs, dict):
            values = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
            accepted = f"at most {len(names)}: {', '.join(names)}"
            require(len(values) <= len(names), "the number of inputs", len(values), accepted)
            inputs = dict(zip(names, values, strict=False))
        required = [name for name in names if name not in self.optional_inputs]
        known = {*names, *self.optional_inputs}
        if not set(required) <= inputs.keys() <= known:
            others = [name for name in sorted(known) if name not in required]
            raise ValueError(
                f"inputs of {type(self).__name__} must be {', '.join(required)}"
                f"{' and optionally ' if others else ''}{', '.join(others)}, "
                f"in a dict or in this order, got {', '.join(map(str, inputs)) or 'none'}"
            )
        return inputs

    def quantize(self, mode: str | None = None, remainders: bool = False, **options: Any) -> None:
        """Quantize the weights; the saved config records the mode, so loading restores it.

        Args:
            mode: See `keras.Model.quantize`.
            remainders: Whether to keep what "int8" rounds off in four more bits, which `widened`
                uses; only dense layers and token tables are then quantized.
            options: See `keras.Model.quantize`.

        Raises:
            ValueError: If `remainders` is set with a mode other than "int8", or the model has
                mixtures of experts, which stay in floats.
        """
        has_experts = any(isinstance(x, MixtureOfExperts) for x in layers_inside(self))
        require(not has_experts, "mode", mode, "None for a model with num_experts")
        with warnings.catch_warnings(), replacing_weights():
            warnings.filterwarnings("ignore", message=".*does not have a `quantize` method")
            if remainders:
                require(mode == "int8", "mode", mode, "'int8', which alone has remainders")
                for layer in layers_inside(self):
                    if isinstance(layer, WithRemainder):
                        layer.quantize(mode, remainder=True)
            else:
                super().quantize(mode, **options)
        self.quantization, self.has_remainders = mode, remainders

    def make_train_function(self, force: bool = False) -> Any:
        """Make the function that runs the training steps of `fit`.

        Raises:
            ValueError: If weights are in blocks of 4 or 8 bits.
            NotImplementedError: If an optimizer other than `Adam` of this package accumulates or
                clips gradients on several devices of TensorFlow.
        """
        reuse_memory()
        if any(isinstance(x, WithBlocks) and x.bits for x in layers_inside(self)):
            raise ValueError(
                "a model with weights in blocks of 4 or 8 bits cannot be trained: load it with "
                "precision='float32'"
            )
        if self.train_function is None:
            copy_to_processes([*self.variables, *self.optimizer.variables])
            differ_by_process()
        refused = [name for name in _SUMMED_LATE if getattr(self.optimizer, name, None)]
        in_replicas = BACKEND == "tensorflow" and num_replicas() > 1
        if refused and in_replicas and not isinstance(self.optimizer, Adam):
            raise NotImplementedError(
                f"{refused[0]} on several devices of TensorFlow needs keras_transformer's `adam`, "
                f"got {type(self.optimizer).__name__}: other optimizers sum gradients too late"
            )
        if BACKEND == "tensorflow" and not self.optimizer.built and not in_strategy(self):
            # Variables made inside a step would make TensorFlow trace the whole step twice.
            self.optimizer.build(self.trainable_variables)
        return super().make_train_function(force)

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        # Under a TensorFlow strategy, Keras 3.15 adds up the replicas' parts of the first batch to
        # infer its shape, and so fails if they differ in rows.
        if iterator is not None and num_replicas() > 1:
            iterator, data_batch = None, first_part(iterator)
        super()._maybe_symbolic_build(iterator, data_batch)

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compile a loaded model; by default, Keras skips models that override `compile`.

        A model whose loss or metrics cannot be found is loaded without them.
        """
        try:
            options = keras.saving.deserialize_keras_object(config)
        except (TypeError, ValueError) as error:
            warnings.warn(f"{self.name} is not compiled, call `compile`: {error}", stacklevel=2)
            return
        self.compile(**options)
        self.optimizer.build(self.trainable_variables)

    def summary(self, *arguments: Any, **options: Any) -> None:
        """Print the inputs, layers and output with their shapes and numbers of parameters.

        Arguments are those of `keras.Model.summary`; `expand_nested` shows the blocks of stacks.
        """
        Overview(self).summary(*arguments, **options)

    def export(
        self,
        filepath: str | os.PathLike,
        format: str = "tf_saved_model",
        verbose: bool = False,
        **options: Any,
    ) -> None:
        """Export the model in one of Keras's formats.

        Args:
            filepath: Output folder or file.
            format: See `keras.Model.export`.
            verbose: Whether Keras prints the signature, which has a line for each weight.
            options: See `keras.Model.export`.

        Raises:
            ValueError: If `format` is "tf_saved_model" with PyTorch.
        """
        if BACKEND == "torch" and format == "tf_saved_model":
            raise ValueError(
                f"format must be 'onnx' or another that Keras writes with PyTorch, got {format!r}: "
                "save the model with `save`, load it with KERAS_BACKEND=tensorflow and export there"
            )
        super().export(filepath, format=format, verbose=verbose, **options)

    def get_config(self) -> dict[str, Any]:
        config = {
            "config": self.config.to_dict(),
            "dtype": _serialized(self._policy),
            "name": self.name,
        }
        if self.quantization:
            config["quantization"] = self.quantization
        if self.has_remainders:
            config["remainders"] = True
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Self:
        config = dict(config)
        sizes = cls.config_class.from_dict(config.pop("config"))
        dtype = config.pop("dtype", None)
        if isinstance(dtype, dict):
            dtype = keras.dtype_policies.deserialize(dtype)
        quantization, remainders = config.pop("quantization", None), config.pop("remainders", False)
        with in_blocks(quantization if quantization in BLOCKS else None):
            model = cls(sizes, dtype=dtype, **config)
        if quantization in BLOCKS:
            model.quantization = quantization
        elif quantization:
            model.quantize(quantization, remainders=remainders)
        return model


def _serialized(policy):
    """Return a dtype policy as Keras serializes it, without importing TensorFlow as Keras does."""
    if type(policy) is not keras.DTypePolicy:
        return keras.dtype_policies.serialize(policy)
    name, config = type(policy).__name__, policy.get_config()
    return {"module": "keras", "class_name": name, "config": config, "registered_name": None}


@dataclass(frozen=True)
class BasedConfig(Config):
    """Config of a model on a base model. It has the fields of the base's config, too.

    Args:
        family: Class of the base model, a name in `families`.
        base: Config of the base model, as plain values.

    Attributes:
        families: Classes that the base model may have, by name.

    Raises:
        ValueError: If the family is unknown, or its config refuses a value.
    """

    families: ClassVar[Mapping[str, type[ConfiguredModel]]]
    family: str
    base: dict[str, Any]

    def __post_init__(self):
        self._check_choice("family", tuple(self.families))
        self.base_config  # noqa: B018 - checks it

    @property
    def base_config(self) -> Config:
        """Config of the base model."""
        return self.families[self.family].config_class.from_dict(self.base)

    def __getattr__(self, name: str) -> Any:
        """Return a field of the base's config, such as `max_length`."""
        if name.startswith("_") or name not in self.base:
            raise AttributeError(name)
        return self.base[name]
