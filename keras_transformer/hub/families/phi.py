"""Map of Phi-3 checkpoints: a relative of LLaMA whose files join projections in one tensor."""

from __future__ import annotations

import functools

from keras_transformer.hub.families.fields import exactly, positive, size, token
from keras_transformer.hub.families.llama import (
    SHARED_FIELDS,
    family,
    read_config,
    rules_of,
    write_config,
)

FIELDS = SHARED_FIELDS | dict(
    num_key_value_heads=size(None),
    max_position_embeddings=size(4096),
    original_max_position_embeddings=size(4096),
    rms_norm_eps=positive(1e-5),
    pad_token_id=token(32000),
    bos_token_id=token(1),
    eos_token_id=token(32000),
    sliding_window=size(None),
    attention_bias=exactly(False),
)
_OLD_NAMES = ("su", "yarn")  # of "longrope", in the first files


def _read(theirs, names):
    for name in ("rope_scaling", "rope_parameters"):
        found = dict(theirs[name] or {})
        kind = found.get("rope_type", found.get("type", "default"))
        if kind in _OLD_NAMES:
            theirs = theirs | {name: found | {"rope_type": "longrope"}}
        elif kind not in ("default", "longrope"):
            raise ValueError(f"rope_type of {name} must be 'default' or 'longrope', got {kind!r}")
    return read_config(theirs, window=theirs["sliding_window"])


def _file(config):
    own = dict(sliding_window=config.window)
    original = (config.scaling or {}).get("original_max_position_embeddings")
    if original is not None:
        own["original_max_position_embeddings"] = original
    return write_config(config, "Phi3", **own)


FAMILIES = {"phi3": family("Phi3", _read, _file, FIELDS, functools.partial(rules_of, joined=True))}
