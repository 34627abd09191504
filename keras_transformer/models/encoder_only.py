"""Base classes of encoder-only models: config, graph from ids to hidden states, and head."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import keras
import numpy as np
from keras import ops

from keras_transformer.config import ACTIVATIONS, Config, require
from keras_transformer.layers import Encoder, PositionalEmbedding, padding_mask
from keras_transformer.models.problems import check_labels
from keras_transformer.models.task_heads import HEADS
from keras_transformer.models.training_step import VocabularyModel

# Layers that `with_head` copies: all below the head, the pooler, and those of a masked LM's head.
SHARED = ("embedding", "projection", "encoder", "pooler", "transform", "output_bias")


@dataclass(frozen=True)
class EncoderConfig(Config):
    """Config of an encoder-only model: the fields of all families (defaults: BERT-base).

    Args:
        vocab_size: Number of token ids.
        d_model: Width of the residual stream; a multiple of `num_heads`.
        d_ff: Width inside the feed-forward sub-layers; None: 4 `d_model`.
        num_layers: Number of blocks.
        num_heads: Number of attention heads per block.
        dropout: Dropout rate in [0, 1) on sub-layer outputs and embeddings.
        activation: Activation of the feed-forward and of a masked LM's head, one of `ACTIVATIONS`.
        epsilon: Epsilon of the norms.
        max_length: Longest sequence in tokens.
        window: Limits attention to tokens less than this many positions away, so that time and
            memory grow linearly with the length (Beltagy et al. 2020, section 3.1); None: no
            limit.
        global_tokens: Number of leading tokens that attend to all tokens, and that all tokens
            attend to, regardless of `window`.
        pad_id: Id that pads a sequence on the right; it is masked.
        head: Head on the encoder, one of `task_heads.HEADS`.
        labels: Names of a classifier's classes.
        head_dropout: Dropout rate in [0, 1) before a classifier; None: `dropout`.
        pooler: Activation of the pooled first hidden state: "tanh" or one of `ACTIVATIONS`.
        problem_type: Meaning of the outputs of the head "sequence_classification", one of
            `problems.PROBLEM_TYPES`; None: see `problems.problem_of`.

    Raises:
        ValueError: If a value is out of range.
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
    pooler: str = "tanh"
    problem_type: str | None = None

    def __post_init__(self):
        self._fill_d_ff()
        if self.head_dropout is None:
            object.__setattr__(self, "head_dropout", self.dropout)
        self._check_whole("vocab_size", "d_model", "d_ff", "num_layers", "num_heads", "max_length")
        if not hasattr(self, "head_dim"):
            self._check_multiple("d_model", "num_heads")
        if self.window is not None:
            self._check_whole("window")
        self._check_whole("global_tokens", least=0)
        only = "0 without a window, because all tokens attend to all"
        require(
            not (self.global_tokens and self.window is None),
            "global_tokens",
            self.global_tokens,
            only,
        )
        self._check_rates("head_dropout")
        self._check_choice("activation", ACTIVATIONS)
        self._check_choice("head", tuple(self.heads))
        self._check_choice("pooler", ("tanh", *ACTIVATIONS))
        self._check_ids(self.vocab_size, "pad_id")
        check_labels(self)

    @property
    def heads(self) -> dict[str, type]:
        """The class of each head."""
        return HEADS

    @property
    def takes_pairs(self) -> bool:
        """Whether the model also takes a pair of texts, as one sequence."""
        return False


class EncoderOnly(VocabularyModel):
    """Base class of functional models from `token_ids` to the output of a head.

    With the head "masked_lm" and a `LabelSmoothedCrossentropy`, `fit` computes the loss from hidden
    states, see `VocabularyModel`; labels are `pad_id` where no token was masked.

    Args:
        config: The family's config.
        policy: Dtype policy of the parts.
        embedding: Layer with the token table, which also projects to the logits of a masked LM.
        embed: Function from the inputs to the encoder's input (B, T, D).
        encoder: Stack of encoder blocks.
        has_types: Whether there is an input `type_ids`.

    Call arguments:
        inputs: Dict of `token_ids` (B, T), int32, and, if the model has several token types,
            optionally `type_ids` (B, T), int32; without them all types are 0. Padding on the
            right changes nothing.

    Returns:
        Output of the head: see `task_heads`.

    Raises:
        ValueError: If an input is missing or unknown, or `type_ids` are given to a model without
            types.
    """

    optional_inputs = frozenset({"type_ids"})

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
        head: Any = config.heads[config.head](config, embedding, policy)
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
        self.embed = embed
        self.encode = encode
        # Hidden from Keras: as a tracked layer it would change the paths of saved weights.
        self._transform: Any = functools.partial(head.transform) if is_masked_lm else None
        self.output_layer = head.output_layer if is_masked_lm else None
        self._bias_layer: Any = head.output_bias if is_masked_lm else None
        self._policy = policy
        self._has_types = has_types

    def compute_hidden(self, inputs: dict[str, Any]) -> Any:
        """Return the input of a masked LM's projection, with a last element 1 for any bias."""
        x = self._transform(self.encode(inputs))
        if self._bias_layer is None:
            return x
        return ops.concatenate([x, ops.ones_like(x[..., :1])], axis=-1)

    def named_inputs(self, inputs: Any) -> Any:
        """Return inputs by name; absent `type_ids` become None, or 0 in a larger model's graph."""
        if isinstance(inputs, dict) and "type_ids" in inputs and not self._has_types:
            raise ValueError("type_ids must not be given: all tokens of this model are alike")
        inputs = super().named_inputs(inputs)
        if not self._has_types or "type_ids" in inputs:
            return inputs
        ids = inputs["token_ids"]
        types = ops.zeros_like(ids) if isinstance(ids, keras.KerasTensor) else None
        return {"type_ids": types, **inputs}

    def with_head(self, head: str, dtype: Any = None, **changes: Any) -> Self:
        """Return a new model with a copy of this one's encoder and a new head.

        A pooler and the head of a masked LM are copied too, if both models have them. The
        `problem_type` is not: it belongs to the old head.

        Args:
            head: One of `task_heads.HEADS`.
            dtype: Keras dtype policy of the new model; None: that of this one.
            changes: New values of other config fields, such as `labels`, but not of fields that
                determine the shapes of weights below the head.

        Raises:
            ValueError: If the weights are quantized, which a new model's are not.
        """
        kind, only = self.quantization, "floats, to put another head on them"
        require(not kind, "the model's weights", kind, only)
        changes = {"problem_type": None, **changes}
        config = dataclasses.replace(self.config, head=head, **changes)
        family: Any = type(self)
        model = family(config, dtype=dtype or self._policy)
        by_path = {weight.path: weight for weight in self.weights}
        for weight in model.weights:
            if weight.path.startswith(SHARED) and weight.path in by_path:
                # A copy: JAX's training steps delete the arrays that they update.
                weight.assign(np.array(ops.convert_to_numpy(by_path[weight.path])))
        return model

    def _table(self, dtype):
        """Return the table with any bias as one more column, for the ones in the hidden states."""
        if self._bias_layer is None:
            return super()._table(dtype)
        bias_V1 = ops.expand_dims(ops.cast(self._bias_layer.bias, dtype), -1)
        return ops.concatenate([super()._table(dtype), bias_V1], axis=-1)


def _encode(pad_id, embed, encoder, inputs):
    """Return the hidden states (B, T, D) of the stack."""
    return encoder(embed(inputs), attention_mask=padding_mask(inputs["token_ids"], pad_id))
