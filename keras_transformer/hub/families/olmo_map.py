"""Map of OLMo 2: a relative of LLaMA whose blocks normalize the outputs of their sub-layers."""

from __future__ import annotations

import functools

from keras_transformer.hub.families.fields import flag, positive, size, token
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
    pad_token_id=token(1),
    bos_token_id=token(None),
    eos_token_id=token(50279),
    attention_bias=flag(False),
)
_NORMS = {
    "self_attention_norm/output_norm": "post_attention_layernorm",
    "feed_forward_norm/output_norm": "post_feedforward_layernorm",
}


def _read(theirs, names):
    """Return our config of an OLMo 2; queries and keys have a norm over all heads."""
    bias = theirs["attention_bias"]
    return read_config(
        theirs,
        qkv_bias=bias,
        output_bias=bias,
        norm_input=False,
        norm_output=True,
        qk_norm="whole",
    )


_RULES = functools.partial(rules_of, block_norms=_NORMS)
FAMILIES = {"olmo2": family("Olmo2", _read, bias_field, FIELDS, _RULES)}
