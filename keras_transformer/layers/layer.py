"""Base class of the layers, with a mixin that makes nested calls cheap."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gc
import inspect
import math
import threading
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Self

import keras

from keras_transformer.backend import IS_EAGER, decided_portability, quick, zeros
from keras_transformer.backend.private import (
    attached_mask,
    is_rematerialized,
    layers_inside,
    own_policy,
)
from keras_transformer.config import BLOCKS
from keras_transformer.layers.blocks import in_blocks
from keras_transformer.names import refuse_unknown

# Largest n for which the dtype represents every integer from 0 to n.
_EXACT = {"bfloat16": 2**8, "float16": 2**11, "float32": 2**24}
_KERAS_KEYWORDS = ("name", "dtype", "trainable", "autocast", "activity_regularizer")


class _Outer(threading.local):
    """State of a thread: the dtype of the running layer, and what `skip_init` sets."""

    dtype: str | None = None  # compute dtype of the running layer; None: no layer runs
    initializes: bool = True  # whether new weights get their initial values
    room: float = math.inf  # elements that new weights and tables may still allocate


_outer = _Outer()


@contextlib.contextmanager
def skip_init(most: float = math.inf) -> Iterator[None]:
    """Make new weights zeros in the context, for a model whose weights are all assigned later.

    Drawing a quarter of a billion random numbers takes longer than reading them from a file.

    Args:
        most: Maximum number of elements of all new weights and tables together, as `claim` counts
            them; by default there is no maximum.
    """
    before = _outer.initializes, _outer.room
    _outer.initializes, _outer.room = False, min(most, _outer.room)
    try:
        yield
    finally:
        _outer.initializes, _outer.room = before


def claim(*shape: int) -> None:
    """Count the elements of a weight or table before it is allocated.

    Raises:
        ValueError: If all elements so far exceed the maximum of the active `skip_init`.
    """
    size = math.prod(shape)
    if size > _outer.room:
        raise ValueError(
            f"the config asks for much more than the weights beside it hold: an array {shape}, "
            f"where there is room for {_outer.room:.0f} numbers"
        )
    _outer.room -= size


@keras.saving.register_keras_serializable("keras_transformer")
class ClaimedZeros(keras.initializers.Zeros):
    """Zeros that `claim` counts: the initial value of weights inside `skip_init`."""

    def __call__(self, shape: Any, dtype: Any = None) -> Any:
        claim(*shape)
        return zeros(shape, keras.backend.standardize_dtype(dtype))


def initializer(value: Any) -> Any:
    """Return the initializer of a new weight: `value`, or zeros inside `skip_init`."""
    return value if _outer.initializes else ClaimedZeros()


@contextlib.contextmanager
def replacing_weights() -> Iterator[None]:
    """Make the replacement of weights fast in the context.

    Keras (3.15) collects garbage for each replaced weight, which takes seconds in a process with
    TensorFlow. `gc.freeze` excludes the objects that already exist.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


class DirectCalls:
    """A mixin for layers: a call from inside another such layer goes straight to `call`.

    Before each `call`, Keras casts arguments, looks for masks, fills in `training` and more. This
    takes longer than the arithmetic of a small layer, and is not needed inside a block. In return,
    layers must pass `training` explicitly and use no implicit masks. Calls are direct only on
    PyTorch. On other backends `call` is usually traced, and costs nothing after the trace.
    """

    # Attributes of the Keras layer that this is mixed into.
    built: bool
    compute_dtype: str
    quantization_mode: str | None
    call: Callable
    quantized_call: Callable

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Call the layer, directly where possible."""
        direct = self._direct_call() if IS_EAGER else None
        if direct:
            _, compute_dtype, is_quantized = direct
            if _outer.dtype == compute_dtype:
                call = self.quantized_call if is_quantized else self.call
                return call(*arguments, **options)
        arguments, options = self._with_masks(arguments, options)
        with direct_calls(self) if direct else contextlib.nullcontext():
            return super().__call__(*arguments, **options)  # type: ignore[misc]  # Keras's

    def _direct_call(self):
        """Return what a direct call needs: dtype policy, compute dtype, whether it is quantized.

        None if all calls must go through Keras's `__call__`. The result is cached until the policy
        changes: Keras's properties take several microseconds.
        """
        direct, policy = self.__dict__.get("_found_direct_call"), own_policy(self)
        if direct is None or direct[0] is not policy:
            if not self.built or is_rematerialized(self):
                return None
            direct = policy, self.compute_dtype, bool(self.quantization_mode)
            if policy is not None:
                self.__dict__["_found_direct_call"] = direct  # not tracked by Keras
        return direct

    def _with_masks(self, arguments, options):
        return arguments, options

    def add_weight(self, shape: Any = None, initializer: Any = None, **options: Any) -> Any:
        """Add a weight like `keras.layers.Layer.add_weight`; inside `skip_init` it is zeros."""
        initial = initializer if _outer.initializes else ClaimedZeros()
        return super().add_weight(shape, initial, **options)  # type: ignore[misc]  # Keras's


@contextlib.contextmanager
def direct_calls(layer: keras.layers.Layer | None) -> Iterator[None]:
    """Make calls of layers direct in the context, if they have this layer's compute dtype.

    It is for functions other than `call` that call layers, such as a decoding step. With None, the
    next call goes through Keras's `__call__`, and the calls inside it are direct.
    """
    before, _outer.dtype = _outer.dtype, layer and layer.compute_dtype
    try:
        with decided_portability():
            yield
    finally:
        _outer.dtype = before


@functools.cache
def _keywords(cls):
    """Return the names of a layer's keyword arguments."""
    names = {*_KERAS_KEYWORDS}
    for base in cls.__mro__[: cls.__mro__.index(keras.layers.Layer)]:
        if "__init__" in vars(base):
            names |= inspect.signature(base.__init__).parameters.keys()
    if cls.options_class:
        names |= {field.name for field in dataclasses.fields(cls.options_class)}
        names |= {*cls.options_class.old_names}
    return names - {"self", "kwargs", "options"}


class Layer(DirectCalls, keras.layers.Layer):
    """Base class of the layers in this package.

    Masks are call arguments. If such an argument is None, the layer uses the mask that Keras
    attached to its input (`Masking`, `Embedding(mask_zero=True)`), except in a call with a `cache`.
    """

    # Maps each call argument that is a mask of keys to the argument that holds these keys.
    mask_sources: Mapping[str, str] = MappingProxyType({})
    whole_arguments: tuple[str, ...] = ()  # call arguments that are tensors of whole numbers
    options_class: type | None = None  # declared options that the layer takes by name
    options: Any = MappingProxyType({})  # an instance of it, or a dict of constructor arguments

    def __new__(cls, *arguments: Any, **named: Any) -> Self:
        """Make a layer; for an unknown argument, raise TypeError that suggests a name."""
        if cls.__init__.__module__.startswith(__name__.partition(".")[0]):  # not a user's subclass
            refuse_unknown(cls.__name__, named, _keywords(cls))  # type: ignore[arg-type]  # a class is hashable
        return super().__new__(cls, *arguments, **named)

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self.supports_masking = True

    def _with_masks(self, arguments, options):
        """Return the arguments of a call, with Keras's masks where no others are given."""
        named = dict(zip(self.call_signature_parameters, arguments, strict=False)) | options
        if named.get("cache") is not None:  # the cache holds more keys than Keras's mask covers
            return arguments, options
        masks = {}
        for name, source in self.mask_sources.items():
            mask_BS = attached_mask(named.get(source))
            if mask_BS is not None and named.get(name) is None:
                masks[name] = keras.ops.expand_dims(mask_BS, (1, 2))
        if not masks:
            return arguments, options
        first = self.call_signature_parameters[0]
        return (named.pop(first),), named | masks

    def compute_output_shape(self, *shapes: Any, **named_shapes: Any) -> Any:
        """Return the shapes of a call's outputs, from the shapes of its tensors.

        Args:
            shapes: Shapes of the first call arguments.
            named_shapes: Shapes of other call arguments: `memory_shape` is that of `memory`.
                Keras's `summary` passes all shapes in this way.
        """
        by_name = dict(zip(self.call_signature_parameters, shapes, strict=False))
        by_name |= {name.removesuffix("_shape"): shape for name, shape in named_shapes.items()}
        tensors = {
            name: keras.KerasTensor(shape, "int32" if name in self.whole_arguments else None)
            for name, shape in by_name.items()
            if shape is not None
        }
        return keras.tree.map_structure(lambda x: x.shape, self.compute_output_spec(**tensors))

    def compute_output_spec(self, *arguments: Any, **options: Any) -> Any:
        """Infer the specs by a call; Keras would use `compute_output_shape`, without dtypes."""
        if self.built:
            return keras.Operation.compute_output_spec(self, *arguments, **options)
        with skip_init():  # a copy: this layer may still be built for other shapes
            return type(self).from_config(self.get_config())(*arguments, **options)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the layer: those of Keras's layers, and its `options`."""
        options = self.options.to_dict() if self.options_class else self.options
        return {**super().get_config(), **options}

    def get_build_config(self) -> dict[str, Any] | None:
        """Return the build config, including how sub-layers are quantized."""
        config = super().get_build_config()
        quantized = {
            layer.path.removeprefix(f"{self.path}/"): layer.quantization_config
            for layer in layers_inside(self)
            if layer.quantization_mode and layer.quantization_mode not in BLOCKS
        }
        if config and quantized:
            config["quantized"] = keras.saving.serialize_keras_object(quantized)
        modes = {layer.quantization_mode for layer in layers_inside(self)} & BLOCKS.keys()
        if config and modes:
            config["blocks"] = min(modes)  # with "q4", some layers have 8 bits
        return config

    def build_from_config(self, config: dict[str, Any] | None) -> None:
        """Build the layer from its build config, and quantize the sub-layers named there."""
        config = dict(config or {})
        quantized = keras.saving.deserialize_keras_object(config.pop("quantized", {}))
        blocks = config.pop("blocks", None)
        if not quantized:
            with in_blocks(blocks):
                super().build_from_config(config)
            return
        with skip_init():
            super().build_from_config(config)
        with replacing_weights():
            for layer in layers_inside(self):
                path = layer.path.removeprefix(f"{self.path}/")
                if path in quantized and not layer.quantization_mode:
                    layer.quantize(config=quantized[path], type_check=False)


def whole_numbers(name: str, x: Any, largest: int) -> Any:
    """Return a call argument as integers; `keras.Input` and `Sequential` make it floats by default.

    Args:
        name: Name of the argument, for the error.
        x: The argument.
        largest: Largest number that it may contain.

    Raises:
        ValueError: If its dtype does not hold all these numbers exactly.
    """
    dtype = keras.backend.standardize_dtype(x.dtype)
    if dtype in ("int32", "int64"):
        return x
    if largest > _EXACT.get(dtype, largest):
        raise ValueError(
            f"{name} must be whole numbers, got {dtype}, which is exact up to {_EXACT[dtype]} "
            'only: put keras.Input((None,), dtype="int32") before this layer'
        )
    return quick.cast(x, "int32")
