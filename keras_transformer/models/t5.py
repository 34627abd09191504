"""T5: text to text with relative positions, RMS norms and no biases (Raffel et al. 2020).

The encoder-decoder of T5, T5 v1.1, mT5 and MADLAD-400. Beside the paper's Transformer: positions
enter as a learned bias of the attention that all blocks of a stack share (section 2.1), norms
only scale and stand first, products of queries and keys are not scaled, and T5 v1.1 gates its
feed-forward (Shazeer 2020).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras

from keras_transformer.config import ACTIVATIONS, Config, require
from keras_transformer.layers import Decoder, Encoder, PositionalEmbedding
from keras_transformer.layers.dense import Dense
from keras_transformer.layers.layer import initializer
from keras_transformer.models.encoder_decoder import EncoderDecoder, Parts


@dataclass(frozen=True)
class T5Config(Config):
    """Sizes and choices of a T5 (Raffel et al. 2020, sections 2.1 and 3.1; defaults of T5-small).

    Args:
        vocab_size: number of token ids, both sides.
        d_model: width of the residual stream.
        d_ff: width inside the feed-forward sub-layers.
        num_encoder_layers, num_decoder_layers: blocks of each stack.
        num_heads: attention heads.
        head_dim: width of each, whatever `d_model` is.
        num_buckets, max_distance: of the relative positions.
        dropout: rate in [0, 1) on sub-layer outputs and embeddings.
        activation: of the feed-forward.
        gated: whether the feed-forward has a gate, as in v1.1.
        tie_output: whether the embedding makes the logits, as before v1.1.
        scale_output: whether what the logits are made of is divided by sqrt(d_model), as before
            v1.1.
        epsilon: of the norms.
        max_length: longest sequence in tokens that is to be translated; nothing in the model
            depends on it.
        pad_id, bos_id, eos_id: ids of the token that pads, of the one that the decoder's input
            begins with, which in T5 is the same, and of the one that ends, or of several that do.

    Raises:
        ValueError: on a value out of range.
    """

    vocab_size: int
    d_model: int = 512
    d_ff: int = 2048
    num_encoder_layers: int = 6
    num_decoder_layers: int = 6
    num_heads: int = 8
    head_dim: int = 64
    num_buckets: int = 32
    max_distance: int = 128
    dropout: float = 0.1
    activation: str = "relu"
    gated: bool = False
    tie_output: bool = True
    scale_output: bool = True
    epsilon: float = 1e-6
    max_length: int = 512
    pad_id: int = 0
    bos_id: int = 0
    eos_id: int | tuple[int, ...] = 1

    def __post_init__(self):
        self._check_whole("vocab_size", "d_model", "d_ff", "num_heads", "head_dim", "max_length")
        self._check_whole("num_encoder_layers", "num_decoder_layers")
        self._check_whole("num_buckets", least=4)
        require(self.num_buckets % 2 == 0, "num_buckets", self.num_buckets, "even")
        self._check_whole("max_distance", least=self.num_buckets // 2 + 1)
        self._check_rates()
        self._check_choice("activation", ACTIVATIONS)
        self._check_ids(self.vocab_size, "pad_id", "bos_id", "eos_id")
        if self.pad_id in self.eos_ids:
            raise ValueError(f"pad_id and eos_id must differ, both are {self.pad_id}")

    @property
    def source_vocab_size(self) -> int:
        """`vocab_size`."""
        return self.vocab_size

    @property
    def target_vocab_size(self) -> int:
        """`vocab_size`."""
        return self.vocab_size


@keras.saving.register_keras_serializable("keras_transformer")
class T5(EncoderDecoder):
    """A functional model from `source_ids` and `target_ids` to logits.

    Args:
        config: sizes and choices.
        dtype: Keras dtype policy such as "mixed_bfloat16"; None takes the global one.

    Call arguments, returns, raises: as of `EncoderDecoder`.
    """

    config_class = T5Config

    def __init__(self, config: T5Config, dtype: Any = None, **kwargs):
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        stack = dict(
            num_heads=config.num_heads,
            d_ff=config.d_ff,
            dropout=config.dropout,
            activation=config.activation,
            norm_first=True,
            norm="rms",
            epsilon=config.epsilon,
            use_bias=False,
            gated=config.gated,
            head_dim=config.head_dim,
            scaled=False,
            relative_positions=(config.num_buckets, config.max_distance),
            dtype=policy,
        )
        embedding = PositionalEmbedding(
            config.vocab_size,
            config.d_model,
            positions="none",
            dropout=config.dropout,
            scale=False,
            dtype=policy,
            name="embedding",
        )
        # As in T5's own code: nothing else makes what enters the first block as large as its sums.
        embedding.tokens.embeddings_initializer = initializer(
            keras.initializers.RandomNormal(stddev=1.0)
        )
        output_layer = embedding.tokens
        if not config.tie_output:
            output_layer = Dense(config.vocab_size, use_bias=False, dtype=policy, name="output")
        output_scale = None
        if config.scale_output:
            # A layer: the product of a symbolic tensor and a number is sparse to Keras (3.15).
            output_scale = keras.layers.Rescaling(
                config.d_model**-0.5, dtype=policy, name="output_scale"
            )
        parts = Parts(
            config.pad_id,
            embedding,
            embedding,
            Encoder(config.num_encoder_layers, **stack, name="encoder"),
            Decoder(config.num_decoder_layers, **stack, name="decoder"),
            output_layer,
            output_scale=output_scale,
        )
        super().__init__(config, policy, parts, **kwargs)
