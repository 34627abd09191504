"""ESM-2: a BERT for proteins, with pre-norm and rotary positions (Lin et al. 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras
from keras import ops

from keras_transformer.config import require
from keras_transformer.layers import Encoder, PositionalEmbedding
from keras_transformer.layers.block_options import BlockOptions
from keras_transformer.layers.layer import Layer
from keras_transformer.models.encoder_only import EncoderConfig, EncoderOnly

MASKED_IN_TRAINING = 0.15 * 0.8  # share of tokens replaced by the mask


@dataclass(frozen=True)
class ESMConfig(EncoderConfig):
    """Config of an ESM-2 (defaults: the model with 8 million parameters).

    It has the fields of `EncoderConfig` and the following.

    Args:
        theta: Base of the rotary positions' rates.
        token_dropout: Whether vectors of masked tokens are zero and all others are scaled, as in
            dropout.
        mask_id: Id of the mask token.

    Raises:
        ValueError: If a value is out of range.
    """

    vocab_size: int = 33
    d_model: int = 320
    num_layers: int = 6
    num_heads: int = 20
    dropout: float = 0.0
    epsilon: float = 1e-5
    max_length: int = 1026
    pad_id: int = 1
    theta: float = 10000.0
    token_dropout: bool = True
    mask_id: int = 32

    def __post_init__(self):
        super().__post_init__()
        width = self.d_model // self.num_heads
        require(width % 2 == 0, "d_model / num_heads", width, "even for rotary positions")
        require(self.theta > 0, "theta", self.theta, "above 0")
        self._check_ids(self.vocab_size, "mask_id")


@keras.saving.register_keras_serializable("keras_transformer")
class MaskDropout(Layer):
    """Dropout of embeddings that drops exactly the masked tokens.

    Their embeddings become zero, and all others are multiplied by (1 - 0.12) / (1 - the share of
    masked tokens in the sequence), so that their scale is that of training, where 12 % were masked.

    Args:
        mask_id: Id of the mask token.
        pad_id: Id of the padding token.

    Call arguments:
        x: (B, T, D).
        token_ids: (B, T).

    Returns:
        (B, T, D).
    """

    def __init__(self, mask_id: int, pad_id: int, **kwargs: Any):
        super().__init__(**kwargs)
        self.options = dict(mask_id=mask_id, pad_id=pad_id)
        self.built = True

    def call(self, x: Any, token_ids: Any) -> Any:
        is_masked_BT = ops.equal(token_ids, self.options["mask_id"])
        is_token_BT = ops.not_equal(token_ids, self.options["pad_id"])
        tokens_B, masked_B = (
            ops.sum(ops.cast(flags_BT, "float32"), axis=-1)
            for flags_BT in (is_token_BT, is_masked_BT)
        )
        factor_B = (1 - MASKED_IN_TRAINING) * tokens_B / ops.maximum(tokens_B - masked_B, 1)
        factor_BT = ops.where(is_masked_BT, 0.0, ops.expand_dims(factor_B, -1))
        return x * ops.cast(ops.expand_dims(factor_BT, -1), x.dtype)


@keras.saving.register_keras_serializable("keras_transformer")
class ESM(EncoderOnly):
    """An ESM-2: a functional model from `token_ids` to the output of its head.

    Args:
        config: The model's config.
        dtype: Keras dtype policy such as "mixed_bfloat16"; None: the global one.

    Call arguments, return value and errors are those of `EncoderOnly`.
    """

    config_class = ESMConfig

    def __init__(self, config: ESMConfig, dtype: Any = None, **kwargs: Any):
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        embedding = PositionalEmbedding(
            config.vocab_size,
            config.d_model,
            positions="none",
            scale=False,
            dtype=policy,
            name="embedding",
        )
        mask_dropout = None
        if config.token_dropout:
            mask_dropout = MaskDropout(
                mask_id=config.mask_id, pad_id=config.pad_id, dtype=policy, name="mask_dropout"
            )
        encoder = Encoder(
            config.num_layers,
            **BlockOptions.fields_of(config),
            norm_first=True,
            rotary=dict(head_dim=config.d_model // config.num_heads, theta=config.theta),
            dtype=policy,
            name="encoder",
        )

        def embed(inputs):
            x = embedding(inputs["token_ids"])
            return mask_dropout(x, inputs["token_ids"]) if mask_dropout else x

        super().__init__(config, policy, embedding, embed, encoder, **kwargs)
