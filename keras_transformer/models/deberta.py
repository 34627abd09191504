"""DeBERTa-v2 and v3: a BERT with disentangled attention (He et al. 2021, He et al. 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras

from keras_transformer.config import require
from keras_transformer.layers import DisentangledEncoder, PositionalEmbedding
from keras_transformer.layers.block_options import BlockOptions
from keras_transformer.models.encoder_only import EncoderConfig, EncoderOnly


@dataclass(frozen=True)
class DeBERTaConfig(EncoderConfig):
    """Config of a DeBERTa (defaults: DeBERTa-v3-base, He et al. 2023).

    It has the fields of `EncoderConfig`, of which `window` must be None, and the following.

    Args:
        num_buckets: Number of vectors of relative positions for each direction, even. Half of
            them belong to one distance each, the others to ranges that grow logarithmically.
        max_distance: In each direction, this distance and all longer ones share a vector.
        convolution: Width in tokens, odd, of a convolution of the embeddings that is added to the
            first block's output (DeBERTa-v2); 0: none.

    Raises:
        ValueError: If a value is out of range.
    """

    vocab_size: int = 128100
    epsilon: float = 1e-7
    pooler: str = "gelu"
    num_buckets: int = 256
    max_distance: int = 512
    convolution: int = 0

    def __post_init__(self):
        super().__post_init__()
        self._check_whole("num_buckets", least=2)
        require(self.num_buckets % 2 == 0, "num_buckets", self.num_buckets, "even")
        self._check_whole("max_distance")
        least, distance = self.num_buckets // 2 + 2, self.max_distance
        accepted = f"at least {least} with num_buckets={self.num_buckets}"
        require(distance >= least, "max_distance", distance, accepted)
        self._check_whole("convolution", least=0)
        odd = self.convolution % 2 == 1 or self.convolution == 0
        require(odd, "convolution", self.convolution, "odd, or 0 for none")
        only = "None: each pair of tokens has a bias of its own"
        require(self.window is None, "window", self.window, only)

    @property
    def takes_pairs(self) -> bool:
        """Whether the model also takes a pair of texts: yes, with separator tokens."""
        return True


@keras.saving.register_keras_serializable("keras_transformer")
class DeBERTa(EncoderOnly):
    """A DeBERTa: a functional model from `token_ids` to the output of its head.

    Positions are relative only: the embeddings have none.

    Args:
        config: The model's config.
        dtype: Keras dtype policy such as "mixed_bfloat16"; None: the global one.

    Call arguments, return value and errors are those of `EncoderOnly`.
    """

    config_class = DeBERTaConfig

    def __init__(self, config: DeBERTaConfig, dtype: Any = None, **kwargs: Any):
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        embedding = PositionalEmbedding(
            config.vocab_size,
            config.d_model,
            positions="none",
            norm=True,
            epsilon=config.epsilon,
            dropout=config.dropout,
            scale=False,
            dtype=policy,
            name="embedding",
        )
        encoder = DisentangledEncoder(
            config.num_layers,
            **BlockOptions.fields_of(config),
            num_buckets=config.num_buckets,
            max_distance=config.max_distance,
            convolution=config.convolution,
            norm_first=False,
            dtype=policy,
            name="encoder",
        )

        def embed(inputs):
            return embedding(inputs["token_ids"])

        super().__init__(config, policy, embedding, embed, encoder, **kwargs)
