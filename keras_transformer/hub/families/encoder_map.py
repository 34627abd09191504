"""Shared parts of the maps of encoder-only families: fields, heads, layers."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from keras_transformer.config import require
from keras_transformer.hub.families.family import Rule, dense, norm, table
from keras_transformer.hub.families.fields import (
    TOKEN_NAMES,
    Field,
    exactly,
    mapping,
    positive,
    rate,
    read_same,
    size,
    write_same,
)
from keras_transformer.hub.families.general_fields import ONE_STACK
from keras_transformer.hub.families.label_fields import (
    label_fields,
    labels_of,
    problem_type_of,
)
from keras_transformer.models.encoder_only import EncoderConfig
from keras_transformer.models.problems import PROBLEM_TYPES

HEADS = {  # suffix of an architecture's name -> our head
    "ForMaskedLM": "masked_lm",
    "ForPreTraining": "pretraining",  # of ELECTRA: "replaced_tokens"
    "ForNextSentencePrediction": "next_sentence",
    "ForSequenceClassification": "sequence_classification",
    "ForTokenClassification": "token_classification",
    "ForQuestionAnswering": "span_extraction",
    "Model": "hidden",
}
# A checkpoint without architectures, or without weights of the named head, gets the first of these
# heads whose weights it has.
BY_WEIGHTS = (
    "sequence_classification",
    "token_classification",
    "span_extraction",
    "pretraining",
    "replaced_tokens",
    "masked_lm",
    "next_sentence",
    "pooled",
    "hidden",
)
_SIZES = "vocab_size hidden_size intermediate_size num_hidden_layers num_attention_heads"
FIELDS = (
    ONE_STACK
    | {name: size() for name in _SIZES.split()}
    | dict(
        max_position_embeddings=size(),
        hidden_dropout_prob=rate(0.1),
        layer_norm_eps=positive(1e-12),
        is_decoder=exactly(False),
        add_cross_attention=exactly(False),
        tie_word_embeddings=exactly(True),
        architectures=Field(
            "a list of names or null",
            lambda x: isinstance(x, list) and all(isinstance(name, str) for name in x),
            None,
        ),
        id2label=mapping(),
        num_labels=size(2),
        problem_type=Field(
            f"one of {PROBLEM_TYPES} or null", lambda x: x in PROBLEM_TYPES, default=None
        ),
    )
)
BERT_SIZES = dict(  # our field -> Hugging Face's, with the same value
    vocab_size="vocab_size",
    d_model="hidden_size",
    d_ff="intermediate_size",
    num_layers="num_hidden_layers",
    num_heads="num_attention_heads",
    dropout="hidden_dropout_prob",
    epsilon="layer_norm_eps",
)
BERT_LAYER = {  # part of our block -> its names in BERT's layers; several are fused
    "attention/query_key_value": "attention.self.query attention.self.key attention.self.value",
    "attention/output": "attention.output.dense",
    "attention_norm/norm": "attention.output.LayerNorm",
    "feed_forward/hidden": "intermediate.dense",
    "feed_forward/output": "output.dense",
    "feed_forward_norm/norm": "output.LayerNorm",
}
BERT_EMBEDDINGS = dict(
    tokens="word_embeddings",
    positions="position_embeddings",
    types="token_type_embeddings",
    norm="LayerNorm",
)
# TensorFlow's endings of names: in BERT's first checkpoints, and in those of ESM that
# `transformers` 5.23 saves.
NORM_ENDINGS = ((".gamma", ".weight"), (".beta", ".bias"))


@dataclass(frozen=True)
class EncoderNames:
    """Names of config fields and of the parts of heads in the checkpoints of a family.

    Args:
        family: Prefix of the architectures' names, such as "Bert".
        transform: Dense layer and norm of the masked LM head.
        output_bias: Bias of the masked LM head's logits.
        pooler, classifier: Dense layers of the sequence classifier.
        bare_pooler: Dense layer of a pooler without a classifier. None: there is none.
        next_sentence: Dense layer of the next-sentence head. None: there is no such head.
        pairs: Which of the heads "pretraining" and "next_sentence" the family has.
        replaced: The two dense layers of the head "replaced_tokens". None: there is no such head.
        sizes: Maps fields of our config to fields of a `config.json` with the same value.
    """

    family: str
    transform: tuple[str, str]
    output_bias: str
    pooler: str
    classifier: str
    bare_pooler: str | None = None
    next_sentence: str | None = None
    pairs: tuple[str, ...] = ()
    replaced: tuple[str, str] | None = None
    sizes: Mapping[str, str] = dataclasses.field(default_factory=lambda: BERT_SIZES)

    @property
    def of_ours(self) -> dict[str, str]:
        """Map from fields of our config to fields of a `config.json`, for messages."""
        more = dict(activation="hidden_act", head="architectures", labels="id2label")
        return TOKEN_NAMES | more | dict(self.sizes)

    @property
    def heads(self) -> dict[str, str]:
        """Map from the heads that the family has, by our names, to their architectures."""
        heads = {ours: f"{self.family}{end}" for end, ours in HEADS.items()}
        for name in {"pretraining", "next_sentence"} - set(self.pairs):
            del heads[name]
        if self.bare_pooler:
            heads["pooled"] = heads["hidden"]
        if self.replaced:
            heads["replaced_tokens"] = f"{self.family}ForPreTraining"
        return heads

    def fields(self, theirs: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
        """Return sizes, head, labels and problem type as fields of our config."""
        head = self._head(theirs["architectures"], set(names))
        problem = problem_type_of(theirs) if head == "sequence_classification" else None
        facts = dict(head=head, labels=labels_of(theirs), problem_type=problem)
        return read_same(theirs, self.sizes) | facts

    def _head(self, architectures, names):
        """Return the head that `architectures` names; else, or if its weights are missing, another.

        The other one is the first in `BY_WEIGHTS` whose weights exist. If `architectures` names
        "hidden" and the weights have a pooler, the head is "pooled".
        """
        fitting = [
            head
            for head in BY_WEIGHTS
            if head in self.heads and names.issuperset(_names(self._rules(head)))
        ]
        if not architectures:
            return fitting[0]
        known = {theirs: ours for ours, theirs in self.heads.items() if ours != "pooled"}
        accepted = f"one of {sorted(known)}, or absent for the head that the weights have"
        require(architectures[0] in known, "architectures", architectures[0], accepted)
        head = known[architectures[0]]
        if names and names.isdisjoint(_names(self._rules(head))) and head != "hidden":
            # sentence-transformers keeps the name of the model that it trained further.
            warnings.warn(
                f"the weights have no {head!r}, the head of {architectures[0]}: the model has the "
                f"head {fitting[0]!r}",
                stacklevel=2,
            )
            return fitting[0]
        return "pooled" if head == "hidden" and "pooled" in fitting else head

    @property
    def weights(self) -> tuple[str, ...]:
        """The names of the weights of all heads."""
        return tuple({name: None for head in self.heads for name in _names(self._rules(head))})

    def config_file(self, config: EncoderConfig) -> dict[str, Any]:
        """Return what `fields` reads, as fields of a `config.json`.

        Raises:
            ValueError: If the family does not have the head, or the config has a window.
        """
        require(config.head in self.heads, "head", config.head, f"one of {sorted(self.heads)}")
        if config.window is not None:
            raise ValueError(
                f"window must be None: the checkpoint format has no window, got {config.window}"
            )
        return write_same(config, self.sizes) | dict(
            architectures=[self.heads[config.head]],
            **label_fields(config.labels, config.problem_type),
        )

    def decoder_aliases(self, table: str) -> dict[str, tuple[str, ...]]:
        """Return the aliases of the masked LM head's projection: it repeats `table` and a bias."""
        decoder = f"{self.output_bias.removesuffix('bias')}decoder"
        return {f"{decoder}.weight": (table,), f"{decoder}.bias": (self.output_bias,)}

    def rules(self, config: EncoderConfig) -> list[Rule]:
        """Return the rules of the weights of a config's head."""
        return self._rules(config.head)

    def _rules(self, head):
        """Return the rules of the weights of a head, by its name."""
        rules: list[Rule] = []
        if head in ("masked_lm", "pretraining"):
            rules += dense("transform/dense", self.transform[0])
            rules += norm("transform/norm", self.transform[1])
            rules.append(Rule("output_bias/bias", (self.output_bias,)))
        if head == "replaced_tokens" and self.replaced:
            rules += dense("replaced_transform", self.replaced[0])
            rules += dense("replaced", self.replaced[1])
        if head in ("pooled", "pretraining", "next_sentence") and self.bare_pooler:
            rules += dense("pooler", self.bare_pooler)
        if head in ("pretraining", "next_sentence") and self.next_sentence:
            rules += dense("next_sentence", self.next_sentence)
        if head == "sequence_classification":
            rules += dense("pooler", self.pooler)
            rules += dense("classifier", self.classifier)
        if head == "token_classification":
            rules += dense("classifier", "classifier")
        if head == "span_extraction":
            rules += dense("span", "qa_outputs")
        return rules


def _names(rules):
    return [name for rule in rules for name in rule.names]


def embeddings(
    config: EncoderConfig, prefix: str, names: Mapping[str, str] = BERT_EMBEDDINGS
) -> list[Rule]:
    """Return the rules of the tables and the norm of embeddings.

    A table of types has a rule only if the config has types.
    """
    rules = []
    for ours, name in names.items():
        path, name = f"embedding/{ours}", f"{prefix}.embeddings.{name}"
        if ours == "norm":
            rules += norm(path, name)
        elif ours != "types" or getattr(config, "num_types", 0) > 0:
            rules += table(path, name)
    return rules


def blocks(
    config: Any,
    prefix: str,
    layer: Mapping[str, str] = BERT_LAYER,
    count: int | None = None,
    qkv_bias: bool = True,
) -> list[Rule]:
    """Return the rules of a stack of encoder blocks.

    Args:
        config: Our config.
        prefix: Name of a layer in the checkpoint, with `{}` for its number.
        layer: Parts of our blocks and their names in a layer.
        count: Number of blocks. None: the number of layers.
        qkv_bias: Whether the projections to queries, keys and values have a bias.
    """
    rules = []
    for i in range(config.num_layers if count is None else count):
        for part, names in layer.items():
            ours = f"encoder/block_{i}/{part}"
            theirs = [f"{prefix.format(i)}.{name}" for name in names.split()]
            if part.endswith("norm"):
                rules += norm(ours, *theirs)
            elif len(theirs) > 1:
                rules += dense(ours, *theirs, bias=qkv_bias, heads=(config.num_heads,) * 3)
            else:
                rules += dense(ours, *theirs)
    return rules
