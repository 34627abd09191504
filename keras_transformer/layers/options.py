"""The options of blocks: each is declared, documented, checked and saved here, once.

A layer takes them as keyword arguments, keeps them in its `options`, and a stack hands them to its
blocks, a block to its sub-layers, as a whole.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True, kw_only=True)
class Options:
    """Base of the options of a layer."""

    @classmethod
    def taken(cls, given: dict[str, Any], **others: Any) -> Self:
        """Return the options among a layer's keyword arguments, which are removed from these.

        Args:
            given: the keyword arguments.
            others: options that the layer has as arguments of its own.
        """
        names = {field.name for field in dataclasses.fields(cls)} & given.keys()
        return cls(**others, **{name: given.pop(name) for name in names})

    def part(self, cls: type[Options]) -> dict[str, Any]:
        """Return those of these options that are of another class, for a sub-layer."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(cls)}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for `get_config`."""
        return dataclasses.asdict(self)


@dataclass(frozen=True, kw_only=True)
class AttentionOptions(Options):
    """Options of `MultiHeadAttention`.

    Args:
        num_heads: N; must divide the width of the query.
        num_kv_heads: K heads of keys and values, each for N / K queries' (Ainslie et al. 2023; 1:
            Shazeer 2019); None: N.
        head_dim: H; None: D / N.
        use_bias: whether the projections add a bias.
        qkv_bias: whether those of queries, keys and values do; None: as `use_bias` says.
        scaled: whether products are divided by sqrt(H); T5's are not (Raffel et al. 2020).
        window: limits attention to so many nearby positions, the query's own counted (Beltagy et
            al. 2020, section 3.1; Mistral); None: no limit. Time and memory are then linear in the
            length, and the cache of self-attention is a rolling one.
        global_tokens: the first so many positions, which see all and are seen by all in spite of
            a window.

    Raises:
        ValueError: if K does not divide N, the window is below 1, or `global_tokens` below 0.
    """

    num_heads: int
    num_kv_heads: int | None = None
    head_dim: int | None = None
    use_bias: bool = True
    qkv_bias: bool | None = None
    scaled: bool = True
    window: int | None = None
    global_tokens: int = 0

    def __post_init__(self):
        if self.window is not None and self.window < 1:
            raise ValueError(f"window must be at least 1 or None, got {self.window}")
        if self.global_tokens < 0:
            raise ValueError(f"global_tokens must be at least 0, got {self.global_tokens}")
        if self.num_heads % (self.num_kv_heads or self.num_heads):
            raise ValueError(
                f"num_kv_heads must divide num_heads={self.num_heads}, got {self.num_kv_heads}"
            )


@dataclass(frozen=True, kw_only=True)
class FeedForwardOptions(Options):
    """Options of `FeedForward`.

    Args:
        d_ff: width of the hidden layer.
        activation: name of the non-linearity, a Keras one or "gelu_tanh".
        gated: whether there is a gate.
        use_bias: whether the projections add a bias.
    """

    d_ff: int
    activation: str = "relu"
    gated: bool = False
    use_bias: bool = True


@dataclass(frozen=True, kw_only=True)
class AddNormOptions(Options):
    """Options of `AddNorm`.

    Args:
        norm_first: which of the two positions the norm has: False post-norm (the paper), True
            pre-norm.
        dropout: rate in [0, 1) on the output of each sub-layer.
        norm: kind of norm, "layer" or "rms".
        epsilon: of the norm.
    """

    norm_first: bool = False
    dropout: float = 0.0
    norm: str = "layer"
    epsilon: float = 1e-6


@dataclass(frozen=True, kw_only=True)
class BlockOptions(AttentionOptions, FeedForwardOptions, AddNormOptions):
    """Options of `EncoderBlock` and `DecoderBlock`: those of their sub-layers.

    Args:
        dropout: rate in [0, 1) on the output of each sub-layer.
    """

    dropout: float = 0.1
