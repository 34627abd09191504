"""Map of Granite (dense): a relative of LLaMA with constant factors of its activations."""

from __future__ import annotations

import dataclasses

from keras_transformer.hub.families.fields import (
    flag,
    positive,
    read_same,
    size,
    token,
    write_same,
)
from keras_transformer.hub.families.llama_map import (
    NAMES,
    SHARED_FIELDS,
    bias_fields,
    family,
    read_biases,
    read_config,
)

_FACTORS = dict(  # our field -> theirs
    embedding_scale="embedding_multiplier",
    residual_scale="residual_multiplier",
    query_scale="attention_multiplier",
    logit_divisor="logits_scaling",
)
FIELDS = (
    SHARED_FIELDS
    | {name: positive(1.0) for name in _FACTORS.values()}
    | dict(
        num_key_value_heads=size(None),
        max_position_embeddings=size(2048),
        bos_token_id=token(1),
        attention_bias=flag(False),
        mlp_bias=flag(False),
    )
)


def _read(theirs, names):
    return read_config(theirs, **read_biases(theirs), **read_same(theirs, _FACTORS))


def _fields(config):
    return write_same(config, _FACTORS) | bias_fields(config)


_GRANITE = family("Granite", _read, _fields, FIELDS)
FAMILIES = {"granite": dataclasses.replace(_GRANITE, names=NAMES | _FACTORS)}
