"""Map of ELECTRA checkpoints: generators and discriminators."""

from __future__ import annotations

from keras_transformer.hub.families.encoder_map import (
    BERT_SIZES,
    FIELDS,
    EncoderNames,
    blocks,
    embeddings,
)
from keras_transformer.hub.families.family import Family, Rule, dense, token_id
from keras_transformer.hub.families.fields import exactly, rate, size
from keras_transformer.models import BERT, BERTConfig

NAMES = EncoderNames(
    "Electra",
    ("generator_predictions.dense", "generator_predictions.LayerNorm"),
    output_bias="generator_lm_head.bias",
    pooler="classifier.dense",
    classifier="classifier.out_proj",
    replaced=("discriminator_predictions.dense", "discriminator_predictions.dense_prediction"),
    sizes=BERT_SIZES
    | dict(
        max_length="max_position_embeddings",
        num_types="type_vocab_size",
        head_dropout="classifier_dropout",
    ),
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
        d_embedding=theirs["embedding_size"] if is_narrow else None,
        pad_id=token_id({"pad_token_id": 0, **theirs}, "pad_token_id"),
        pooler="gelu",
        **NAMES.fields(theirs, names),
    )


def _config_file(config):
    return NAMES.config_file(config) | dict(
        embedding_size=config.d_embedding or config.d_model,
        attention_probs_dropout_prob=0.0,
        hidden_act="gelu",
        pad_token_id=config.pad_id,
    )


def _rules(config: BERTConfig) -> list[Rule]:
    rules = embeddings(config, "electra")
    if config.d_embedding is not None:
        rules += dense("projection", "electra.embeddings_project")
    return rules + blocks(config, "electra.encoder.layer.{}") + NAMES.rules(config)


FAMILIES = {
    "electra": Family(
        BERT,
        _config,
        _rules,
        _config_file,
        aliases={"generator_lm_head.weight": ("electra.embeddings.word_embeddings.weight",)},
        unused=("embeddings.position_ids",),
        heads=NAMES.weights,
        prefix="electra.",
        fields=_FIELDS,
        also_read=("pad_token_id",),
        # Fields of a head that this model lacks.
        harmless=("summary_type", "summary_use_proj", "summary_activation"),
        names=NAMES.of_ours | {"d_embedding": "embedding_size"},
    )
}
