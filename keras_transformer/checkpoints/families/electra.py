"""Map of ELECTRA checkpoints: generators and discriminators."""

from __future__ import annotations

from keras_transformer.checkpoints.families.encoders import FIELDS, Names, blocks
from keras_transformer.checkpoints.families.family import (
    Family,
    Rule,
    dense,
    norm,
    table,
    token_id,
)
from keras_transformer.checkpoints.families.fields import exactly, rate, size
from keras_transformer.models import BERT, BERTConfig

NAMES = Names(
    "Electra",
    ("generator_predictions.dense", "generator_predictions.LayerNorm"),
    output_bias="generator_lm_head.bias",
    pooler="classifier.dense",
    classifier="classifier.out_proj",
    replaced=("discriminator_predictions.dense", "discriminator_predictions.dense_prediction"),
)
_HEADS = (
    "generator_predictions.dense",
    "generator_predictions.LayerNorm",
    "generator_lm_head",
    *(NAMES.replaced or ()),
)
_FIELDS = FIELDS | dict(
    embedding_size=size(),
    type_vocab_size=size(2),
    hidden_act=exactly("gelu"),  # two of its heads always use gelu
    position_embedding_type=exactly("absolute"),
    classifier_dropout=rate(None),
)


def _config(theirs, names):
    is_narrow = theirs["embedding_size"] != theirs["hidden_size"]
    return BERTConfig(
        vocab_size=theirs["vocab_size"],
        d_model=theirs["hidden_size"],
        d_ff=theirs["intermediate_size"],
        num_layers=theirs["num_hidden_layers"],
        num_heads=theirs["num_attention_heads"],
        d_embedding=theirs["embedding_size"] if is_narrow else None,
        num_types=theirs["type_vocab_size"],
        dropout=theirs["hidden_dropout_prob"],
        head_dropout=theirs["classifier_dropout"],
        epsilon=theirs["layer_norm_eps"],
        max_length=theirs["max_position_embeddings"],
        pad_id=token_id({"pad_token_id": 0, **theirs}, "pad_token_id"),
        pooler="gelu",
        **NAMES.fields(theirs, names),
    )


def _config_file(config):
    return NAMES.config_file(config) | dict(
        vocab_size=config.vocab_size,
        embedding_size=config.d_embedding or config.d_model,
        hidden_size=config.d_model,
        intermediate_size=config.d_ff,
        num_hidden_layers=config.num_layers,
        num_attention_heads=config.num_heads,
        type_vocab_size=config.num_types,
        hidden_dropout_prob=config.dropout,
        attention_probs_dropout_prob=0.0,
        classifier_dropout=config.head_dropout,
        hidden_act="gelu",
        layer_norm_eps=config.epsilon,
        max_position_embeddings=config.max_length,
        pad_token_id=config.pad_id,
    )


def _rules(config: BERTConfig) -> list[Rule]:
    rules = table("embedding/tokens", "electra.embeddings.word_embeddings")
    rules += table("embedding/positions", "electra.embeddings.position_embeddings")
    rules += table("embedding/types", "electra.embeddings.token_type_embeddings")
    rules += norm("embedding/norm", "electra.embeddings.LayerNorm")
    if config.d_embedding is not None:
        rules += dense("projection", "electra.embeddings_project")
    norms = "attention.output.LayerNorm", "output.LayerNorm"
    rules += blocks(config, "electra.encoder.layer", *norms)
    return rules + NAMES.rules(config)


FAMILIES = {
    "electra": Family(
        BERT,
        _config,
        _rules,
        _config_file,
        aliases={"generator_lm_head.weight": ("electra.embeddings.word_embeddings.weight",)},
        unused=(
            "embeddings.position_ids",
            # Weights of heads that a checkpoint may have in addition to that of its config.
            *(f"{name}.{part}" for name in _HEADS for part in ("weight", "bias")),
        ),
        prefix="electra.",
        fields=_FIELDS,
    )
}
