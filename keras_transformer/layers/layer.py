"""Base class of the layers, whose calls inside one another cost little."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import keras

from keras_transformer.backend import IS_EAGER
from keras_transformer.backend.private import attached_mask, is_rematerialized, layers_inside


class _Outer(threading.local):
    dtype: str | None = None  # of the layer around, while one of ours runs
    fills: bool = True  # whether new weights get their initial values


_outer = _Outer()


@contextlib.contextmanager
def unfilled() -> Iterator[None]:
    """Inside it weights begin as zeros, for a model whose weights are all given afterwards.

    To draw a quarter of a billion random numbers takes longer than to read them from a file.
    """
    before, _outer.fills = _outer.fills, False
    try:
        yield
    finally:
        _outer.fills = before


def initializer(value: Any) -> Any:
    """Return the initializer of a new weight: `value`, or zeros inside `unfilled`."""
    return value if _outer.fills else "zeros"


@contextlib.contextmanager
def replacing_weights() -> Iterator[None]:
    """Inside it weights are replaced by others without a long wait.

    Keras (3.15) collects garbage for each: seconds in a process with TensorFlow. What is there
    already need not be looked through.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


class DirectCalls:
    """A mixin: called inside another such layer, a layer goes straight to its `call`.

    Before each `call` Keras casts arguments, looks for masks, fills in `training` and more: 80
    microseconds, which in a small model are more than the arithmetic. Inside a block all of that
    is known already. So layers hand `training` on by themselves, and use no implicit masks. Only
    where calls run eagerly; where they are traced they cost nothing after.
    """

    # Of the Keras layer that this is mixed into.
    built: bool
    compute_dtype: str
    quantization_mode: str | None
    call: Callable
    quantized_call: Callable

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Call the layer, directly where that is possible."""
        is_direct = IS_EAGER and self.built and not is_rematerialized(self)
        if is_direct and _outer.dtype == self.compute_dtype:
            call = self.quantized_call if self.quantization_mode else self.call
            return call(*arguments, **options)
        arguments, options = self._with_masks(arguments, options)
        with direct_calls(self) if is_direct else contextlib.nullcontext():
            return super().__call__(*arguments, **options)  # type: ignore[misc]

    def _with_masks(self, arguments, options):
        return arguments, options

    def add_weight(self, shape=None, initializer=None, **options):
        """Add a weight like `keras.layers.Layer.add_weight`; of zeros inside `unfilled`."""
        return super().add_weight(shape, initializer if _outer.fills else "zeros", **options)


@contextlib.contextmanager
def direct_calls(layer: keras.layers.Layer) -> Iterator[None]:
    """Inside it, calls of layers of this one's compute type are direct: the caller is one.

    For functions beside `call` that are made of layer calls, such as a decoding step.
    """
    before, _outer.dtype = _outer.dtype, layer.compute_dtype
    try:
        yield
    finally:
        _outer.dtype = before


class Layer(DirectCalls, keras.layers.Layer):
    """The base of the layers here.

    Masks are call arguments. The mask that Keras itself attaches to the output of `Masking` or
    `Embedding(mask_zero=True)` becomes such an argument, where that one is not given, and is
    attached to what this layer gives, too.
    """

    # Call arguments that are masks of keys, and the argument of each that has these keys.
    mask_sources: Mapping[str, str] = MappingProxyType({})

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def _with_masks(self, arguments, options):
        """The arguments of a call, Keras's masks among them where no others are given."""
        given = dict(zip(self.call_signature_parameters, arguments, strict=False)) | options
        if given.get("cache") is not None:  # whose keys are others
            return arguments, options
        found = {}
        for name, source in self.mask_sources.items():
            mask_BS = attached_mask(given.get(source))
            if mask_BS is not None and given.get(name) is None:
                found[name] = keras.ops.expand_dims(mask_BS, (1, 2))
        if not found:
            return arguments, options
        first = self.call_signature_parameters[0]
        return (given.pop(first),), given | found

    def compute_output_shape(self, *input_shapes: Any) -> Any:
        """The shapes of what a call gives, of the shapes of its first arguments."""
        inputs = [keras.KerasTensor(shape) for shape in input_shapes]
        if self.built:
            outputs = self.compute_output_spec(*inputs)
        else:  # a copy, for this one may yet be built for other shapes
            with unfilled():
                outputs = type(self).from_config(self.get_config())(*inputs)
        return keras.tree.map_structure(lambda x: x.shape, outputs)

    def compute_output_spec(self, *arguments, **options):
        """Inferred by a call; Keras would go by `compute_output_shape`, which knows no types."""
        return keras.Operation.compute_output_spec(self, *arguments, **options)

    def get_build_config(self):
        """Return the build config, and which layers inside are quantized."""
        config = super().get_build_config()
        quantized = {
            layer.path.removeprefix(f"{self.path}/"): layer.quantization_config
            for layer in layers_inside(self)
            if layer.quantization_mode
        }
        if config and quantized:
            config["quantized"] = keras.saving.serialize_keras_object(quantized)
        return config

    def build_from_config(self, config):
        """As of `keras.layers.Layer`."""
        config = dict(config or {})
        quantized = keras.saving.deserialize_keras_object(config.pop("quantized", {}))
        if not quantized:
            super().build_from_config(config)
            return
        with unfilled():
            super().build_from_config(config)
        with replacing_weights():
            for layer in layers_inside(self):
                path = layer.path.removeprefix(f"{self.path}/")
                if path in quantized and not layer.quantization_mode:
                    layer.quantize(config=quantized[path], type_check=False)
