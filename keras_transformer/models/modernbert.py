"""ModernBERT (Warner et al. 2024) and EuroBERT (Boizard et al. 2025): encoders of rotary positions.

Both are pre-norm, with a gated feed-forward and no biases. ModernBERT has a window in two of three
blocks, with a rotary base of its own there, and normalizes the embeddings instead of the input of
its first block. EuroBERT has the blocks of a LLaMA, without the causal mask, and an output table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras

from keras_transformer.config import require
from keras_transformer.layers import Encoder, PositionalEmbedding
from keras_transformer.layers.basic import Bias, Dense
from keras_transformer.layers.block_options import BlockOptions
from keras_transformer.models.encoder_only import EncoderConfig, EncoderOnly
from keras_transformer.models.task_heads import (
    SentenceEmbedding,
    SpanExtraction,
    TokenClassification,
    Transform,
    classifier,
)

POOLINGS = ("cls", "mean", "late")


@dataclass(frozen=True)
class ModernBERTConfig(EncoderConfig):
    """Config of a ModernBERT (defaults: ModernBERT-base, Warner et al. 2024, Table 4).

    It has the fields of `EncoderConfig` and the following.

    Args:
        num_kv_heads: Number of key and value heads, which divides `num_heads`; None: `num_heads`.
        theta: Base of the rotary positions' rates.
        local_theta: Base of the rates in blocks with a window; None: `theta`.
        window_layers: Indices of the blocks with the window; None: all blocks.
        norm: Kind of norm, "layer_no_bias" or "rms".
        embedding_norm: Whether the embeddings are normalized, instead of the input of the first
            block's attention.
        transform: Whether each head begins with a dense layer, GELU and a norm; without it, only a
            classifier of texts has the dense layer and GELU (EuroBERT).
        pooling: Where a classifier of texts takes the mean: "cls", nowhere, it reads the first
            token; "mean", of hidden states; "late", of logits.
        tie_output: Whether the token embedding makes the logits of a masked LM, with a bias; else
            another table makes them, without.

    Raises:
        ValueError: If a value is out of range.
    """

    vocab_size: int = 50368
    d_ff: int | None = 1152
    num_layers: int = 22
    dropout: float = 0.0
    epsilon: float = 1e-5
    max_length: int = 8192
    window: int | None = None
    pad_id: int = 50283
    num_kv_heads: int | None = None
    theta: float = 160_000.0
    local_theta: float | None = 10_000.0
    window_layers: tuple[int, ...] | None = None
    norm: str = "layer_no_bias"
    embedding_norm: bool = True
    transform: bool = True
    pooling: str = "cls"
    tie_output: bool = True

    def __post_init__(self):
        super().__post_init__()
        if self.num_kv_heads is not None:
            self._check_whole("num_kv_heads")
            self._check_multiple("num_heads", "num_kv_heads")
        if self.num_kv_heads == self.num_heads:  # one form, so that equal configs are equal
            object.__setattr__(self, "num_kv_heads", None)
        width = self.d_model // self.num_heads
        require(width % 2 == 0, "d_model / num_heads", width, "even for rotary positions")
        for name in ("theta", "local_theta"):
            value = getattr(self, name)
            require(value is None or value > 0, name, value, "above 0")
        self._check_window_layers()
        self._check_choice("norm", ("layer_no_bias", "rms"))
        self._check_choice("pooling", POOLINGS)

    @property
    def heads(self) -> dict[str, type]:
        """The class of each head."""
        return super().heads | HEADS

    @property
    def takes_pairs(self) -> bool:
        """Whether the model also takes a pair of texts, told apart by separators."""
        return True


@keras.saving.register_keras_serializable("keras_transformer")
class ModernBERT(EncoderOnly):
    """A ModernBERT or EuroBERT: a functional model from `token_ids` to the output of its head.

    Args:
        config: The model's config.
        dtype: Keras dtype policy such as "mixed_bfloat16"; None: the global one.

    Call arguments, return value and errors are those of `EncoderOnly`.
    """

    config_class = ModernBERTConfig

    def __init__(self, config: ModernBERTConfig, dtype: Any = None, **kwargs: Any):
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        embedding = PositionalEmbedding(
            config.vocab_size,
            config.d_model,
            positions="none",
            norm=config.norm if config.embedding_norm else False,
            epsilon=config.epsilon,
            dropout=config.dropout,
            scale=False,
            dtype=policy,
            name="embedding",
        )
        rotary = dict(head_dim=config.d_model // config.num_heads, theta=config.theta)
        local = rotary | dict(theta=config.local_theta or config.theta)
        by_layer: list[dict[str, Any]] = [
            dict(window=config.window, rotary=local)
            if config.window is not None and config.has_window(i)
            else dict(window=None, rotary=rotary)
            for i in range(config.num_layers)
        ]
        by_layer[0] = by_layer[0] | dict(attention_norm_input=not config.embedding_norm)
        encoder = Encoder(
            config.num_layers,
            **BlockOptions.fields_of(config) | dict(window=None),  # see `by_layer`
            gated=True,
            norm_first=True,
            use_bias=False,
            by_layer=by_layer,
            dtype=policy,
            name="encoder",
        )

        def embed(inputs):
            return embedding(inputs["token_ids"])

        super().__init__(config, policy, embedding, embed, encoder, **kwargs)


def _transform(config, policy):
    """Return the first layer of a head, or a function that changes nothing."""
    if not config.transform:
        return lambda x: x
    options = dict(norm=config.norm, use_bias=False, dtype=policy, name="transform")
    return Transform(config.d_model, "gelu", config.epsilon, **options)


class MaskedLM:
    """Logits (B, T, V) of the token at each position."""

    def __init__(self, config: Any, embedding: Any, policy: Any):
        self.transform = _transform(config, policy)
        self.embedding, self.output_layer, self.output_bias = embedding, embedding.tokens, None
        if config.tie_output:
            self.output_bias = Bias(trained=True, dtype=policy, name="output_bias")
        else:
            options = dict(use_bias=False, dtype=policy, name="output")
            self.output_layer = Dense(config.vocab_size, **options)

    def __call__(self, x_BTD: Any, token_ids: Any) -> Any:
        x_BTD = self.transform(x_BTD)
        if self.output_bias is None:
            return self.output_layer(x_BTD)
        return self.output_bias(self.embedding(x_BTD, reverse=True))


class SequenceClassification:
    """Logits (B, C), one for each of the C labels; see `pooling` of the config."""

    def __init__(self, config: Any, embedding: Any, policy: Any):
        self.pooling, self.mean = config.pooling, SentenceEmbedding(config, embedding, policy)
        self.transform = _transform(config, policy)
        if not config.transform:
            self.transform = Dense(config.d_model, "gelu", dtype=policy, name="pooler")
        self.classify = classifier(config, policy)

    def __call__(self, x_BTD: Any, token_ids: Any) -> Any:
        x = x_BTD[:, 0] if self.pooling == "cls" else x_BTD
        x = self.mean(x, token_ids) if self.pooling == "mean" else x
        logits = self.classify(self.transform(x))
        return self.mean(logits, token_ids) if self.pooling == "late" else logits


class _Transformed:
    """A mixin for heads that read transformed hidden states."""

    def __init__(self, config: Any, embedding: Any, policy: Any):
        self.transform = _transform(config, policy)
        super().__init__(config, embedding, policy)  # type: ignore[call-arg]  # a head's

    def __call__(self, x_BTD: Any, token_ids: Any) -> Any:
        return super().__call__(self.transform(x_BTD), token_ids)  # type: ignore[misc]  # a head's


class TransformedTokens(_Transformed, TokenClassification):
    """Logits (B, T, C) of each token's class."""


class TransformedSpan(_Transformed, SpanExtraction):
    """The start and end of an answer in the text, logits (B, T)."""


HEADS: dict[str, type] = {
    "masked_lm": MaskedLM,
    "sequence_classification": SequenceClassification,
    "token_classification": TransformedTokens,
    "span_extraction": TransformedSpan,
}
