"""Symbolic outputs of the stacks, without a trace of all blocks."""

from __future__ import annotations

from typing import Any

import keras

from keras_transformer.layers.layer import Layer
from keras_transformer.layers.linear_attention import num_features


def _like(stack, x):
    """Return the spec of the stack's output; None if it is not built or x has another width."""
    has_width = stack.built and len(x.shape) == 3 and x.shape[-1] == stack._width
    return keras.KerasTensor(x.shape, dtype=stack.compute_dtype) if has_width else None


class EncoderSpecMixin(Layer):
    """Base class of `Encoder`: its symbolic output."""

    def compute_output_spec(self, x: Any, *arguments: Any, **options: Any) -> Any:
        """Return the output spec, where possible without tracing the whole stack."""
        output = _like(self, x)
        if output is None:
            return super().compute_output_spec(x, *arguments, **options)
        return output


class DecoderSpecMixin(Layer):
    """Base class of `Decoder`: its symbolic output and cache."""

    blocks: list
    cross_attention: bool
    recurrence: str | None

    def compute_output_spec(
        self, x: Any, memory: Any = None, *arguments: Any, cache: Any = None, **options: Any
    ) -> Any:
        """Return the output specs, where possible without tracing the whole stack."""
        output = _like(self, x)
        if output is None or cache is not None or self.cross_attention == (memory is None):
            return super().compute_output_spec(x, memory, *arguments, cache=cache, **options)
        sources = {"self": x}
        if self.cross_attention:
            sources["cross"] = memory

        def spec(block, part, source):
            settings, (rows, length) = block.options, source.shape[:2]
            if part == "self" and self.recurrence:
                return {"state": keras.KerasTensor((rows, x.shape[-1]), dtype="float32")}
            heads = settings.num_heads
            head_dim = settings.head_dim or x.shape[-1] // heads
            if settings.kernel:
                shape = rows, heads, num_features(settings.kernel, head_dim), head_dim + 1
                return {"state": keras.KerasTensor(shape, dtype="float32")}
            shape = rows, settings.num_kv_heads or heads, length, head_dim
            dtype = self.compute_dtype
            return {name: keras.KerasTensor(shape, dtype=dtype) for name in ("key", "value")}

        caches = [
            {part: spec(block, part, y) for part, y in sources.items()} for block in self.blocks
        ]
        return output, caches
