"""Maps of Phi-3 (also Phi-4-mini) and GLM-4: relatives of LLaMA that join projections in a tensor.

Of each head of Phi-4-mini and GLM-4, only the first features rotate (`partial_rotary_factor`).
"""

from __future__ import annotations

import functools

from keras_transformer.hub.families.fields import exactly, flag, positive, size, token
from keras_transformer.hub.families.llama_map import (
    SHARED_FIELDS,
    bias_field,
    family,
    read_config,
    rules_of,
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
GLM_FIELDS = SHARED_FIELDS | dict(
    num_key_value_heads=size(2, null=True),
    head_dim=size(128, null=True),
    max_position_embeddings=size(131072),
    rms_norm_eps=positive(1.5625e-7),
    pad_token_id=token(151329),
    bos_token_id=token(None),
    eos_token_id=token(None),
    attention_bias=flag(True),
)
_GLM_ENDS = (151329, 151336, 151338)  # if the file names none: end of text, starts of turns
_OLD_NAMES = ("su", "yarn")  # names of "longrope" in the first files


def _read(theirs, names):
    """Return our config of a Phi-3."""
    for name in ("rope_scaling", "rope_parameters"):
        parameters = dict(theirs[name] or {})
        kind = parameters.get("rope_type", parameters.get("type", "default"))
        if kind in _OLD_NAMES:
            theirs = theirs | {name: parameters | {"rope_type": "longrope"}}
        elif kind not in ("default", "longrope"):
            raise ValueError(f"rope_type of {name} must be 'default' or 'longrope', got {kind!r}")
    return read_config(theirs, rotary_share=1.0, window=theirs["sliding_window"])


def _fields(config):
    fields = dict(sliding_window=config.window)
    original = (config.scaling or {}).get("original_max_position_embeddings")
    if original is not None:
        fields["original_max_position_embeddings"] = original
    return fields


def _glm(theirs, names):
    theirs = theirs | {"eos_token_id": theirs["eos_token_id"] or list(_GLM_ENDS)}
    return read_config(theirs, rotary_share=0.5, qkv_bias=theirs["attention_bias"])


_RULES = functools.partial(rules_of, joined=("qkv", "gate_up"))
_GLM_RULES = functools.partial(rules_of, joined=("gate_up",), interleaved=True)
FAMILIES = {
    "phi3": family("Phi3", _read, _fields, FIELDS, _RULES),
    "glm": family("Glm", _glm, bias_field, GLM_FIELDS, _GLM_RULES),
}
