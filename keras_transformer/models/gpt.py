"""GPT-2: a pre-norm decoder with learned positions (Radford et al. 2019, section 2.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras

from keras_transformer.config import ACTIVATIONS, KERNELS, Config
from keras_transformer.layers import Decoder, PositionalEmbedding
from keras_transformer.layers.block_options import BlockOptions
from keras_transformer.models.decoder_only import DecoderOnly


@dataclass(frozen=True)
class GPTConfig(Config):
    """Config of a GPT (defaults: GPT-2 small, Radford et al. 2019, Table 2).

    Args:
        vocab_size: V.
        d_model: Width of the residual stream; a multiple of `num_heads`.
        d_ff: Width inside the feed-forward; None: 4 `d_model`.
        num_layers: Number of blocks.
        num_heads: Number of attention heads per block.
        dropout: Dropout rate in [0, 1) on sub-layer outputs and embeddings.
        activation: Activation of the feed-forward, one of `ACTIVATIONS`.
        use_bias: Whether projections add a bias.
        kernel: Linear attention, see `AttentionOptions`; None: softmax.
        epsilon: Epsilon of the norms.
        max_length: Number of positions.
        tie_output: Whether the token embedding is also the output projection.
        pad_id: Id of the padding token. In GPT-2 all three ids are <|endoftext|>.
        bos_id: Id of the token that begins a text.
        eos_id: Id of the token that ends a text; a tuple if several tokens do.

    Raises:
        ValueError: If a value is out of range.
    """

    vocab_size: int
    d_model: int = 768
    d_ff: int | None = None
    num_layers: int = 12
    num_heads: int = 12
    dropout: float = 0.1
    activation: str = "gelu_tanh"
    use_bias: bool = True
    kernel: str | None = None
    epsilon: float = 1e-5
    max_length: int = 1024
    tie_output: bool = True
    pad_id: int = 0
    bos_id: int = 0
    eos_id: int | tuple[int, ...] = 0

    def __post_init__(self):
        self._fill_d_ff()
        self._check_whole("vocab_size", "d_model", "d_ff", "num_layers", "num_heads", "max_length")
        self._check_multiple("d_model", "num_heads")
        self._check_rates()
        self._check_choice("activation", ACTIVATIONS)
        self._check_choice("kernel", (None, *KERNELS))
        self._check_ids(self.vocab_size, "pad_id", "bos_id", "eos_id")


@keras.saving.register_keras_serializable("keras_transformer")
class GPT(DecoderOnly):
    """A GPT-2: a functional model from `token_ids` to the logits of each next token.

    Args:
        config: The model's config.
        dtype: Keras dtype policy such as "mixed_bfloat16"; None: the global one.

    Call arguments and return value are those of `DecoderOnly`.
    """

    config_class = GPTConfig

    def __init__(self, config: GPTConfig, dtype: Any = None, **kwargs: Any):
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        embedding = PositionalEmbedding(
            config.vocab_size,
            config.d_model,
            positions="learned",
            max_length=config.max_length,
            dropout=config.dropout,
            scale=False,
            dtype=policy,
            name="embedding",
        )
        decoder = Decoder(
            config.num_layers,
            **BlockOptions.fields_of(config),
            norm_first=True,
            cross_attention=False,
            dtype=policy,
            name="decoder",
        )
        super().__init__(config, policy, embedding, decoder, config.tie_output, **kwargs)
