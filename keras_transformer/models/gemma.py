"""Gemma 1, 2 and 3 (Gemma Team 2024a, 2024b and 2025).

All have a gated feed-forward with GELU, rotary positions, and embeddings times sqrt(D) whose table
also makes the logits. Gemma 2 and 3 have four norms a block, and windows in half of the blocks
(Gemma 2) or in five of six (Gemma 3). Gemma 2 caps the products of attention and the logits; Gemma
3 normalizes queries and keys instead, and its blocks with a window have another rotary base.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras

from keras_transformer.config import Config, require
from keras_transformer.layers import Decoder, PositionalEmbedding
from keras_transformer.layers.block_options import BlockOptions
from keras_transformer.layers.rotary import check_scaling
from keras_transformer.models.decoder_only import DecoderOnly


@dataclass(frozen=True)
class GemmaConfig(Config):
    """Config of a Gemma (default sizes: Gemma 2 2B, Gemma Team 2024b, Table 1).

    Args:
        vocab_size: V.
        d_model: Width of the residual stream.
        d_ff: Width inside the feed-forward.
        num_layers: Number of blocks.
        num_heads: Number of query heads per block.
        num_kv_heads: Number of key and value heads, which divides `num_heads`.
        head_dim: Width of a head.
        dropout: Dropout rate in [0, 1) on sub-layer outputs and embeddings.
        theta: Base of the rotary positions' rates.
        scaling: Scaling of these rates, see `layers.rotary.rates`; None: no scaling.
        local_theta: Base of the rates, without scaling, in blocks with a window; None: these blocks
            have the rates of the others.
        window: Number of positions that a query sees, including its own; None: no limit.
        window_layers: Indices of the blocks with the window; None: all blocks.
        query_scale: Factor of the products of queries and keys; None: 1 / sqrt(head_dim).
        attention_cap: Limit of these products, see `AttentionOptions.soft_cap`; None: no limit.
        logit_cap: Limit of the logits; None: no limit.
        norm_output: Whether the output of each sub-layer has an RMS norm, too; false in Gemma 1.
        qk_norm: Whether queries and keys have an RMS norm over each head.
        bidirectional: Whether a token also sees later ones (EmbeddingGemma, Vera et al. 2025); such
            a model gives vectors, and cannot generate.
        epsilon: Epsilon of the norms.
        max_length: Longest sequence in tokens that the model was made for.
        pad_id: Id of the padding token.
        bos_id: Id of the token that begins a text.
        eos_id: Id of the token that ends a text; a tuple if several tokens do.

    Raises:
        ValueError: If a value is out of range.
    """

    vocab_size: int
    d_model: int = 2304
    d_ff: int = 9216
    num_layers: int = 26
    num_heads: int = 8
    num_kv_heads: int = 4
    head_dim: int = 256
    dropout: float = 0.0
    theta: float = 10000.0
    scaling: dict[str, Any] | None = None
    local_theta: float | None = None
    window: int | None = 4096
    window_layers: tuple[int, ...] | None = None
    query_scale: float | None = None
    attention_cap: float | None = None
    logit_cap: float | None = None
    norm_output: bool = True
    qk_norm: bool = False
    bidirectional: bool = False
    epsilon: float = 1e-6
    max_length: int = 8192
    pad_id: int = 0
    bos_id: int = 2
    eos_id: int | tuple[int, ...] = 1

    def __post_init__(self):
        self._check_whole("vocab_size", "d_model", "d_ff", "num_layers", "num_heads", "max_length")
        self._check_whole("num_kv_heads", "head_dim")
        self._check_multiple("num_heads", "num_kv_heads")
        if self.window is not None:
            self._check_whole("window")
        require(self.head_dim % 2 == 0, "head_dim", self.head_dim, "even for rotary positions")
        require(self.theta > 0, "theta", self.theta, "above 0")
        for name in ("local_theta", "query_scale", "attention_cap", "logit_cap"):
            value = getattr(self, name)
            require(value is None or value > 0, name, value, "above 0 or None")
        check_scaling(self.theta, self.scaling, self.head_dim)
        self._check_window_layers()
        self._check_rates()
        self._check_ids(self.vocab_size, "pad_id", "bos_id", "eos_id")


@keras.saving.register_keras_serializable("keras_transformer")
class Gemma(DecoderOnly):
    """A Gemma: a functional model from `token_ids` to the logits of each next token.

    Args:
        config: The model's config.
        dtype: Keras dtype policy such as "mixed_bfloat16"; None: the global one.

    Call arguments and return value are those of `DecoderOnly`.
    """

    config_class = GemmaConfig

    def __init__(self, config: GemmaConfig, dtype: Any = None, **kwargs: Any):
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        embedding = PositionalEmbedding(
            config.vocab_size,
            config.d_model,
            positions="none",
            dropout=config.dropout,
            dtype=policy,
            name="embedding",
        )
        rotary = dict(head_dim=config.head_dim, theta=config.theta, scaling=config.scaling)
        local = rotary
        if config.local_theta is not None:
            local = dict(head_dim=config.head_dim, theta=config.local_theta)
        by_layer = [
            dict(window=config.window, rotary=local)
            if config.window is not None and config.has_window(i)
            else dict(window=None, rotary=rotary)
            for i in range(config.num_layers)
        ]
        decoder = Decoder(
            config.num_layers,
            **BlockOptions.fields_of(config) | dict(window=None),  # see `by_layer`
            activation="gelu_tanh",
            gated=True,
            norm_first=True,
            norm="rms",
            cross_attention=False,
            causal=not config.bidirectional,
            use_bias=False,
            soft_cap=config.attention_cap,
            by_layer=by_layer,
            dtype=policy,
            name="decoder",
        )
        super().__init__(config, policy, embedding, decoder, logit_cap=config.logit_cap, **kwargs)
