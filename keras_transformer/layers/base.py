"""What all layers here are: layers whose calls inside one another cost little."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import keras

from keras_transformer.ops import IS_EAGER


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
    """What a new weight begins with: `value`, or inside `unfilled` zeros."""
    return value if _outer.fills else "zeros"


class DirectCalls:
    """A mixin: called inside another such layer, a layer goes straight to its `call`.

    Before each `call` Keras casts arguments, looks for masks, fills in `training` and more: 80
    microseconds, which in a small model are more than the arithmetic. Inside a block all of that
    is known already. So layers hand `training` on by themselves, and use no implicit masks. Only
    where calls run eagerly; where they are traced they cost nothing after.
    """

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """As `keras.layers.Layer.__call__`."""
        if not (IS_EAGER and self.built) or self._remat_mode:
            return super().__call__(*arguments, **options)
        if _outer.dtype == self.compute_dtype:
            call = self.quantized_call if self.quantization_mode else self.call
            return call(*arguments, **options)
        with direct_calls(self):
            return super().__call__(*arguments, **options)

    def add_weight(self, shape=None, initializer=None, **options):
        """As `keras.layers.Layer.add_weight`; inside `unfilled`, of zeros."""
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
    """The base of the layers here."""
