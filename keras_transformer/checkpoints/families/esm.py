"""Map of ESM-2 checkpoints."""

from __future__ import annotations

from keras_transformer.checkpoints.families.encoders import FIELDS, NORM_ENDINGS, Names, blocks
from keras_transformer.checkpoints.families.family import (
    Family,
    Rule,
    norm,
    table,
    token_id,
)
from keras_transformer.checkpoints.families.fields import Field, exactly, flag, positive
from keras_transformer.models import ESM, ESMConfig

NAMES = Names(
    "Esm",
    ("lm_head.dense", "lm_head.layer_norm"),
    output_bias="lm_head.bias",
    bare_pooler="esm.pooler.dense",
    pooler="classifier.dense",
    classifier="classifier.out_proj",
)
_FIELDS = FIELDS | dict(
    position_embedding_type=exactly("rotary", default="absolute"),
    emb_layer_norm_before=Field("false or null", lambda x: x is False, None),
    is_folding_model=exactly(False),
    hidden_act=exactly("gelu"),
    rope_theta=positive(10000.0),
    token_dropout=flag(False),
)


def _config(theirs, names):
    return ESMConfig(
        vocab_size=theirs["vocab_size"],
        d_model=theirs["hidden_size"],
        d_ff=theirs["intermediate_size"],
        num_layers=theirs["num_hidden_layers"],
        num_heads=theirs["num_attention_heads"],
        dropout=theirs["hidden_dropout_prob"],
        epsilon=theirs["layer_norm_eps"],
        max_length=theirs["max_position_embeddings"],
        pad_id=token_id(theirs, "pad_token_id"),
        theta=theirs["rope_theta"],
        token_dropout=theirs["token_dropout"],
        mask_id=token_id(theirs, "mask_token_id"),
        **NAMES.fields(theirs, names),
    )


def _config_file(config):
    return NAMES.config_file(config) | dict(
        vocab_size=config.vocab_size,
        hidden_size=config.d_model,
        intermediate_size=config.d_ff,
        num_hidden_layers=config.num_layers,
        num_attention_heads=config.num_heads,
        hidden_dropout_prob=config.dropout,
        attention_probs_dropout_prob=0.0,
        layer_norm_eps=config.epsilon,
        position_embedding_type="rotary",
        emb_layer_norm_before=False,
        max_position_embeddings=config.max_length,
        rope_theta=config.theta,
        token_dropout=config.token_dropout,
        pad_token_id=config.pad_id,
        mask_token_id=config.mask_id,
    )


def _rules(config: ESMConfig) -> list[Rule]:
    rules = table("embedding/tokens", "esm.embeddings.word_embeddings")
    rules += blocks(config, "esm.encoder.layer", "attention.LayerNorm", "LayerNorm")
    rules += norm("encoder/norm", "esm.encoder.emb_layer_norm_after")
    return rules + NAMES.rules(config)


FAMILIES = {
    "esm": Family(
        ESM,
        _config,
        _rules,
        _config_file,
        aliases={"lm_head.decoder.weight": ("esm.embeddings.word_embeddings.weight",)},
        unused=(
            "embeddings.position_ids",
            "embeddings.position_embeddings.weight",
            "rotary_embeddings.inv_freq",
            # Prediction of contacts from attention, which our models do not have.
            *(f"contact_head.regression.{part}" for part in ("weight", "bias")),
            *(f"esm.pooler.dense.{part}" for part in ("weight", "bias")),
        ),
        prefix="esm.",
        endings=NORM_ENDINGS,
        fields=_FIELDS,
    )
}
