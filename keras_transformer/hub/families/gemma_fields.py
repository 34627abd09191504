"""Fields of the `config.json` of Gemma 1, 2 and 3."""

from __future__ import annotations

from keras_transformer.hub.families.fields import (
    Field,
    exactly,
    mapping,
    positive,
    size,
    token,
)
from keras_transformer.hub.families.general_fields import ONE_STACK
from keras_transformer.hub.families.window_fields import layer_types

_SIZES = "vocab_size hidden_size intermediate_size num_hidden_layers num_attention_heads"
_FIELDS = (
    ONE_STACK
    | {name: size() for name in _SIZES.split()}
    | dict(
        num_key_value_heads=size(4),
        head_dim=size(256),
        hidden_activation=exactly("gelu_pytorch_tanh"),
        rms_norm_eps=positive(1e-6),
        pad_token_id=token(0),
        bos_token_id=token(2),
        eos_token_id=token(1),
        tie_word_embeddings=exactly(True),
        rope_parameters=mapping(),
        rope_scaling=mapping(),
        attention_bias=exactly(False),
        query_pre_attn_scalar=positive(256),
        sliding_window=size(4096, null=True),
        layer_types=layer_types(),
    )
)


def _causal(default):
    return Field("false or null", lambda x: x is False, default, null=True)


# Fields that Gemma 1 lacks, with the values it implies; `gemma_map` sets `query_pre_attn_scalar`.
LATER = dict(
    hidden_activation="gelu_pytorch_tanh",
    query_pre_attn_scalar=None,
    sliding_window=None,
    layer_types=None,
    final_logit_softcapping=None,
    attn_logit_softcapping=None,
)
FIELDS = {
    "gemma": {name: field for name, field in _FIELDS.items() if name not in LATER}
    | dict(
        num_key_value_heads=size(16),
        max_position_embeddings=size(8192),
        use_bidirectional_attention=_causal(None),
        # In the first files, "gelu" means the tanh approximation.
        hidden_act=Field(
            "'gelu_pytorch_tanh' or 'gelu'",
            lambda x: x in ("gelu_pytorch_tanh", "gelu"),
            "gelu_pytorch_tanh",
        ),
    ),
    "gemma2": _FIELDS
    | dict(
        max_position_embeddings=size(8192),
        final_logit_softcapping=positive(30.0, null=True),
        attn_logit_softcapping=positive(50.0, null=True),
        use_bidirectional_attention=_causal(None),
    ),
    # Files of a Gemma 3 with images leave out sizes that are the default.
    "gemma3_text": _FIELDS
    | dict(
        vocab_size=size(262_208),
        hidden_size=size(2304),
        intermediate_size=size(9216),
        num_hidden_layers=size(26),
        num_attention_heads=size(8),
        max_position_embeddings=size(131_072),
        final_logit_softcapping=positive(None),
        attn_logit_softcapping=exactly(None),
        use_bidirectional_attention=Field(
            "true, false or null", lambda x: isinstance(x, bool), False, null=True
        ),
        sliding_window_pattern=size(6),
        rope_local_base_freq=positive(10000.0),
    ),
}
