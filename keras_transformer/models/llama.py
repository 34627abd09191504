"""LLaMA: RMS norms, rotary positions, a gated feed-forward (Touvron et al. 2023, section 2.2).

Its relatives differ by options: in the largest Llama 2, Llama 3 and most later ones, query heads
share key and value heads (Ainslie et al. 2023). Mistral limits attention to a window (Jiang et al.
2023, section 2). Some blocks of SmolLM3 have no rotary positions. Qwen2 has biases of queries, keys
and values; Qwen3 normalizes queries and keys, Hunyuan after the rotation. Phi-3 has other rotary
rates for long texts ("longrope"). In Phi-4-mini and GLM-4, a part of each head rotates. Mixtral
(Jiang et al. 2024) and Qwen3-MoE have mixtures of experts. OLMo 2 normalizes the outputs of
sub-layers, not their inputs (OLMo Team 2024, section 2.1). Granite multiplies embeddings, outputs
of sub-layers, products of attention, and logits by constants.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import keras

from keras_transformer.config import KERNELS, Config, require
from keras_transformer.layers import Decoder, PositionalEmbedding
from keras_transformer.layers.block_options import QK_NORMS, BlockOptions, ExpertOptions
from keras_transformer.layers.rotary import check_scaling
from keras_transformer.models.decoder_only import DecoderOnly

_OF_EXPERTS = (
    "experts_per_token",
    "expert_d_ff",
    "normalize_routing",
    "balance_loss",
    "dense_layers",
)


@dataclass(frozen=True)
class LLaMAConfig(Config):
    """Config of a LLaMA (defaults: 7B, Touvron et al. 2023, Table 2).

    Args:
        vocab_size: V.
        d_model: Width of the residual stream.
        d_ff: Width inside the feed-forward.
        num_layers: Number of blocks.
        num_heads: Number of query heads per block.
        num_kv_heads: Number of key and value heads, which divides `num_heads`; None: `num_heads`.
        head_dim: Width of a head; None: `d_model / num_heads`.
        dropout: Dropout rate in [0, 1) on sub-layer outputs and embeddings.
        theta: Base of the rotary positions' rates.
        scaling: Scaling of the rates, see `layers.rotary.rates`; None: no scaling.
        rotary_dim: Number of features of a head that rotate, the first ones, even; None: all.
        window: Number of positions that a query sees, including its own; None: no limit.
        window_layers: Indices of the blocks with the window; None: all blocks.
        no_rotary: Indices of the blocks without rotary positions.
        qkv_bias: Whether the projections to queries, keys and values add a bias.
        output_bias: Whether the output projection of attention adds a bias.
        feed_forward_bias: Whether the projections of the feed-forward add a bias.
        qk_norm: Whether queries and keys have an RMS norm; see `AttentionOptions`.
        norm_input, norm_output: Which sides of a sub-layer have a norm; see `AddNormOptions`.
        embedding_scale, residual_scale: Factors of embeddings and of the output of each sub-layer.
        query_scale: Factor of the products of queries and keys; None: 1 / sqrt(head_dim).
        logit_divisor: Number that divides the logits.
        kernel: Linear attention, see `AttentionOptions`; not with a window. None: softmax.
        num_experts: Number of experts in place of each feed-forward, see `MixtureOfExperts`; None:
            no experts. The fields below, down to `dense_layers`, are for experts only.
        experts_per_token: Number of experts that each token uses.
        expert_d_ff: Width inside an expert; None: `d_ff`.
        normalize_routing, balance_loss: See `ExpertOptions`.
        dense_layers: Indices of the blocks with an ordinary feed-forward, of width `d_ff`.
        epsilon: Epsilon of the norms.
        max_length: Longest sequence in tokens that the model was made for.
        tie_output: Whether the token embedding is also the output projection.
        pad_id: Id of the padding token.
        bos_id: Id of the token that begins a text.
        eos_id: Id of the token that ends a text; a tuple if several tokens do.

    Raises:
        ValueError: If a value is out of range.
    """

    vocab_size: int
    d_model: int = 4096
    d_ff: int = 11008
    num_layers: int = 32
    num_heads: int = 32
    num_kv_heads: int | None = None
    head_dim: int | None = None
    dropout: float = 0.0
    theta: float = 10000.0
    scaling: dict[str, Any] | None = None
    rotary_dim: int | None = None
    window: int | None = None
    window_layers: tuple[int, ...] | None = None
    no_rotary: tuple[int, ...] = ()
    qkv_bias: bool = False
    output_bias: bool = False
    feed_forward_bias: bool = False
    qk_norm: bool | str = False
    norm_input: bool = True
    norm_output: bool = False
    embedding_scale: float = 1.0
    residual_scale: float = 1.0
    query_scale: float | None = None
    logit_divisor: float = 1.0
    kernel: str | None = None
    num_experts: int | None = None
    experts_per_token: int = 2
    expert_d_ff: int | None = None
    normalize_routing: bool = True
    balance_loss: float = 0.0
    dense_layers: tuple[int, ...] = ()
    epsilon: float = 1e-6
    max_length: int = 2048
    tie_output: bool = False
    pad_id: int = 0
    bos_id: int = 1
    eos_id: int | tuple[int, ...] = 2

    def __post_init__(self):
        self._check_whole("vocab_size", "d_model", "d_ff", "num_layers", "num_heads", "max_length")
        optional = ("num_kv_heads", "head_dim", "rotary_dim", "window")
        self._check_whole(*(name for name in optional if getattr(self, name) is not None))
        if self.num_kv_heads is not None:
            self._check_multiple("num_heads", "num_kv_heads")
        if self.head_dim is None:
            self._check_multiple("d_model", "num_heads")
        width = self.head_dim or self.d_model // self.num_heads
        name = "head_dim" if self.head_dim else "d_model / num_heads"
        require(width % 2 == 0, name, width, "even for rotary positions")
        require(self.theta > 0, "theta", self.theta, "above 0")
        if self.rotary_dim is not None:
            is_part = self.rotary_dim % 2 == 0 and self.rotary_dim <= width
            accepted = f"even and at most {name}={width}"
            require(is_part, "rotary_dim", self.rotary_dim, accepted)
        check_scaling(self.theta, self.scaling, self.rotary_dim or width)
        self._check_choice("qk_norm", QK_NORMS)
        for name in ("embedding_scale", "residual_scale", "query_scale", "logit_divisor"):
            value = getattr(self, name)
            require(value is None or value > 0, name, value, "above 0")
        self._check_choice("kernel", (None, *KERNELS))
        if self.kernel:
            for name in ("window", "query_scale"):
                value = getattr(self, name)
                require(value is None, name, value, f"None with {self.kernel!r}")
        self._check_window_layers()
        self._check_layers("no_rotary")
        self._check_experts()
        self._check_rates()
        self._check_ids(self.vocab_size, "pad_id", "bos_id", "eos_id")

    def _check_experts(self):
        self._check_layers("dense_layers")
        if self.expert_d_ff is not None:
            self._check_whole("expert_d_ff")
        if self.expert_d_ff == self.d_ff:  # one form, so that equal configs are equal
            object.__setattr__(self, "expert_d_ff", None)
        ExpertOptions(**ExpertOptions.fields_of(self), use_bias=False)
        is_possible = not (self.num_experts and self.feed_forward_bias)
        require(is_possible, "feed_forward_bias", True, "False with num_experts")
        if self.num_experts is None:
            for field in dataclasses.fields(self):
                value, default = getattr(self, field.name), field.default
                is_default = field.name not in _OF_EXPERTS or value == default
                require(is_default, field.name, value, f"{default!r} without num_experts")


@keras.saving.register_keras_serializable("keras_transformer")
class LLaMA(DecoderOnly):
    """A LLaMA: a functional model from `token_ids` to the logits of each next token.

    Args:
        config: The model's config.
        dtype: Keras dtype policy such as "mixed_bfloat16"; None: the global one.

    Call arguments and return value are those of `DecoderOnly`.
    """

    config_class = LLaMAConfig

    def __init__(self, config: LLaMAConfig, dtype: Any = None, **kwargs: Any):
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        embedding = PositionalEmbedding(
            config.vocab_size,
            config.d_model,
            positions="none",
            dropout=config.dropout,
            scale=config.embedding_scale,
            dtype=policy,
            name="embedding",
        )
        head_dim = config.head_dim or config.d_model // config.num_heads
        rotary_dim = config.rotary_dim or head_dim
        rotary = dict(head_dim=rotary_dim, theta=config.theta, scaling=config.scaling)
        dense = dict(num_experts=None, d_ff=config.d_ff)
        by_layer = [
            dict(
                window=config.window if config.has_window(i) else None,
                rotary=None if i in config.no_rotary else rotary,
                **(dense if i in config.dense_layers else {}),
            )
            for i in range(config.num_layers)
        ]
        d_ff = config.expert_d_ff or config.d_ff
        decoder = Decoder(
            config.num_layers,
            **BlockOptions.fields_of(config) | dict(head_dim=head_dim, window=None, d_ff=d_ff),
            activation="silu",
            gated=True,
            norm_first=True,
            norm="rms",
            cross_attention=False,
            use_bias=config.feed_forward_bias,  # attention has its own fields
            by_layer=by_layer,
            dtype=policy,
            name="decoder",
        )
        kwargs |= dict(tie_output=config.tie_output, logit_divisor=config.logit_divisor)
        super().__init__(config, policy, embedding, decoder, **kwargs)
