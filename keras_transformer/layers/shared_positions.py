"""Positions that the blocks of a stack share: relative biases and rotations of queries and keys.

The paper's model has neither; it adds sinusoids to the embeddings.
"""

from __future__ import annotations

from typing import Any

from keras_transformer.backend import cache_places, quick
from keras_transformer.config import require
from keras_transformer.layers.layer import Layer
from keras_transformer.layers.relative_bias import RelativeBias
from keras_transformer.layers.rotary import Rotary


class SharedPositionsMixin(Layer):
    """Base class of `Stack`: the layers `RelativeBias` and `Rotary` of its arguments."""

    num_layers: int

    def _set_positions(self, relative_positions, relative_by_layer, rotary):
        """Check and keep the arguments of `Stack` for positions."""
        self._positions: dict[str, Any] = dict(
            relative_positions=relative_positions,
            relative_by_layer=relative_by_layer,
            rotary=rotary,
        )
        if relative_positions and self.options.kernel:
            raise ValueError(
                f"relative_positions must be None with kernel={self.options.kernel!r}: linear "
                f"attention has no products to add a bias to, got {relative_positions}"
            )
        is_possible = relative_positions is not None or not relative_by_layer
        accepted = "False without relative_positions"
        require(is_possible, "relative_by_layer", relative_by_layer, accepted)

    def _add_positions(self, bidirectional):
        """Make the layers; blocks with equal arguments share a `Rotary`."""
        policy = self.dtype_policy
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
        self.relative_bias, self.own_biases = None, []
        if relative:
            kind = dict(bidirectional=bidirectional, dtype=policy)
            of_stack = (self.options.num_heads, *relative)
            if self._positions["relative_by_layer"]:
                names = (f"relative_bias_{i}" for i in range(self.num_layers))
                self.own_biases = [RelativeBias(*of_stack, **kind, name=x) for x in names]
            else:
                self.relative_bias = RelativeBias(*of_stack, **kind, name="relative_bias")

    @property
    def has_relative_bias(self) -> bool:
        """Whether the blocks have relative positions."""
        return bool(self.relative_bias or self.own_biases)

    @property
    def length_scaling(self) -> str | None:
        """The rotary scaling that depends on the length, "dynamic" or "longrope", or None."""
        kinds = {rotary.kind for rotary in self.rotaries if rotary.limit is not None}
        return min(filter(None, kinds), default=None)  # if both occur, "dynamic"

    @property
    def length_limit(self) -> int | None:
        """Maximum length of sequences with the rotary rates of short ones; None: no maximum."""
        return min((x.limit for x in self.rotaries if x.limit is not None), default=None)

    def _biases_and_rotations(
        self, x, positions=None, lengths=None, cache=None, index=0, beam_size=1
    ):
        """Return two lists: the bias (1, N, T, S) and the rotation of each block, or None.

        The arguments are those of `Decoder`. A bias is the same for all beams.
        """
        biases = [None] * self.num_layers
        needs_positions = self.rotaries and positions is None
        if self.has_relative_bias or needs_positions:
            length = quick.shape(x)[1] // beam_size if beam_size > 1 else quick.shape(x)[1]
            steps = quick.arange(length, dtype="int32")
            queries = steps if isinstance(index, int) and index == 0 else index + steps
        if self.has_relative_bias:
            keys = steps
            if cache is not None:
                places = cache_places(cache[0]["self"]["key"], (index + length) * beam_size)
                keys = quick.arange(places // beam_size, dtype="int32")
            biases = self._relative_biases(queries, _for_beams(keys, beam_size))
        if needs_positions:
            positions = _for_beams(queries, beam_size)
        return biases, self._rotations(positions, lengths)

    def _relative_biases(self, queries, keys):
        """Return the bias of each block; a shared one is computed once."""
        if self.relative_bias:
            return [self.relative_bias(queries, keys)] * self.num_layers
        return [bias(queries, keys) for bias in self.own_biases]

    def _rotations(self, positions, lengths=None):
        """Return the rotation of each block, or None; equal ones are computed once."""
        rotations = [rotary(positions, lengths=lengths) for rotary in self.rotaries]
        return [None if i is None else rotations[i] for i in self._rotary_of]


def _for_beams(positions, beam_size):
    """Return each position once for each beam: beams are decoded one position at a time."""
    return quick.repeat(positions, beam_size, axis=0) if beam_size > 1 else positions
