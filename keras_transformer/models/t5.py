"""T5: text to text with relative positions, RMS norms and no biases (Raffel et al. 2020).

This is the encoder-decoder of T5, T5 v1.1, mT5, MADLAD-400 and UMT5. It differs from the paper's
Transformer: positions are a learned attention bias that all blocks of a stack share (section 2.1;
in UMT5 each block has its own), norms only scale and precede each sub-layer, products of queries
and keys are not scaled, and T5 v1.1 has a gated feed-forward (Shazeer 2020).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras

from keras_transformer.config import T5Config
from keras_transformer.layers import Decoder, Encoder, PositionalEmbedding
from keras_transformer.layers.basic import Dense
from keras_transformer.layers.block_options import BlockOptions
from keras_transformer.layers.layer import initializer
from keras_transformer.models.encoder_decoder import EncoderDecoder, Parts
from keras_transformer.models.encoder_only import EncoderConfig, EncoderOnly


@keras.saving.register_keras_serializable("keras_transformer")
class T5(EncoderDecoder):
    """A T5: a functional model from `source_ids` and `target_ids` to logits.

    Args:
        config: The model's config.
        dtype: Keras dtype policy such as "mixed_bfloat16"; None: the global one.

    Call arguments, return value and errors are those of `EncoderDecoder`.
    """

    config_class = T5Config

    def __init__(self, config: T5Config, dtype: Any = None, **kwargs: Any):
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        embedding, stack = _embedding(config, policy), _stack(config, policy)
        output_layer = embedding.tokens
        if not config.tie_output:
            output_layer = Dense(config.vocab_size, use_bias=False, dtype=policy, name="output")
        output_scale = None
        if config.scale_output:
            # A layer, because Keras (3.15) marks a symbolic tensor times a number as sparse.
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


@dataclass(frozen=True)
class T5EncoderConfig(EncoderConfig):
    """Config of a `T5Encoder`, the encoder of a T5 or UMT5 without its decoder.

    It has the fields of `EncoderConfig` and the following, which `T5Config` describes.

    Args:
        head_dim, num_buckets, max_distance, positions_by_layer, gated: See `T5Config`.

    Raises:
        ValueError: If a value is out of range.
    """

    head_dim: int = 64
    num_buckets: int = 32
    max_distance: int = 128
    positions_by_layer: bool = False
    gated: bool = False

    def __post_init__(self):
        super().__post_init__()
        self._check_whole("head_dim")
        self._check_buckets()


@keras.saving.register_keras_serializable("keras_transformer")
class T5Encoder(EncoderOnly):
    """A T5's encoder: a functional model from `token_ids` to the output of its head.

    Args:
        config: The model's config.
        dtype: Keras dtype policy such as "mixed_bfloat16"; None: the global one.

    Call arguments, return value and errors are those of `EncoderOnly`.
    """

    config_class = T5EncoderConfig

    def __init__(self, config: T5EncoderConfig, dtype: Any = None, **kwargs: Any):
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        embedding = _embedding(config, policy)
        encoder = Encoder(config.num_layers, **_stack(config, policy), name="encoder")

        def embed(inputs):
            return embedding(inputs["token_ids"])

        super().__init__(config, policy, embedding, embed, encoder, **kwargs)


def _embedding(config, policy):
    """Return the token embedding of a T5, without positions."""
    embedding = PositionalEmbedding(
        config.vocab_size,
        config.d_model,
        positions="none",
        dropout=config.dropout,
        scale=False,
        dtype=policy,
        name="embedding",
    )
    # As in T5's own code: embeddings are not multiplied by sqrt(D), so they start at unit scale.
    embedding.tokens.embeddings_initializer = initializer(
        keras.initializers.RandomNormal(stddev=1.0)
    )
    return embedding


def _stack(config, policy):
    """Return the arguments that a T5's encoder and decoder share."""
    return BlockOptions.fields_of(config) | dict(
        norm_first=True,
        norm="rms",
        use_bias=False,
        query_scale=1.0,
        relative_positions=(config.num_buckets, config.max_distance),
        relative_by_layer=config.positions_by_layer,
        dtype=policy,
    )
