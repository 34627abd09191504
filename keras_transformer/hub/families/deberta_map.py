"""Map of DeBERTa-v2 and DeBERTa-v3 checkpoints."""

from __future__ import annotations

from keras_transformer.hub.families.encoder_map import (
    BERT_LAYER,
    BERT_SIZES,
    FIELDS,
    NORM_ENDINGS,
    EncoderNames,
    blocks,
    embeddings,
)
from keras_transformer.hub.families.family import (
    Family,
    Rule,
    dense,
    norm,
    only,
    table,
    their_activation,
    token_id,
)
from keras_transformer.hub.families.fields import (
    ACTIVATIONS,
    Field,
    activation,
    exactly,
    is_size,
    positive,
    rate,
)
from keras_transformer.models import DeBERTa, DeBERTaConfig

NAMES = EncoderNames(
    "DebertaV2",
    ("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm"),
    output_bias="cls.predictions.bias",
    pooler="pooler.dense",
    classifier="classifier",
    sizes=BERT_SIZES
    | dict(
        max_length="max_position_embeddings",
        num_buckets="position_buckets",
        max_distance="max_relative_positions",
        convolution="conv_kernel_size",
        head_dropout="cls_dropout",
    ),
)
_LAYER = BERT_LAYER | {
    "attention/query_key_value": " ".join(
        f"attention.self.{x}_proj" for x in ("query", "key", "value")
    )
}
# Maps DeBERTa-v3's own names of the masked LM head (`legacy: false`) to those of `transformers`.
_HEAD = {
    f"lm_predictions.lm_head.{newer}": f"cls.predictions.{older}"
    for newer, older in {
        "dense.weight": "transform.dense.weight",
        "dense.bias": "transform.dense.bias",
        "LayerNorm.weight": "transform.LayerNorm.weight",
        "LayerNorm.bias": "transform.LayerNorm.bias",
        "bias": "bias",
    }.items()
}
_POOLERS = sorted([*ACTIVATIONS, "tanh"])
# Layers of a head that our models do not have: the discriminator of replaced tokens.
_OTHERS = tuple(f"mask_predictions.{x}" for x in ("dense", "LayerNorm", "classifier"))


def _has_both(value):
    names = value.lower().split("|") if isinstance(value, str) else value
    return isinstance(names, list) and {str(x).strip() for x in names} == {"c2p", "p2c"}


_FIELDS = FIELDS | dict(
    layer_norm_eps=positive(1e-7),
    hidden_act=activation("gelu"),
    pooler_hidden_act=Field(f"one of {_POOLERS}", lambda x: x in _POOLERS, "gelu"),
    cls_dropout=rate(None),
    relative_attention=exactly(True, default=False),
    pos_att_type=Field("'c2p' and 'p2c'", _has_both),
    share_att_key=exactly(True, default=False),
    norm_rel_ebd=exactly("layer_norm", default="none"),
    position_buckets=Field("an even number above 0", lambda x: is_size(x) and x % 2 == 0),
    max_relative_positions=Field(
        "-1 or a whole number of at least 1", lambda x: is_size(x) or x == -1, -1
    ),
    position_biased_input=exactly(False, default=True),
    type_vocab_size=exactly(0),
    conv_kernel_size=Field(
        "0 or odd", lambda x: type(x) is int and (x == 0 or (x > 0 and x % 2 == 1)), 0
    ),
)
# Fields that `_config` compares with others.
_RELATED = (
    "embedding_size",
    "pooler_hidden_size",
    "attention_head_size",
    "conv_act",
    "conv_groups",
)


def _config(theirs, names):
    """Return our config of a DeBERTa."""
    width, length = theirs["hidden_size"], theirs["max_position_embeddings"]
    only(theirs, embedding_size=width, pooler_hidden_size=width)
    only(theirs, attention_head_size=width // theirs["num_attention_heads"])
    if theirs["conv_kernel_size"]:
        only({"conv_act": "tanh", **theirs}, conv_act=theirs["hidden_act"], conv_groups=1)
    if theirs["max_relative_positions"] == -1:
        theirs = theirs | dict(max_relative_positions=length)
    return DeBERTaConfig(
        activation=ACTIVATIONS[theirs["hidden_act"]],
        pooler=ACTIVATIONS.get(theirs["pooler_hidden_act"], "tanh"),
        pad_id=token_id({"pad_token_id": 0, **theirs}, "pad_token_id"),
        **NAMES.fields(theirs, names),
    )


def _config_file(config):
    """Return the `config.json` of a DeBERTa."""
    return NAMES.config_file(config) | dict(
        attention_probs_dropout_prob=0.0,
        hidden_act=their_activation(config.activation),
        pooler_hidden_act=their_activation(config.pooler),
        conv_act=their_activation(config.activation),
        relative_attention=True,
        pos_att_type=["p2c", "c2p"],
        share_att_key=True,
        norm_rel_ebd="layer_norm",
        position_biased_input=False,
        type_vocab_size=0,
        pad_token_id=config.pad_id,
    )


def _rules(config: DeBERTaConfig) -> list[Rule]:
    """Return the rules of all weights of a DeBERTa."""
    rules = embeddings(config, "deberta", dict(tokens="word_embeddings", norm="LayerNorm"))
    rules += table("encoder/relative", "deberta.encoder.rel_embeddings")
    rules += norm("encoder/relative_norm", "deberta.encoder.LayerNorm")
    if config.convolution:
        convolution = "deberta.encoder.conv.conv"
        rules += dense("encoder/convolution", convolution, layout="convolution")
        rules += norm("encoder/convolution_norm/norm", "deberta.encoder.conv.LayerNorm")
    return rules + blocks(config, "deberta.encoder.layer.{}", _LAYER) + NAMES.rules(config)


FAMILIES = {
    "deberta-v2": Family(
        DeBERTa,
        _config,
        _rules,
        _config_file,
        aliases=NAMES.decoder_aliases("deberta.embeddings.word_embeddings.weight"),
        unused=(
            "embeddings.position_ids",
            "embeddings.position_embeddings.weight",
            *(f"pooler.dense.{part}" for part in ("weight", "bias")),
        ),
        heads=(
            *NAMES.weights,
            *(f"{name}.{part}" for name in _OTHERS for part in ("weight", "bias")),
        ),
        prefix="deberta.",
        endings=(*_HEAD.items(), *NORM_ENDINGS),
        fields=_FIELDS,
        also_read=("pad_token_id", *_RELATED),
        harmless=("legacy",),  # the names of the weights tell which head it is
        names=NAMES.of_ours | dict(pooler="pooler_hidden_act"),
    )
}
