"""Map of ESM-2 checkpoints."""

from __future__ import annotations

from keras_transformer.hub.families.encoder_map import (
    BERT_LAYER,
    BERT_SIZES,
    FIELDS,
    NORM_ENDINGS,
    EncoderNames,
    blocks,
)
from keras_transformer.hub.families.family import Family, Rule, norm, table, token_id
from keras_transformer.hub.families.fields import Field, exactly, flag, positive
from keras_transformer.models import ESM, ESMConfig

NAMES = EncoderNames(
    "Esm",
    ("lm_head.dense", "lm_head.layer_norm"),
    output_bias="lm_head.bias",
    bare_pooler="esm.pooler.dense",
    pooler="classifier.dense",
    classifier="classifier.out_proj",
    sizes=BERT_SIZES | {"max_length": "max_position_embeddings"},
)
_LAYER = BERT_LAYER | {
    "attention_norm/norm": "attention.LayerNorm",
    "feed_forward_norm/norm": "LayerNorm",
}
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
        pad_id=token_id(theirs, "pad_token_id"),
        theta=theirs["rope_theta"],
        token_dropout=theirs["token_dropout"],
        mask_id=token_id(theirs, "mask_token_id"),
        **NAMES.fields(theirs, names),
    )


def _config_file(config):
    """Return the `config.json` of an ESM-2."""
    return NAMES.config_file(config) | dict(
        attention_probs_dropout_prob=0.0,
        position_embedding_type="rotary",
        emb_layer_norm_before=False,
        rope_theta=config.theta,
        token_dropout=config.token_dropout,
        pad_token_id=config.pad_id,
        mask_token_id=config.mask_id,
    )


def _rules(config: ESMConfig) -> list[Rule]:
    rules = table("embedding/tokens", "esm.embeddings.word_embeddings")
    rules += blocks(config, "esm.encoder.layer.{}", _LAYER)
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
            # Weights that predict contacts from attention: all ESMs have them, our models do not.
            *(f"contact_head.regression.{part}" for part in ("weight", "bias")),
            *(f"esm.pooler.dense.{part}" for part in ("weight", "bias")),
        ),
        heads=NAMES.weights,
        prefix="esm.",
        endings=NORM_ENDINGS,
        fields=_FIELDS,
        also_read=("pad_token_id", "mask_token_id"),
        harmless=("esmfold_config", "vocab_list"),  # fields of ESMFold
        names=NAMES.of_ours | dict(mask_id="mask_token_id", theta="rope_theta"),
    )
}
