"""Map of Hunyuan's dense models (also Hunyuan-MT and Hy-MT): relatives of LLaMA.

Queries and keys are normalized after the rotation. A file with `alpha` calls its scaling "dynamic",
but the rotary base is raised by a fixed factor (NTK-aware scaling, Peng et al. 2023, section 3.1).
"""

from __future__ import annotations

import functools

from keras_transformer.config import is_number, require
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
    max_position_embeddings=size(2048),
    rms_norm_eps=positive(1e-5),
    pad_token_id=token(0),
    bos_token_id=token(1),
    eod_token_id=token(3),  # between documents in training
    attention_bias=flag(False),
    mlp_bias=exactly(False),
    use_qk_norm=exactly(True),
    use_cla=exactly(False),  # keys and values shared by layers
)


def _read(theirs, names):
    """Return our config of a Hunyuan."""
    bias = theirs["attention_bias"]
    return read_config(_with_base(theirs), qk_norm="rotated", qkv_bias=bias, output_bias=bias)


def _with_base(theirs):
    """Return the `config.json` with a rotary base in place of "dynamic" scaling with `alpha`."""
    name = "rope_scaling" if theirs["rope_scaling"] else "rope_parameters"
    parameters = theirs[name] or {}
    kind, alpha = parameters.get("rope_type", parameters.get("type")), parameters.get("alpha")
    if kind != "dynamic" or not alpha:
        return theirs
    require(is_number(alpha) and alpha > 0, "alpha", alpha, "a number above 0")
    theta = {"rope_theta": 10000.0, **theirs, **parameters}["rope_theta"]
    theta = positive().read("rope_theta", {"rope_theta": theta})
    head_dim = theirs["head_dim"] or theirs["hidden_size"] // theirs["num_attention_heads"]
    require(head_dim > 2, "head_dim", head_dim, "above 2 with alpha")
    base = theta * alpha ** (head_dim / (head_dim - 2))
    return theirs | {name: {"rope_type": "default", "rope_theta": base}}


_RULES = functools.partial(rules_of, norms=("query_layernorm", "key_layernorm"))
FAMILIES = {"hunyuan_v1_dense": family("HunYuanDenseV1", _read, bias_field, FIELDS, _RULES)}
