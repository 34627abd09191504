"""Maps of Qwen2 (also 2.5) and Qwen3 checkpoints: relatives of LLaMA."""

from __future__ import annotations

from keras_transformer.hub.families.fields import count, exactly, flag, size, token
from keras_transformer.hub.families.llama_map import (
    SHARED_FIELDS,
    bias_field,
    family,
    read_config,
)
from keras_transformer.hub.families.window_fields import (
    layer_types,
    read_windows,
    window_fields,
)

_FIELDS = SHARED_FIELDS | dict(
    num_key_value_heads=size(32, null=True),
    max_position_embeddings=size(32768),
    bos_token_id=token(None),
    eos_token_id=token(None),
    use_sliding_window=flag(False),
    sliding_window=size(4096, null=True),
    max_window_layers=count(28),
    layer_types=layer_types(),
    use_mrope=exactly(False, null=True),
)
FIELDS = {
    "qwen2": _FIELDS,
    "qwen3": _FIELDS | dict(head_dim=size(128), attention_bias=flag(False)),
}


def _windows(theirs):
    first = theirs["max_window_layers"]
    usual = [i >= first for i in range(theirs["num_hidden_layers"])]
    window, layers = read_windows(theirs, usual, theirs["use_sliding_window"])
    return dict(window=window, window_layers=layers)


def _qwen2(theirs, names):
    return read_config(theirs, qkv_bias=True, **_windows(theirs))


def _qwen3(theirs, names):
    bias = theirs["attention_bias"]
    return read_config(theirs, qk_norm=True, qkv_bias=bias, output_bias=bias, **_windows(theirs))


def _qwen2_fields(config):
    return window_fields(config) | dict(use_sliding_window=config.window is not None)


FAMILIES = {
    "qwen2": family("Qwen2", _qwen2, _qwen2_fields, FIELDS["qwen2"]),
    "qwen3": family("Qwen3", _qwen3, lambda x: _qwen2_fields(x) | bias_field(x), FIELDS["qwen3"]),
}
