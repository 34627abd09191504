"""T5Gemma: an encoder-decoder of Gemma 2's blocks (Zhang et al. 2025).

Blocks, positions, norms and caps are those of `models.gemma`. The encoder sees later tokens, too,
and may be larger than the decoder. Each decoder block also has cross-attention, with its own norms
and without positions. Source and target have separate token tables; the target's makes the logits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras

from keras_transformer.config import Config, require
from keras_transformer.layers import Decoder, Encoder, PositionalEmbedding
from keras_transformer.layers.basic import SoftCap
from keras_transformer.layers.block_options import BlockOptions
from keras_transformer.models.encoder_decoder import EncoderDecoder, Parts

_OF_ENCODER = dict(  # sizes of the decoder -> the same ones of the encoder
    d_model="encoder_d_model",
    d_ff="encoder_d_ff",
    num_heads="num_encoder_heads",
    num_kv_heads="num_encoder_kv_heads",
)


@dataclass(frozen=True)
class T5GemmaConfig(Config):
    """Config of a T5Gemma (default sizes: 2B-2B, Zhang et al. 2025, Table 1).

    Args:
        vocab_size: Number of token ids of source and target.
        d_model: Width of the decoder's residual stream.
        d_ff: Width inside the decoder's feed-forward.
        num_encoder_layers: Number of encoder blocks.
        num_decoder_layers: Number of decoder blocks.
        num_heads: Number of query heads per decoder block.
        num_kv_heads: Number of key and value heads, which divides `num_heads`.
        head_dim: Width of a head, in both stacks.
        encoder_d_model, encoder_d_ff, num_encoder_heads, num_encoder_kv_heads: The same sizes of
            the encoder; None: those of the decoder.
        dropout: Dropout rate in [0, 1) on sub-layer outputs and embeddings.
        theta: Base of the rotary positions' rates.
        window: Number of positions that a target token sees, including its own; None: no limit.
        window_layers: Indices of the decoder blocks with the window; None: all blocks.
        encoder_window: The encoder sees this many positions less one on each side of a token; None:
            no limit.
        encoder_window_layers: Indices of the encoder blocks with this window; None: all blocks.
        query_scale: Factor of the products of queries and keys; None: 1 / sqrt(head_dim).
        attention_cap: Limit of these products, see `AttentionOptions.soft_cap`; None: no limit.
        logit_cap: Limit of the logits; None: no limit.
        epsilon: Epsilon of the norms.
        max_length: Longest sequence in tokens that the model was made for.
        pad_id: Id of the padding token.
        bos_id: Id that the decoder's input begins with.
        eos_id: Id of the token that ends a text; a tuple if several tokens do.

    Raises:
        ValueError: If a value is out of range, or `pad_id` is an `eos_id`.
    """

    vocab_size: int
    d_model: int = 2304
    d_ff: int = 9216
    num_encoder_layers: int = 26
    num_decoder_layers: int = 26
    num_heads: int = 8
    num_kv_heads: int = 4
    head_dim: int = 256
    encoder_d_model: int | None = None
    encoder_d_ff: int | None = None
    num_encoder_heads: int | None = None
    num_encoder_kv_heads: int | None = None
    dropout: float = 0.0
    theta: float = 10000.0
    window: int | None = 4096
    window_layers: tuple[int, ...] | None = None
    encoder_window: int | None = 4097
    encoder_window_layers: tuple[int, ...] | None = None
    query_scale: float | None = None
    attention_cap: float | None = 50.0
    logit_cap: float | None = 30.0
    epsilon: float = 1e-6
    max_length: int = 8192
    pad_id: int = 0
    bos_id: int = 2
    eos_id: int | tuple[int, ...] = 1

    def __post_init__(self):
        self._check_whole("vocab_size", "d_model", "d_ff", "num_heads", "num_kv_heads", "head_dim")
        self._check_whole("num_encoder_layers", "num_decoder_layers", "max_length")
        optional = (*_OF_ENCODER.values(), "window", "encoder_window")
        self._check_whole(*(name for name in optional if getattr(self, name) is not None))
        for name, of_encoder in _OF_ENCODER.items():  # one form, so that equal configs are equal
            if getattr(self, of_encoder) == getattr(self, name):
                object.__setattr__(self, of_encoder, None)
        self._check_multiple("num_heads", "num_kv_heads")
        heads, kv_heads = (self.encoder_sizes[name] for name in ("num_heads", "num_kv_heads"))
        accepted = f"a multiple of the encoder's {kv_heads} key and value heads"
        require(heads % kv_heads == 0, "num_encoder_heads", heads, accepted)
        require(self.head_dim % 2 == 0, "head_dim", self.head_dim, "even for rotary positions")
        require(self.theta > 0, "theta", self.theta, "above 0")
        for name in ("query_scale", "attention_cap", "logit_cap"):
            value = getattr(self, name)
            require(value is None or value > 0, name, value, "above 0 or None")
        self._check_window_layers("window", "num_decoder_layers")
        self._check_window_layers("encoder_window", "num_encoder_layers")
        self._check_rates()
        self._check_ids(self.vocab_size, "pad_id", "bos_id", "eos_id")
        if self.pad_id in self.eos_ids:
            raise ValueError(f"pad_id and eos_id must differ, both are {self.pad_id}")

    @property
    def encoder_sizes(self) -> dict[str, int]:
        """`d_model`, `d_ff`, `num_heads` and `num_kv_heads` of the encoder."""
        return {x: getattr(self, y) or getattr(self, x) for x, y in _OF_ENCODER.items()}

    @property
    def source_vocab_size(self) -> int:
        """Number of source token ids: `vocab_size`."""
        return self.vocab_size

    @property
    def target_vocab_size(self) -> int:
        """Number of target token ids: `vocab_size`."""
        return self.vocab_size


@keras.saving.register_keras_serializable("keras_transformer")
class T5Gemma(EncoderDecoder):
    """A T5Gemma: a functional model from `source_ids` and `target_ids` to logits.

    Args:
        config: The model's config.
        dtype: Keras dtype policy such as "mixed_bfloat16"; None: the global one.

    Call arguments, return value and errors are those of `EncoderDecoder`.
    """

    config_class = T5GemmaConfig

    def __init__(self, config: T5GemmaConfig, dtype: Any = None, **kwargs: Any):
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        sizes = config.encoder_sizes
        width = sizes.pop("d_model")
        source, target = (
            PositionalEmbedding(
                config.vocab_size,
                d_model,
                positions="none",
                dropout=config.dropout,
                dtype=policy,
                name=f"{side}_embedding",
            )
            for side, d_model in (("source", width), ("target", config.d_model))
        )
        shared = BlockOptions.fields_of(config) | dict(
            window=None,  # see `by_layer`
            activation="gelu_tanh",
            gated=True,
            norm_first=True,
            norm="rms",
            norm_output=True,
            use_bias=False,
            soft_cap=config.attention_cap,
            rotary=dict(head_dim=config.head_dim, theta=config.theta),
            dtype=policy,
        )
        layers = config.num_encoder_layers
        by_layer = _windows(layers, config.encoder_window, config.encoder_window_layers)
        encoder = Encoder(layers, **shared | sizes, by_layer=by_layer, name="encoder")
        layers = config.num_decoder_layers
        by_layer = _windows(layers, config.window, config.window_layers)
        decoder = Decoder(layers, **shared, by_layer=by_layer, name="decoder")
        cap = None
        if config.logit_cap is not None:
            cap = SoftCap(config.logit_cap, dtype=policy, name="logit_cap")
        parts = Parts(config.pad_id, source, target, encoder, decoder, target.tokens, logit_cap=cap)
        super().__init__(config, policy, parts, **kwargs)


def _windows(count, window, layers):
    """Return the options of each of `count` blocks: the window, in `layers` or in all of them."""
    return [dict(window=window if layers is None or i in layers else None) for i in range(count)]
