"""Map of checkpoints of a BART with a classifier, such as bart-large-mnli."""

from __future__ import annotations

from keras_transformer.hub.families import bart_map
from keras_transformer.hub.families.encoder_map import FIELDS
from keras_transformer.hub.families.family import Family, Rule, dense
from keras_transformer.hub.families.fields import SIDE_SYNONYMS, rate
from keras_transformer.hub.families.label_fields import (
    label_fields,
    labels_of,
    problem_type_of,
)
from keras_transformer.models import TransformerClassifier, TransformerClassifierConfig

_CLASS = "BartForSequenceClassification"
_HEAD = "classification_head"
_FIELDS = bart_map.FIELDS | {x: FIELDS[x] for x in ("id2label", "num_labels", "problem_type")}
_FIELDS |= {"classifier_dropout": rate(0.0)}


def _config(theirs, names):
    """Return our config of a BART with a classifier."""
    return bart_map.bart_config(
        theirs,
        names,
        config_class=TransformerClassifierConfig,
        output_bias=False,
        labels=labels_of(theirs),
        problem_type=problem_type_of(theirs),
        head_dropout=theirs["classifier_dropout"],
    )


def _config_file(config):
    return bart_map.file_of(config, "bart") | dict(
        architectures=[_CLASS],
        classifier_dropout=config.head_dropout,
        **label_fields(config.labels, config.problem_type),
    )


def _rules(config: TransformerClassifierConfig) -> list[Rule]:
    rules = bart_map.rules_of(config)
    return rules + dense("pooler", f"{_HEAD}.dense") + dense("classifier", f"{_HEAD}.out_proj")


VARIANTS = {
    ("bart", _CLASS): Family(
        TransformerClassifier,
        _config,
        _rules,
        _config_file,
        bart_map.ALIASES,
        (*bart_map.UNUSED, "final_logits_bias"),
        prefix="model.",
        fields=_FIELDS,
        synonyms=SIDE_SYNONYMS,
        names=bart_map.NAMES,
        architectures=(_CLASS,),
    )
}
