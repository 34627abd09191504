"""Shared parts of the maps of encoder-only families: fields, heads, class labels, blocks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from keras_transformer.checkpoints.families.family import Rule, dense, norm
from keras_transformer.checkpoints.families.fields import (
    Field,
    exactly,
    mapping,
    positive,
    rate,
    size,
)
from keras_transformer.models.encoder_only import EncoderConfig

HEADS = {  # suffix of an architecture's name -> our head
    "ForMaskedLM": "masked_lm",
    "ForPreTraining": "pretraining",  # ELECTRA's: "replaced_tokens"
    "ForNextSentencePrediction": "next_sentence",
    "ForSequenceClassification": "sequence_classification",
    "ForTokenClassification": "token_classification",
    "ForQuestionAnswering": "span_extraction",
    "Model": "hidden",
}
_SIZES = "vocab_size hidden_size intermediate_size num_hidden_layers num_attention_heads"
FIELDS = {name: size() for name in _SIZES.split()} | dict(
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
)
# TensorFlow's names: in BERT's first checkpoints, and in ESM's as `transformers` 5.23 saves them.
NORM_ENDINGS = ((".gamma", ".weight"), (".beta", ".bias"))


@dataclass(frozen=True)
class Names:
    """Names of the parts of heads in a checkpoint.

    Args:
        family: Prefix of the architectures' names, such as "Bert".
        transform: Dense layer and norm of the masked LM head.
        output_bias: Bias of its logits.
        pooler, classifier: Dense layers of the sequence classifier.
        bare_pooler: Dense layer of a pooler without a classifier. None: there is none.
        next_sentence: Dense layer of the next-sentence head. None: there is no such head.
        pairs: Those of "pretraining" and "next_sentence" that the family has.
        replaced: The two dense layers of the head "replaced_tokens". None: there is no such head.
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

    @property
    def heads(self) -> dict[str, str]:
        """Our heads that the family has, and their architectures."""
        heads = {ours: f"{self.family}{end}" for end, ours in HEADS.items()}
        for name in {"pretraining", "next_sentence"} - set(self.pairs):
            del heads[name]
        if self.bare_pooler:
            heads["pooled"] = heads["hidden"]
        if self.replaced:
            heads["replaced_tokens"] = f"{self.family}ForPreTraining"
        return heads

    def fields(self, theirs: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
        """Return the head and the labels as fields of our config."""
        architecture = (theirs["architectures"] or [f"{self.family}Model"])[0]
        known = {theirs: ours for ours, theirs in self.heads.items() if ours != "pooled"}
        if architecture not in known:
            raise ValueError(f"architectures must be one of {sorted(known)}, got {architecture!r}")
        head = known[architecture]
        if head == "hidden" and f"{self.bare_pooler}.weight" in set(names):
            head = "pooled"
        return dict(head=head, labels=labels_of(theirs))

    def config_file(self, config: EncoderConfig) -> dict[str, Any]:
        """Return the head and the labels as fields of a `config.json`; the inverse of `fields`."""
        if config.head not in self.heads:
            raise ValueError(f"head must be one of {sorted(self.heads)}, got {config.head!r}")
        if config.window is not None:
            raise ValueError(
                f"window must be None: the checkpoint format has no window, got {config.window}"
            )
        return dict(
            architectures=[self.heads[config.head]],
            id2label={str(i): name for i, name in enumerate(config.labels)},
            label2id={name: i for i, name in enumerate(config.labels)},
        )

    def rules(self, config: EncoderConfig) -> list[Rule]:
        """Return the rules of the head."""
        head, rules = config.head, []
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


def labels_of(theirs: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of a classifier's classes in the order of their numbers."""
    if not theirs["id2label"]:
        return tuple(f"LABEL_{i}" for i in range(theirs["num_labels"]))
    names = theirs["id2label"]
    if not all(x.isdecimal() and isinstance(name, str | None) for x, name in names.items()):
        raise ValueError(f"id2label must map class numbers to names, got {names}")
    return tuple(names[number] or f"LABEL_{number}" for number in sorted(names, key=int))


def blocks(
    config: EncoderConfig, theirs: str, attention_norm: str, feed_forward_norm: str
) -> list[Rule]:
    """Return the rules of a stack whose layers are named like BERT's, except for their norms."""
    rules = []
    for i in range(config.num_layers):
        block, layer = f"encoder/block_{i}", f"{theirs}.{i}"
        rules += dense(
            f"{block}/attention/query_key_value",
            *(f"{layer}.attention.self.{x}" for x in ("query", "key", "value")),
            heads=(config.num_heads,) * 3,
        )
        rules += dense(f"{block}/attention/output", f"{layer}.attention.output.dense")
        rules += dense(f"{block}/feed_forward/hidden", f"{layer}.intermediate.dense")
        rules += dense(f"{block}/feed_forward/output", f"{layer}.output.dense")
        rules += norm(f"{block}/attention_norm/norm", f"{layer}.{attention_norm}")
        rules += norm(f"{block}/feed_forward_norm/norm", f"{layer}.{feed_forward_norm}")
    return rules
