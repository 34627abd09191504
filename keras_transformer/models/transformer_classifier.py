"""A classifier of texts on an encoder-decoder (BART; Lewis et al. 2020, section 3.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras
from keras import ops

from keras_transformer.config import TransformerConfig
from keras_transformer.models.configured import ConfiguredModel
from keras_transformer.models.problems import check_labels
from keras_transformer.models.task_heads import SequenceClassification
from keras_transformer.models.transformer import parts_of

HEAD = "sequence_classification"


@dataclass(frozen=True)
class TransformerClassifierConfig(TransformerConfig):
    """Config of a classifier on an encoder-decoder.

    It has the fields of `TransformerConfig` and the following.

    Args:
        head: "sequence_classification", the only head.
        labels: Names of the classes.
        problem_type: Meaning of the outputs, one of `problems.PROBLEM_TYPES`; None: see
            `problems.problem_of`.
        head_dropout: Dropout rate in [0, 1) before the output.
        pooler: Activation of the dense layer before the output: "tanh", the only one.

    Raises:
        ValueError: If a value is out of range.
    """

    head: str = HEAD
    labels: tuple[str, ...] = ("LABEL_0", "LABEL_1")
    problem_type: str | None = None
    head_dropout: float = 0.0
    pooler: str = "tanh"

    def __post_init__(self):
        super().__post_init__()
        self._check_choice("head", (HEAD,))
        self._check_choice("pooler", ("tanh",))
        self._check_rates("head_dropout")
        check_labels(self)

    @property
    def vocab_size(self) -> int:
        """Number of token ids."""
        return self.source_vocab_size

    @property
    def takes_pairs(self) -> bool:
        """Whether the model also takes a pair of texts: one sequence, EOS tokens between them."""
        return True


@keras.saving.register_keras_serializable("keras_transformer")
class TransformerClassifier(ConfiguredModel):
    """A functional model from `token_ids` to logits of classes.

    Encoder and decoder both read the text; the decoder's state at its last EOS is classified.

    Args:
        config: The model's config.
        dtype: Keras dtype policy such as "mixed_bfloat16"; None: the global one.

    Call arguments:
        inputs: Dict of `token_ids` (B, T), int32, each row with an EOS, padded on the right.

    Returns:
        Logits (B, C).
    """

    config_class = TransformerClassifierConfig

    def __init__(self, config: TransformerClassifierConfig, dtype: Any = None, **kwargs: Any):
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        parts = parts_of(config, policy)
        head = SequenceClassification(config, None, policy)

        ids_BT = keras.Input((None,), dtype="int32", name="token_ids")
        first_B1 = ops.full_like(ids_BT[:, :1], config.bos_id)
        shifted_BT = ops.concatenate([first_B1, ids_BT[:, :-1]], axis=1)
        x_BTD = parts.forward({"source_ids": ids_BT, "target_ids": shifted_BT})
        is_end_BT = ops.any(ops.stack([ops.equal(ids_BT, end) for end in config.eos_ids]), axis=0)
        positions_BT = ops.cumsum(ops.ones_like(ids_BT), axis=1) - 1
        last_B1 = ops.max(ops.where(is_end_BT, positions_BT, 0), axis=1, keepdims=True)
        x_B1D = ops.take_along_axis(x_BTD, ops.expand_dims(last_B1, -1), axis=1)
        super().__init__(inputs={"token_ids": ids_BT}, outputs=head(x_B1D, ids_BT), **kwargs)
        self.config = config
        self.encoder, self.decoder = parts.encoder, parts.decoder
        self._policy = policy
