"""Map of MPNet checkpoints."""

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
from keras_transformer.hub.families.family import Family, Rule, table
from keras_transformer.hub.families.fields import exactly
from keras_transformer.models import BERT, BERTConfig

NAMES = EncoderNames(
    "MPNet",
    ("lm_head.dense", "lm_head.layer_norm"),
    output_bias="lm_head.bias",
    bare_pooler="mpnet.pooler.dense",
    pooler="classifier.dense",
    classifier="classifier.out_proj",
    sizes=BERT_SIZES | {"num_buckets": "relative_attention_num_buckets"},
)
_LAYER = BERT_LAYER | {
    "attention/query_key_value": "attention.attn.q attention.attn.k attention.attn.v",
    "attention/output": "attention.attn.o",
    "attention_norm/norm": "attention.LayerNorm",
}
_PAD_ID = 1  # the first position is _PAD_ID + 1
_FIELDS = FIELDS | dict(
    relative_attention_num_buckets=exactly(32),  # `transformers` (5.23) computes no other number
    pad_token_id=exactly(_PAD_ID),
    hidden_act=exactly("gelu"),  # its masked LM head always uses gelu
)


def _config(theirs, names):
    return BERTConfig(
        num_types=0,
        position_offset=_PAD_ID + 1,
        max_length=theirs["max_position_embeddings"] - _PAD_ID - 1,
        pad_id=_PAD_ID,
        **NAMES.fields(theirs, names),
    )


def _config_file(config):
    return NAMES.config_file(config) | dict(
        attention_probs_dropout_prob=0.0,
        hidden_act="gelu",
        max_position_embeddings=config.max_length + config.position_offset,
        pad_token_id=config.pad_id,
    )


def _rules(config: BERTConfig) -> list[Rule]:
    rules = embeddings(config, "mpnet")
    rules += table("encoder/relative_bias/embedding", "mpnet.encoder.relative_attention_bias")
    return rules + blocks(config, "mpnet.encoder.layer.{}", _LAYER) + NAMES.rules(config)


FAMILIES = {
    "mpnet": Family(
        BERT,
        _config,
        _rules,
        _config_file,
        aliases=NAMES.decoder_aliases("mpnet.embeddings.word_embeddings.weight"),
        unused=(
            "embeddings.position_ids",
            # The weights of a pooler: not all heads have one.
            *(f"mpnet.pooler.dense.{part}" for part in ("weight", "bias")),
        ),
        heads=NAMES.weights,
        prefix="mpnet.",
        endings=NORM_ENDINGS,
        fields=_FIELDS,
        names=NAMES.of_ours | dict(max_length="max_position_embeddings"),
    )
}
