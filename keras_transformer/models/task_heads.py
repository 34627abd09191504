"""Heads on an encoder, one per task.

A head is made from `(config, embedding, policy)` and called with hidden states (B, T, D) and the
token ids (B, T) that they come from. All encoder-only families share these heads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_transformer.layers.basic import Bias, Dense
from keras_transformer.layers.feed_forward import activation_of
from keras_transformer.layers.layer import Layer
from keras_transformer.layers.residual import normalization


@keras.saving.register_keras_serializable("keras_transformer")
class Transform(Layer):
    """norm(activation(x W + b)), the input of a masked LM's tied output projection.

    Args:
        width: E, width of the token table.
        activation: Activation of the dense layer.
        epsilon: Epsilon of the norm.
        norm: Kind of norm, see `AddNormOptions`.
        use_bias: Whether the dense layer adds a bias.

    Call arguments:
        x: (B, T, D).

    Returns:
        (B, T, E).
    """

    def __init__(
        self,
        width: int,
        activation: str = "gelu",
        epsilon: float = 1e-12,
        norm: str = "layer",
        use_bias: bool = True,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.options = dict(
            width=width, activation=activation, epsilon=epsilon, norm=norm, use_bias=use_bias
        )
        options = dict(use_bias=use_bias, dtype=self.dtype_policy, name="dense")
        self.dense = Dense(width, activation_of(activation), **options)
        self.norm = normalization(norm, epsilon, self.dtype_policy, "norm")

    def build(self, x_shape: Any) -> None:
        self.dense.build(x_shape)
        self.norm.build((*x_shape[:-1], self.options["width"]))

    def call(self, x: Any) -> Any:
        return self.norm(self.dense(x))


class Hidden:
    """The hidden states, unchanged: (B, T, D)."""

    def __init__(self, config: Any, embedding: Any, policy: Any):
        pass

    def __call__(self, x_BTD: Any, token_ids: Any) -> Any:
        return x_BTD


class Pooled:
    """The hidden states, and tanh(x_0 W + b) of the first (Devlin et al. 2019, section 3.1).

    DistilBERT, ELECTRA and DeBERTa have other activations than tanh: `config.pooler`.

    Returns:
        Dict of `hidden` (B, T, D) and `pooled` (B, D).
    """

    def __init__(self, config: Any, embedding: Any, policy: Any):
        activation = activation_of(config.pooler)
        self.pooler = Dense(config.d_model, activation, dtype=policy, name="pooler")

    def __call__(self, x_BTD: Any, token_ids: Any) -> dict[str, Any]:
        return {"hidden": x_BTD, "pooled": self.pooler(x_BTD[:, 0])}


class MaskedLM:
    """Logits (B, T, V) of the token at each position, from the token table and a bias."""

    def __init__(self, config: Any, embedding: Any, policy: Any):
        self.embedding, self.output_layer = embedding, embedding.tokens
        self.transform = Transform(
            embedding.d_model, config.activation, config.epsilon, dtype=policy, name="transform"
        )
        self.output_bias = Bias(trained=True, dtype=policy, name="output_bias")

    def __call__(self, x_BTD: Any, token_ids: Any) -> Any:
        return self.output_bias(self.embedding(self.transform(x_BTD), reverse=True))


class NextSentence:
    """Logits (B, 2): whether the second text follows the first (0) or not (1).

    If not, the second text is from elsewhere (Devlin et al. 2019, section 3.1), or the two texts
    are swapped (Lan et al. 2020, section 3.1).
    """

    def __init__(self, config: Any, embedding: Any, policy: Any):
        self.pooled = Pooled(config, embedding, policy)
        self.output = Dense(2, dtype=policy, name="next_sentence")

    def __call__(self, x_BTD: Any, token_ids: Any) -> Any:
        return self.output(self.pooled(x_BTD, token_ids)["pooled"])


class Pretraining:
    """The heads of both pretraining tasks of BERT and ALBERT.

    Returns:
        Dict of `masked_lm` (B, T, V) and `next_sentence` (B, 2).
    """

    def __init__(self, config: Any, embedding: Any, policy: Any):
        self.heads: dict[str, Any] = {
            "masked_lm": MaskedLM(config, embedding, policy),
            "next_sentence": NextSentence(config, embedding, policy),
        }

    def __call__(self, x_BTD: Any, token_ids: Any) -> dict[str, Any]:
        return {name: head(x_BTD, token_ids) for name, head in self.heads.items()}


class ReplacedTokens:
    """Logits (B, T): whether each token was replaced (Clark et al. 2020, section 2)."""

    def __init__(self, config: Any, embedding: Any, policy: Any):
        activation = activation_of(config.activation)
        self.transform = Dense(config.d_model, activation, dtype=policy, name="replaced_transform")
        self.output = Dense(1, dtype=policy, name="replaced")

    def __call__(self, x_BTD: Any, token_ids: Any) -> Any:
        return self.output(self.transform(x_BTD))[..., 0]


class SequenceClassification:
    """Logits (B, C) from the pooled first hidden state, one for each of the C labels."""

    def __init__(self, config: Any, embedding: Any, policy: Any):
        self.pooled = Pooled(config, embedding, policy)
        self.classify = classifier(config, policy)

    def __call__(self, x_BTD: Any, token_ids: Any) -> Any:
        return self.classify(self.pooled(x_BTD, token_ids)["pooled"])


class TokenClassification:
    """Logits (B, T, C) of each token's class."""

    def __init__(self, config: Any, embedding: Any, policy: Any):
        self.classify = classifier(config, policy)

    def __call__(self, x_BTD: Any, token_ids: Any) -> Any:
        return self.classify(x_BTD)


class SpanExtraction:
    """The start and end of an answer in the text (Devlin et al. 2019, section 4.2).

    Returns:
        Dict of `start` and `end`, logits (B, T) of each position.
    """

    def __init__(self, config: Any, embedding: Any, policy: Any):
        self.output = Dense(2, dtype=policy, name="span")

    def __call__(self, x_BTD: Any, token_ids: Any) -> dict[str, Any]:
        logits_BT2 = self.output(x_BTD)
        return {"start": logits_BT2[..., 0], "end": logits_BT2[..., 1]}


class SentenceEmbedding:
    """The mean hidden state (B, D) of all tokens except padding.

    This is the default pooling of Reimers and Gurevych 2019, section 3.
    """

    def __init__(self, config: Any, embedding: Any, policy: Any):
        self.pad_id = config.pad_id

    def __call__(self, x_BTD: Any, token_ids: Any) -> Any:
        is_token_BT1 = ops.expand_dims(ops.not_equal(token_ids, self.pad_id), -1)
        weight_BT1 = ops.cast(is_token_BT1, x_BTD.dtype)
        count_B1 = ops.maximum(ops.sum(weight_BT1, axis=1), 1)
        return ops.sum(ops.where(is_token_BT1, x_BTD, 0), axis=1) / count_B1


def classifier(config: Any, policy: Any) -> Callable[[Any], Any]:
    """Return a function from vectors to the logits of the labels."""
    dropout = keras.layers.Dropout(config.head_dropout, dtype=policy, name="classifier_dropout")
    output = Dense(len(config.labels), dtype=policy, name="classifier")
    return lambda x: output(dropout(x))


HEADS: dict[str, type] = {
    "hidden": Hidden,
    "pooled": Pooled,
    "masked_lm": MaskedLM,
    "next_sentence": NextSentence,
    "pretraining": Pretraining,
    "replaced_tokens": ReplacedTokens,
    "sequence_classification": SequenceClassification,
    "token_classification": TokenClassification,
    "span_extraction": SpanExtraction,
    "sentence_embedding": SentenceEmbedding,
}
