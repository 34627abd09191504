"""BERT and its variants: an encoder of masked text (Devlin et al. 2019, section 3).

RoBERTa (Liu et al. 2019) differs in training, and numbers its positions from the padding id + 1.
XLM-RoBERTa (Conneau et al. 2020) is a RoBERTa of 100 languages.
ALBERT (Lan et al. 2020, section 3.1) runs one block many times, on narrow token vectors.
DistilBERT (Sanh et al. 2019) has half the blocks and no token types. ELECTRA (Clark et al. 2020)
learns to tell which tokens were replaced. MPNet (Song et al. 2020) adds T5's relative positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras

from keras_transformer.config import require
from keras_transformer.layers import Encoder, PositionalEmbedding
from keras_transformer.layers.basic import Dense
from keras_transformer.layers.block_options import BlockOptions
from keras_transformer.models.encoder_only import EncoderConfig, EncoderOnly

FARTHEST = 128  # MPNet: this distance and all longer ones share a bucket


@dataclass(frozen=True)
class BERTConfig(EncoderConfig):
    """Config of a BERT (defaults: BERT-base, Devlin et al. 2019, section 3).

    It has the fields of `EncoderConfig` and the following.

    Args:
        d_embedding: E, width of the token vectors, which a dense layer projects to `d_model`
            (ALBERT); None: `d_model`, without a projection.
        shared_blocks: Whether one block is run `num_layers` times (ALBERT); or the number of
            distinct blocks (ALBERT's groups), see `shared` of `Encoder`.
        num_types: Number of token types; 2: tokens of a first and of a second text; 0: tokens
            have no types (DistilBERT).
        position_offset: Index of the first position; 2 in RoBERTa.
        num_buckets: Number of distance buckets of a relative attention bias that all blocks share
            (MPNet); 0: no such bias.

    Raises:
        ValueError: If a value is out of range.
    """

    d_embedding: int | None = None
    shared_blocks: bool | int = False
    num_types: int = 2
    position_offset: int = 0
    num_buckets: int = 0

    def __post_init__(self):
        super().__post_init__()
        self._check_whole("num_types", "position_offset", "num_buckets", least=0)
        accepted = f"True, False or a number up to num_layers={self.num_layers}"
        count = self.shared_blocks
        in_range = isinstance(count, int) and 0 <= count <= self.num_layers
        require(in_range, "shared_blocks", count, accepted)
        if self.d_embedding is not None:
            self._check_whole("d_embedding")

    @property
    def takes_pairs(self) -> bool:
        """Whether the model also takes a pair of texts, told apart by token types or separators."""
        return self.num_types != 1 or self.position_offset > 0


@keras.saving.register_keras_serializable("keras_transformer")
class BERT(EncoderOnly):
    """A BERT: a functional model from `token_ids` (and `type_ids`) to the output of its head.

    Args:
        config: The model's config.
        dtype: Keras dtype policy such as "mixed_bfloat16"; None: the global one.

    Call arguments, return value and errors are those of `EncoderOnly`.
    """

    config_class = BERTConfig

    def __init__(self, config: BERTConfig, dtype: Any = None, **kwargs: Any):
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        embedding = PositionalEmbedding(
            config.vocab_size,
            config.d_embedding or config.d_model,
            positions="learned",
            max_length=config.max_length,
            position_offset=config.position_offset,
            num_types=config.num_types,
            norm=True,
            epsilon=config.epsilon,
            dropout=config.dropout,
            scale=False,
            dtype=policy,
            name="embedding",
        )
        projection = None
        if config.d_embedding is not None:
            projection = Dense(config.d_model, dtype=policy, name="projection")
        encoder = Encoder(
            config.num_layers,
            **BlockOptions.fields_of(config),
            norm_first=False,
            shared=config.shared_blocks,
            relative_positions=(config.num_buckets, FARTHEST) if config.num_buckets else None,
            dtype=policy,
            name="encoder",
        )

        def embed(inputs):
            x = embedding(inputs["token_ids"], type_ids=inputs.get("type_ids"))
            return projection(x) if projection else x

        has_types = config.num_types > 1
        super().__init__(config, policy, embedding, embed, encoder, has_types, **kwargs)
