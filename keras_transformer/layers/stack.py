"""Base class of the encoder and decoder stacks: blocks, shared positions, a final norm."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import keras

from keras_transformer.backend import rematerialized
from keras_transformer.backend.private import layers_inside
from keras_transformer.config import require
from keras_transformer.layers.block_options import BlockOptions
from keras_transformer.layers.layer import Layer, direct_calls
from keras_transformer.layers.relative_bias import RelativeBias
from keras_transformer.layers.residual import normalization
from keras_transformer.layers.rotary import Rotary


class Stack(Layer):
    """Base class of `Encoder` and `Decoder`.

    A subclass makes its blocks with `_new_blocks`, then the shared positions and the final norm
    with `_add_positions_and_norm`.

    Args:
        num_layers: Number of blocks.
        num_heads: Number of attention heads per block.
        d_ff: Width inside the feed-forward.
        relative_positions: Number of buckets and maximum distance of a `RelativeBias` that all
            blocks share in their self-attention; None: no such bias.
        relative_by_layer: Whether each block has a `RelativeBias` of its own (UMT5).
        rotary: Arguments of a `Rotary` that all blocks share in their self-attention; None: no
            rotary positions.
        layer_drop: Probability in [0, 1) that a block is skipped in a training step (LayerDrop, Fan
            et al. 2020, section 3.1). The stack then also works with some of its blocks removed.
        by_layer: Options that differ between blocks: those of block i are in entry i modulo the
            number of entries. The keys are fields of `BlockOptions` and "rotary".
        options: Fields of `BlockOptions` and arguments of `keras.layers.Layer`.

    Raises:
        ValueError: If `layer_drop` is out of range, `by_layer` has an unknown key, relative
            positions come with a kernel, or `relative_by_layer` without relative positions.

    Attributes:
        remat: Whether training stores only the input of each block, and computes the block again
            in the backward pass (Chen et al. 2016); set by `models.enable_remat`, not saved.
    """

    remat: bool = False

    options_class = BlockOptions

    def __init__(
        self,
        num_layers: int,
        num_heads: int,
        d_ff: int,
        relative_positions: tuple[int, int] | None = None,
        relative_by_layer: bool = False,
        rotary: dict[str, Any] | None = None,
        layer_drop: float = 0.0,
        by_layer: Sequence[Mapping[str, Any]] = (),
        **options: Any,
    ):
        stack_options = self.options_class.pop_from(options, num_heads=num_heads, d_ff=d_ff)
        super().__init__(**options)
        self.options, self.num_layers = stack_options, num_layers
        self._positions: dict[str, Any] = dict(
            relative_positions=relative_positions,
            relative_by_layer=relative_by_layer,
            rotary=rotary,
        )
        require(0 <= layer_drop < 1, "layer_drop", layer_drop, "in [0, 1)")
        self.layer_drop = layer_drop
        if layer_drop:
            self.seed_generator = keras.random.SeedGenerator()
        self.by_layer = tuple(dict(entry) for entry in by_layer)
        if relative_positions and stack_options.kernel:
            raise ValueError(
                f"relative_positions must be None with kernel={stack_options.kernel!r}: linear "
                f"attention has no products to add a bias to, got {relative_positions}"
            )
        is_possible = relative_positions is not None or not relative_by_layer
        accepted = "False without relative_positions"
        require(is_possible, "relative_by_layer", relative_by_layer, accepted)
        known = {field.name for field in dataclasses.fields(BlockOptions)} | {"rotary"}
        for entry in self.by_layer:
            if unknown := sorted(entry.keys() - known):
                raise ValueError(f"keys of by_layer must be of {sorted(known)}, got {unknown}")

    def _block_overrides(self, i):
        """Return the options of block i that differ from those of the stack."""
        return self.by_layer[i % len(self.by_layer)] if self.by_layer else {}

    def _new_blocks(self, block_class, count, **block_settings):
        blocks = []
        for i in range(count):
            options = self.options.to_dict() | block_settings | self._block_overrides(i)
            options.pop("rotary", None)
            blocks.append(block_class(**options, dtype=self.dtype_policy, name=f"block_{i}"))
        return blocks

    def _add_positions_and_norm(self, bidirectional):
        """Make the final norm and the positions."""
        options, policy = self.options, self.dtype_policy
        relative, rotary = self._positions["relative_positions"], self._positions["rotary"]
        of_blocks = [self._block_overrides(i).get("rotary", rotary) for i in range(self.num_layers)]
        kinds: list = []
        for kind in of_blocks:
            if kind and kind not in kinds:
                kinds.append(kind)
        self.rotaries = [
            Rotary(**kind, dtype=policy, name=f"rotary_{i}" if i else "rotary")
            for i, kind in enumerate(kinds)
        ]
        self._rotary_of = [kinds.index(kind) if kind else None for kind in of_blocks]
        self.norm = None
        if options.norm_first:
            self.norm = normalization(options.norm, options.epsilon, policy, "norm")
        self.relative_bias, self.own_biases = None, []
        if relative:
            kind = dict(bidirectional=bidirectional, dtype=policy)
            of_stack = (options.num_heads, *relative)
            if self._positions["relative_by_layer"]:
                names = (f"relative_bias_{i}" for i in range(self.num_layers))
                self.own_biases = [RelativeBias(*of_stack, **kind, name=x) for x in names]
            else:
                self.relative_bias = RelativeBias(*of_stack, **kind, name="relative_bias")

    def _build(self, blocks, *shapes):
        for block in blocks:
            block.build(*shapes)
        for layer in (self.norm, self.relative_bias, *self.own_biases, *self.rotaries):
            if layer:
                layer.build(shapes[0])
        self._width = shapes[0][-1]

    @property
    def has_relative_bias(self) -> bool:
        """Whether the blocks have relative positions."""
        return bool(self.relative_bias or self.own_biases)

    @property
    def length_scaling(self) -> str | None:
        """The rotary scaling that depends on the length, "dynamic" or "longrope"; None: none."""
        kinds = {rotary.kind for rotary in self.rotaries if rotary.limit is not None}
        return min(filter(None, kinds), default=None)  # if both occur, "dynamic"

    @property
    def length_limit(self) -> int | None:
        """Maximum length of sequences with the rotary rates of short ones; None: no maximum."""
        return min((x.limit for x in self.rotaries if x.limit is not None), default=None)

    def _relative_biases(self, queries, keys):
        """Return the bias (1, N, T, S) of each block; a shared one is computed once."""
        if self.relative_bias:
            return [self.relative_bias(queries, keys)] * self.num_layers
        return [bias(queries, keys) for bias in self.own_biases]

    def _rotations(self, positions, lengths=None):
        """Return the rotation of each block, or None; equal ones are computed once."""
        rotations = [rotary(positions, lengths=lengths) for rotary in self.rotaries]
        return [None if i is None else rotations[i] for i in self._rotary_of]

    def _dropped(self, x, output):
        """Return a block's output; in training, with probability `layer_drop`, its input x."""
        if not self.layer_drop:
            return output
        is_kept = keras.random.uniform((), seed=self.seed_generator) >= self.layer_drop
        return keras.ops.where(is_kept, output, x)

    def _rematerialized(self, block, x, **options):
        """Return a block's output in training, without cache; the backward pass reruns it."""

        def output(arguments):
            # Through Keras's `__call__`: the backward pass runs outside of the stack's call.
            with direct_calls(None):
                outputs = block(arguments["x"], training=True, **arguments["options"])
            return outputs[0] if isinstance(outputs, tuple) else outputs

        layers = layers_inside(block)
        seeds = [layer.seed_generator.state for layer in layers if hasattr(layer, "seed_generator")]
        return rematerialized(output, {"x": x, "options": options}, seeds)

    def _like(self, x):
        """Return the spec of the stack's output, or None if the input x does not fit the stack."""
        has_width = self.built and len(x.shape) == 3 and x.shape[-1] == self._width
        return keras.KerasTensor(x.shape, dtype=self.compute_dtype) if has_width else None

    def get_config(self) -> dict[str, Any]:
        settings: dict[str, Any] = {"num_layers": self.num_layers, **self._positions}
        settings |= {"by_layer": self.by_layer, "layer_drop": self.layer_drop}
        return {**super().get_config(), **settings}
