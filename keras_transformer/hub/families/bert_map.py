"""Map of BERT, ERNIE, RoBERTa, XLM-RoBERTa, CamemBERT, data2vec and ALBERT checkpoints."""

from __future__ import annotations

import functools

from keras_transformer.config import require
from keras_transformer.hub.families.encoder_map import (
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
    their_activation,
    token_id,
)
from keras_transformer.hub.families.fields import (
    ACTIVATIONS,
    Field,
    activation,
    exactly,
    rate,
    size,
)
from keras_transformer.models import BERT, BERTConfig

BERTS = {"bert": "Bert", "ernie": "Ernie"}  # prefix of the architectures
ROBERTAS = {
    "roberta": "Roberta",
    "xlm-roberta": "XLMRoberta",
    "camembert": "Camembert",
    "data2vec-text": "Data2VecText",
}
PREFIXES = {  # prefixes of the names of weights
    "bert": "bert",
    "ernie": "ernie",
    "roberta": "roberta",
    "xlm-roberta": "roberta",
    "camembert": "roberta",
    "data2vec-text": "data2vec_text",
    "albert": "albert",
}
NAMES = {
    kind: EncoderNames(
        family,
        ("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm"),
        output_bias="cls.predictions.bias",
        bare_pooler=f"{kind}.pooler.dense",
        pooler=f"{kind}.pooler.dense",
        classifier="classifier",
        next_sentence="cls.seq_relationship",
        pairs=("pretraining", "next_sentence"),
    )
    for kind, family in BERTS.items()
}
NAMES |= {
    kind: EncoderNames(
        family,
        ("lm_head.dense", "lm_head.layer_norm"),
        output_bias="lm_head.bias",
        bare_pooler=f"{PREFIXES[kind]}.pooler.dense",
        pooler="classifier.dense",
        classifier="classifier.out_proj",
    )
    for kind, family in ROBERTAS.items()
}
NAMES |= {
    "albert": EncoderNames(
        "Albert",
        ("predictions.dense", "predictions.LayerNorm"),
        output_bias="predictions.bias",
        bare_pooler="albert.pooler",
        pooler="albert.pooler",
        classifier="classifier",
        next_sentence="sop_classifier.classifier",
        pairs=("pretraining",),
    ),
}
ALBERT_LAYER = {
    "attention/query_key_value": "attention.query attention.key attention.value",
    "attention/output": "attention.dense",
    "attention_norm/norm": "attention.LayerNorm",
    "feed_forward/hidden": "ffn",
    "feed_forward/output": "ffn_output",
    "feed_forward_norm/norm": "full_layer_layer_norm",
}
HEAD_DROPOUT = dict.fromkeys(NAMES, "classifier_dropout") | {"albert": "classifier_dropout_prob"}
# Fields that only training, other programs or the first versions of `transformers` read, and one
# that belongs to a refused option.
_HARMLESS = (
    "directionality",
    *(f"pooler_{x}" for x in ("fc_size", "num_attention_heads", "num_fc_layers", "type")),
    "pooler_size_per_head",
    *("net_structure_type", "num_memory_blocks", "gap_size", "down_scale_factor"),
    "layers_to_keep",
    "task_type_vocab_size",  # used only with `use_task_id` (ERNIE), which is refused
)


def _fields(kind: str) -> dict[str, Field]:
    """Return the fields of the `config.json` of a kind of BERT."""
    fields = FIELDS | {HEAD_DROPOUT[kind]: rate(None)}
    fields |= dict(
        type_vocab_size=size(2),
        hidden_act=activation("gelu"),
        position_embedding_type=exactly("absolute"),
    )
    if kind in ROBERTAS:
        fields["hidden_act"] = exactly("gelu")  # its masked LM head always uses gelu
    if kind == "ernie":
        fields["use_task_id"] = exactly(False)
    if kind == "albert":
        fields |= dict(
            embedding_size=size(),
            num_hidden_groups=size(1),
            inner_group_num=exactly(1),
            hidden_act=activation("gelu_new"),
            hidden_dropout_prob=rate(0.0),
            classifier_dropout_prob=rate(0.1),
        )
    return fields


def _config(theirs, names, kind):
    """Return our config of a BERT or a variant of it."""
    usual_pad_id = 1 if kind in ROBERTAS else 0
    pad_id = token_id({"pad_token_id": usual_pad_id, **theirs}, "pad_token_id")
    offset = pad_id + 1 if kind in ROBERTAS else 0
    layers = theirs["num_hidden_layers"]
    groups = theirs["num_hidden_groups"] if kind == "albert" else False
    require(groups <= layers, "num_hidden_groups", groups, f"at most num_hidden_layers={layers}")
    return BERTConfig(
        d_embedding=theirs["embedding_size"] if kind == "albert" else None,
        shared_blocks=groups,
        num_types=theirs["type_vocab_size"],
        position_offset=offset,
        head_dropout=theirs[HEAD_DROPOUT[kind]],
        activation=ACTIVATIONS[theirs["hidden_act"]],
        max_length=theirs["max_position_embeddings"] - offset,
        pad_id=pad_id,
        **NAMES[kind].fields(theirs, names),
    )


def _config_file(config, kind):
    """Return the `config.json` of a BERT or a variant of it."""
    theirs = NAMES[kind].config_file(config)
    if kind == "albert":
        theirs["embedding_size"] = config.d_embedding
        theirs["num_hidden_groups"] = int(config.shared_blocks) or config.num_layers
    theirs[HEAD_DROPOUT[kind]] = config.head_dropout
    return theirs | dict(
        type_vocab_size=config.num_types,
        attention_probs_dropout_prob=0.0,
        hidden_act=their_activation(config.activation),
        max_position_embeddings=config.max_length + config.position_offset,
        pad_token_id=config.pad_id,
    )


def _rules(config: BERTConfig, kind: str) -> list[Rule]:
    """Return the rules of all weights of a BERT or a variant of it."""
    prefix = PREFIXES[kind]
    rules = embeddings(config, prefix)
    if kind == "albert":
        group = "albert.encoder.albert_layer_groups.{}.albert_layers.0"
        rules += dense("projection", "albert.encoder.embedding_hidden_mapping_in")
        rules += blocks(config, group, ALBERT_LAYER, int(config.shared_blocks))
    else:
        rules += blocks(config, f"{prefix}.encoder.layer.{{}}")
    return rules + NAMES[kind].rules(config)


FAMILIES = {
    kind: Family(
        BERT,
        functools.partial(_config, kind=kind),
        functools.partial(_rules, kind=kind),
        functools.partial(_config_file, kind=kind),
        aliases=NAMES[kind].decoder_aliases(f"{prefix}.embeddings.word_embeddings.weight"),
        unused=(
            "embeddings.position_ids",
            # The weights of a pooler: not all heads have one.
            *(f"{NAMES[kind].bare_pooler}.{part}" for part in ("weight", "bias")),
        ),
        heads=NAMES[kind].weights,
        prefix=f"{prefix}.",
        endings=NORM_ENDINGS,
        fields=_fields(kind),
        also_read=("pad_token_id",),
        harmless=_HARMLESS,
        names=NAMES[kind].of_ours
        | dict(
            max_length="max_position_embeddings",
            num_types="type_vocab_size",
            d_embedding="embedding_size",
            head_dropout=HEAD_DROPOUT[kind],
            shared_blocks="num_hidden_groups",
        ),
    )
    for kind, prefix in PREFIXES.items()
}
