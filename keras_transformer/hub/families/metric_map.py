"""Maps of checkpoints of learned metrics: COMET and MetricX."""

from __future__ import annotations

from typing import Any

from keras_transformer.config import require
from keras_transformer.hub.families.bert_map import FAMILIES as BERTS
from keras_transformer.hub.families.family import Family, Rule, dense
from keras_transformer.hub.families.fields import PAIR_TOKENS, Field, exactly, flag
from keras_transformer.hub.families.t5_map import FAMILIES as T5S
from keras_transformer.models.metric_model import MetricConfig, MetricModel
from keras_transformer.system.foreign_fields import FieldTable

ENCODER = "encoder_config"  # our name of the encoder's `config.json` among COMET's settings
KINDS = ("regression_metric", "referenceless_regression_metric", "unified_metric")
REGRESSION, REFERENCELESS, UNIFIED = KINDS
_SEGMENTS = {"mt": "translation", "src": "source", "ref": "reference"}
_POOLINGS = {"avg": "mean", "cls": "cls", "max": "max"}
_ACTIVATIONS = ("tanh", "sigmoid", "relu")
_LAYER = Field(
    "'mix' or a whole number", lambda x: x == "mix" or (type(x) is int and x >= 0), "mix"
)
_TRAINING = (  # settings of the training, and of the prediction of wrong words
    *("nr_frozen_epochs", "keep_embeddings_frozen", "optimizer", "warmup_steps", "dropout"),
    *("encoder_learning_rate", "learning_rate", "layerwise_decay", "loss", "loss_lambda"),
    *("batch_size", "train_data", "validation_data", "load_pretrained_weights", "local_files_only"),
    *("word_layer", "word_level_training", "error_labels", "cross_entropy_weights"),
    *("pretrained_model", "initalize_pretrained_unified_weights"),
)


def _activation(default: Any) -> Field:
    return Field(f"one of {_ACTIVATIONS}", lambda x: str(x).lower() in _ACTIVATIONS, default)


FIELDS = dict(
    class_identifier=Field(f"one of {KINDS}", lambda x: x in KINDS),
    encoder_model=exactly("XLM-RoBERTa"),
    pool=Field(f"one of {tuple(_POOLINGS)}", lambda x: x in _POOLINGS, "avg"),
    layer=_LAYER,
    sent_layer=_LAYER,
    layer_transformation=Field(
        "softmax, sparsemax or sparsemax_patch",
        lambda x: x in ("softmax", "sparsemax", "sparsemax_patch"),
        None,
    ),
    layer_norm=flag(True),
    hidden_sizes=Field(
        "a list of whole numbers above 0",
        lambda x: isinstance(x, list) and all(type(y) is int and y > 0 for y in x) and len(x) > 0,
    ),
    activations=_activation("Tanh"),
    final_activation=_activation(None),
    input_segments=Field(
        "mt, then src, ref or both",
        lambda x: x in (["mt", "src"], ["mt", "ref"], ["mt", "src", "ref"]),
        ["mt", "src", "ref"],
    ),
)
SETTINGS = FieldTable({*FIELDS, ENCODER}, _TRAINING)


def _of_comet(theirs, names):
    """Return our config of a COMET, from its settings with the `config.json` of its encoder."""
    encoder = {**theirs[ENCODER], "architectures": ["XLMRobertaModel"]}
    kind = encoder.get("model_type")
    require(kind == "xlm-roberta", "model_type of the encoder", kind, "'xlm-roberta'")
    base = BERTS["xlm-roberta"].read(encoder, ())
    joined = theirs["class_identifier"] == UNIFIED
    segments = theirs["input_segments"] if joined else ["mt", "src", "ref"]
    if theirs["class_identifier"] == REFERENCELESS:
        segments = ["mt", "src"]
    layer = theirs["sent_layer" if joined else "layer"]
    usual = "sparsemax" if joined else "softmax"
    is_sparse = (theirs["layer_transformation"] or usual) == "sparsemax"
    final = theirs["final_activation"]
    return MetricConfig(
        "BERT",
        base.to_dict(),
        segments=tuple(_SEGMENTS[x] for x in segments),
        joined=joined,
        layer=None if layer == "mix" else layer,
        shares="sparsemax" if is_sparse else "softmax",
        normalized=theirs["layer_norm"],
        pooling="cls" if joined else _POOLINGS[theirs["pool"]],
        hidden_sizes=tuple(theirs["hidden_sizes"]),
        activation=theirs["activations"].lower(),
        final_activation=final and final.lower(),
    )


def _comet_rules(config: MetricConfig) -> list[Rule]:
    base: Any = config.base_config
    rules = BERTS["xlm-roberta"].rules(base)
    if config.layer is None:
        names = [f"layerwise_attention.scalar_parameters.{i}" for i in range(base.num_layers + 1)]
        rules.append(Rule("mixture/logits", tuple(names), heads=(1,) * len(names)))
        rules.append(Rule("mixture/gamma", ("layerwise_attention.gamma",)))
    ours = [*(f"hidden_{i}" for i in range(len(config.hidden_sizes))), "score"]
    for i, name in enumerate(ours):  # activation and dropout stand between two layers
        rules += dense(name, f"estimator.ff.{3 * i}")
    return rules


def _refuse(config: MetricConfig) -> dict[str, Any]:
    raise ValueError("a learned metric is not written as a checkpoint")


COMET = Family(
    MetricModel,
    _of_comet,
    _comet_rules,
    config_file=_refuse,
    aliases={},
    unused=(*BERTS["xlm-roberta"].unused, "dropout_mask", "dropout_fill"),
    part=(
        ("encoder.model.", "roberta."),
        ("layerwise_attention.", "layerwise_attention."),
        ("estimator.", "estimator."),
    ),
    fields=FIELDS,
    also_read=(ENCODER,),
    harmless=_TRAINING,
)

# MetricX: the score is the logit of one token, clipped to the range of MQM's scores of a segment.
_SCORE, _LIMITS = 250089, (0.0, 25.0)
_MOST_TOKENS = 1536  # the longest input that MetricX-24 was trained with
TOKENIZER = "google/mt5-base"  # a published model with the tokenizer of all MetricX
_MT5 = T5S["mt5"]
_REGRESSION = "MT5ForRegression"


def _of_metricx(theirs, names):
    """Return our config of a MetricX."""
    base = {
        **_MT5.read({**theirs, "architectures": None}, ()).to_dict(),
        **dict(tie_output=True, scale_output=False, max_length=_MOST_TOKENS),
    }
    size = base["vocab_size"]
    require(size > _SCORE, "vocab_size", size, f"above {_SCORE}, the token of the score")
    return MetricConfig(
        "T5", base, joined=True, hidden_sizes=(), limits=_LIMITS, lower_is_better=True
    )


def _metricx_rules(config: MetricConfig) -> list[Rule]:
    base: Any = config.base_config
    row = Rule("score/kernel", ("lm_head.weight",), "transposed", share=(_SCORE, base.vocab_size))
    return [*_MT5.rules(base), row]


VARIANTS = {
    ("mt5", _REGRESSION): Family(
        MetricModel,
        _of_metricx,
        _metricx_rules,
        config_file=_refuse,
        aliases={x: y for x, y in _MT5.aliases.items() if x != "lm_head.weight"},
        unused=_MT5.unused,
        fields={**_MT5.fields, "tie_word_embeddings": exactly(False)},
        also_read=PAIR_TOKENS,
        harmless=_MT5.harmless,
        synonyms=_MT5.synonyms,
        names=_MT5.names,
        architectures=(_REGRESSION,),
    )
}
