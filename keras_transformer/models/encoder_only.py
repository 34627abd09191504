"""Base of encoder-only models: a config, a graph from ids to hidden states, and a head."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import keras
from keras import ops

from keras_transformer.config import ACTIVATIONS, Config, require
from keras_transformer.layers import Encoder, PositionalEmbedding, padding_mask
from keras_transformer.models.heads import HEADS
from keras_transformer.models.vocabulary import VocabularyModel

BELOW_HEADS = ("embedding", "projection", "encoder", "pooler")  # what all tasks can share


@dataclass(frozen=True)
class EncoderConfig(Config):
    """Sizes and choices that each encoder-only family has (defaults: BERT-base).

    Args:
        vocab_size: V.
        d_model: width of the residual stream; a multiple of `num_heads`.
        d_ff: width inside the feed-forward; None: 4 `d_model`.
        num_layers, num_heads: blocks, and attention heads of each.
        dropout: rate in [0, 1) on sub-layer outputs and embeddings.
        activation: of the feed-forward and of a masked LM's head, one of `ACTIVATIONS`.
        epsilon: of the norms.
        max_length: longest sequence in tokens.
        window: a token sees, and is seen by, those nearer than so many positions, so that long
            texts cost time and memory linear in their length (Beltagy et al. 2020, section 3.1);
            None: all.
        global_tokens: how many at the beginning see all and are seen by all nevertheless.
        pad_id: the id that pads a sequence on the right; it is attended to by none.
        head: what stands on the encoder, one of `heads.HEADS`.
        labels: names of a classifier's classes.
        head_dropout: rate in [0, 1) before a classifier; None: `dropout`.

    Raises:
        ValueError: on a value out of range.
    """

    vocab_size: int
    d_model: int = 768
    d_ff: int | None = None
    num_layers: int = 12
    num_heads: int = 12
    dropout: float = 0.1
    activation: str = "gelu"
    epsilon: float = 1e-12
    max_length: int = 512
    window: int | None = None
    global_tokens: int = 0
    pad_id: int = 0
    head: str = "masked_lm"
    labels: tuple[str, ...] = ("LABEL_0", "LABEL_1")
    head_dropout: float | None = None

    def __post_init__(self):
        if self.d_ff is None and isinstance(self.d_model, int):
            object.__setattr__(self, "d_ff", 4 * self.d_model)
        if self.head_dropout is None:
            object.__setattr__(self, "head_dropout", self.dropout)
        if isinstance(self.labels, list):  # as JSON has them
            object.__setattr__(self, "labels", tuple(self.labels))
        self._check_whole("vocab_size", "d_model", "d_ff", "num_layers", "num_heads", "max_length")
        self._check_multiple("d_model", "num_heads")
        if self.window is not None:
            self._check_whole("window")
        self._check_whole("global_tokens", least=0)
        only = "0 without a window: then all tokens see all"
        require(
            not (self.global_tokens and self.window is None),
            "global_tokens",
            self.global_tokens,
            only,
        )
        self._check_rates()
        self._check_choice("activation", ACTIVATIONS)
        self._check_choice("head", tuple(HEADS))
        self._check_ids(self.vocab_size, "pad_id")
        names = isinstance(self.labels, tuple) and all(isinstance(x, str) for x in self.labels)
        require(names and len(self.labels) > 0, "labels", self.labels, "one name or more")
        rate = self.head_dropout
        require(0 <= rate < 1, "head_dropout", rate, "in [0, 1)")


class EncoderOnly(VocabularyModel):
    """A functional model from `token_ids` to what its head gives.

    With the head "masked_lm" and a `LabelSmoothedCrossentropy`, `fit` makes logits only where a
    backend must: labels are `pad_id` where nothing was masked.

    Args:
        config: the family's.
        policy: the dtype policy of the parts.
        embedding: holds the token table, which a masked LM's head projects by.
        embed: from the inputs to what enters the encoder, (B, T, D).
        encoder: the stack.
        has_types: whether there is an input `type_ids`.

    Call arguments:
        inputs: dict of `token_ids` (B, T), int32, and where the model has several types of
            tokens, optionally `type_ids` (B, T), int32; without them all are 0. Padding on
            the right changes nothing.

    Returns:
        What the head says: see `heads`.

    Raises:
        ValueError: if `type_ids` are given to a model without types.
    """

    def __init__(
        self,
        config: EncoderConfig,
        policy: Any,
        embedding: PositionalEmbedding,
        embed: Callable[[dict[str, Any]], Any],
        encoder: Encoder,
        has_types: bool = False,
        **kwargs: Any,
    ):
        head = HEADS[config.head](config, embedding, policy)
        is_masked_lm = config.head == "masked_lm"

        inputs = {"token_ids": keras.Input((None,), dtype="int32", name="token_ids")}
        if has_types:
            types = keras.Input((None,), dtype="int32", name="type_ids", optional=True)
            inputs["type_ids"] = types
        encode = functools.partial(_encode, config.pad_id, embed, encoder)
        outputs = head(encode(inputs), inputs["token_ids"])
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)
        self.config = config
        self.embedding = embedding
        self.encoder = encoder
        self.encode = encode
        # No attribute of its own: the paths of saved weights would change.
        self._transform: Any = functools.partial(head.transform) if is_masked_lm else None
        self.output_layer = embedding.tokens if is_masked_lm else None
        self._bias_layer = head.output_bias if is_masked_lm else None
        self._policy = policy
        self._has_types = has_types

    def compute_hidden(self, inputs: dict[str, Any]) -> Any:
        """Return what a masked LM's logits are made of, and ones for its bias: (B, T, D + 1)."""
        x = self._transform(self.encode(inputs))
        return ops.concatenate([x, ops.ones_like(x[..., :1])], axis=-1)

    def __call__(self, inputs, *arguments, **options):
        """Call the model; absent optional inputs, which Keras would require, are filled in."""
        return super().__call__(self._complete(inputs), *arguments, **options)

    def call(self, inputs, training=None, mask=None):
        """Return the head's output; JAX's steps call this directly (Keras 3.15)."""
        return super().call(self._complete(inputs), training=training, mask=mask)

    def _complete(self, inputs):
        if not isinstance(inputs, dict):
            return inputs
        if self._has_types:
            return {"type_ids": None, **inputs}
        if "type_ids" in inputs:
            raise ValueError("type_ids must not be given: all tokens of this model are alike")
        return inputs

    def with_head(self, head: str, **changes: Any) -> Self:
        """A new model with this one's encoder, its weights copied, under a head that is new.

        A pooler that both have is copied, too.

        Args:
            head: one of `heads.HEADS`.
            changes: of other fields of the config that have no weights below the head, such as
                `labels`.
        """
        config = dataclasses.replace(self.config, head=head, **changes)
        family: Any = type(self)
        model = family(config, dtype=self._policy)
        ours = {weight.path: weight for weight in self.weights}
        for weight in model.weights:
            if weight.path.startswith(BELOW_HEADS) and weight.path in ours:
                weight.assign(ours[weight.path])
        return model

    def _table(self, dtype):
        """The bias as one more column, which the ones after the hidden states choose."""
        bias_V1 = ops.expand_dims(ops.cast(self._bias_layer.bias, dtype), -1)
        return ops.concatenate([super()._table(dtype), bias_V1], axis=-1)


def _encode(pad_id, embed, encoder, inputs):
    """The hidden states (B, T, D) of the stack."""
    return encoder(embed(inputs), attention_mask=padding_mask(inputs["token_ids"], pad_id))
