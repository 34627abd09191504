"""Maps of Gemma 1, 2 and 3 checkpoints, and of the text model inside a Gemma 3 with images."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from keras_transformer.hub.families.family import (
    Family,
    Rule,
    dense,
    scale,
    table,
    token_id,
    token_ids,
)
from keras_transformer.hub.families.fields import (
    TOKEN_NAMES,
    TOKENS,
    Field,
    exactly,
    mapping,
    read_same,
    write_same,
)
from keras_transformer.hub.families.gemma_fields import FIELDS, LATER
from keras_transformer.hub.families.general_fields import ONE_STACK
from keras_transformer.hub.families.llama_map import NAMES, SAME
from keras_transformer.hub.families.rotary_fields import (
    ROTARY,
    longest_of,
    parameters_by_type,
    read_rotary,
    rotary_fields,
)
from keras_transformer.hub.families.window_fields import (
    FULL,
    SLIDING,
    read_windows,
    window_fields,
)
from keras_transformer.models import Gemma, GemmaConfig

_SAME = SAME | {"logit_cap": "final_logit_softcapping"}
_OF_IMAGES = (
    "vision_config",
    "mm_tokens_per_image",
    *(f"{x}_token_{y}" for x in ("boi", "eoi", "image") for y in ("id", "index")),
)


def _read(theirs, theta, scaling, every, **fields):
    """Return our config; unless there are `layer_types`, every `every`-th layer has no window."""
    count, scalar = theirs["num_hidden_layers"], theirs["query_pre_attn_scalar"]
    usual = [bool((i + 1) % every) for i in range(count)]
    window, layers = read_windows(theirs, usual)
    return GemmaConfig(
        theta=theta,
        scaling=scaling,
        window=window,
        window_layers=layers,
        query_scale=None if scalar == theirs["head_dim"] else scalar**-0.5,
        max_length=longest_of(theirs, scaling),
        pad_id=token_id(theirs, "pad_token_id", "eos_token_id"),
        bos_id=token_id(theirs, "bos_token_id", "eos_token_id"),
        eos_id=token_ids(theirs, "eos_token_id"),
        **read_same(theirs, _SAME),
        **fields,
    )


def _gemma(theirs, names):
    later = LATER | dict(query_pre_attn_scalar=theirs["head_dim"])
    return _read(theirs | later, *read_rotary(theirs), 1, norm_output=False)


def _gemma2(theirs, names):
    rotary = read_rotary(theirs)
    return _read(theirs, *rotary, 2, attention_cap=theirs["attn_logit_softcapping"])


def _gemma3(theirs, names):
    """Return our config; blocks with and without a window have different rotary rates."""
    local, full = parameters_by_type(theirs)
    full |= theirs["rope_scaling"] or {}
    outer = theirs | {"rope_scaling": None}
    theta, scaling = read_rotary(outer | {"rope_parameters": full}, 1e6)
    local = {"rope_theta": theirs["rope_local_base_freq"]} | local
    local_theta, local_scaling = read_rotary(outer | {"rope_parameters": local})
    if local_scaling:
        raise ValueError(f"rope_parameters of {SLIDING} must not be scaled, got {local}")
    bidirectional = bool(theirs["use_bidirectional_attention"])
    if bidirectional and theirs["sliding_window"]:  # half of it is visible on each side
        theirs = theirs | {"sliding_window": theirs["sliding_window"] // 2 + 1}
    fields = dict(local_theta=local_theta, qk_norm=True, bidirectional=bidirectional)
    return _read(theirs, theta, scaling, theirs["sliding_window_pattern"], **fields)


def _with_images(theirs, names):
    """Return our config of the text model; special ids outside `text_config` take precedence."""
    text = dict(theirs["text_config"] or {})
    ids = {x: theirs.get(x) for x in ("pad_token_id", "bos_token_id", "eos_token_id")}
    text |= {name: value for name, value in ids.items() if value is not None}
    family = FAMILIES["gemma3_text"]
    family.table.check(text, "text_config")
    return family.read(text, names)


def _file(config, kind, **fields):
    """Return the `config.json` of a Gemma; `kind` is the beginning of its class's name."""
    return write_same(config, _SAME | TOKEN_NAMES) | dict(
        architectures=[f"{kind}ForCausalLM"],
        hidden_activation="gelu_pytorch_tanh",
        tie_word_embeddings=True,
        query_pre_attn_scalar=round((config.query_scale or config.head_dim**-0.5) ** -2),
        attn_logit_softcapping=config.attention_cap,
        **rotary_fields(config.theta, config.scaling, config.max_length),
        **window_fields(config),
        **fields,
    )


def _gemma_file(config):
    theirs = _file(config, "Gemma", hidden_act="gelu_pytorch_tanh")
    return {name: value for name, value in theirs.items() if name not in LATER}


def _gemma3_file(config):
    theirs = _file(config, "Gemma3")
    local = {"rope_type": "default", "rope_theta": config.local_theta}
    theirs |= {"rope_parameters": {FULL: theirs["rope_parameters"], SLIDING: local}}
    theirs |= {"use_bidirectional_attention": config.bidirectional}
    if config.bidirectional and config.window:
        theirs |= {"sliding_window": max(1, 2 * (config.window - 1))}
    return theirs


def _no_file(config):
    raise ValueError("it also holds a model of images; write gemma3_text")


def _rules(config: GemmaConfig) -> list[Rule]:
    """Return the rules of all weights of a Gemma."""
    norm = functools.partial(scale, layout="plus_one")
    rules = table("embedding/tokens", "model.embed_tokens")
    for i in range(config.num_layers):
        ours, theirs = f"decoder/block_{i}", f"model.layers.{i}"
        rules += dense(
            f"{ours}/self_attention/query_key_value",
            *(f"{theirs}.self_attn.{x}_proj" for x in "qkv"),
            bias=False,
            heads=(config.num_heads, config.num_kv_heads, config.num_kv_heads),
        )
        for layer, name in (
            ("self_attention/output", "self_attn.o_proj"),
            ("feed_forward/hidden", "mlp.gate_proj"),
            ("feed_forward/gate", "mlp.up_proj"),
            ("feed_forward/output", "mlp.down_proj"),
        ):
            rules += dense(f"{ours}/{layer}", f"{theirs}.{name}", bias=False)
        norms = {
            "self_attention_norm/norm": "input_layernorm",
            "feed_forward_norm/norm": "post_attention_layernorm",
        }
        if config.norm_output:
            norms |= {
                "self_attention_norm/output_norm": "post_attention_layernorm",
                "feed_forward_norm/norm": "pre_feedforward_layernorm",
                "feed_forward_norm/output_norm": "post_feedforward_layernorm",
            }
        if config.qk_norm:
            norms["self_attention/query_norm"] = "self_attn.q_norm"
            norms["self_attention/key_norm"] = "self_attn.k_norm"
        for layer, name in norms.items():
            rules += norm(f"{ours}/{layer}", f"{theirs}.{name}")
    return rules + norm("decoder/norm", "model.norm")


def _family(
    name: str, read: Any, write: Any, fields: Mapping[str, Field], **options: Any
) -> Family:
    """Return the family of a Gemma; `read` is `config` of `Family`, `write` its `config_file`."""
    return Family(
        Gemma,
        read,
        _rules,
        write,
        aliases={"lm_head.weight": ("model.embed_tokens.weight",)},
        unused=(".rotary_emb.inv_freq",),
        free=frozenset({"dropout"}),
        prefix="model.",
        fields=fields,
        names=NAMES | _SAME | {"query_scale": "query_pre_attn_scalar"},
        architectures=tuple(f"{name}{end}" for end in _ENDS),
        **options,
    )


_ENDS = ("ForCausalLM", "ForConditionalGeneration", "Model", "TextModel")
FAMILIES = {
    "gemma": _family("Gemma", _gemma, _gemma_file, FIELDS["gemma"], also_read=(*TOKENS, *ROTARY)),
    "gemma2": _family(
        "Gemma2",
        _gemma2,
        functools.partial(_file, kind="Gemma2"),
        FIELDS["gemma2"],
        also_read=(*TOKENS, *ROTARY),
        harmless=("hidden_act",),  # `hidden_activation` decides
    ),
    "gemma3_text": _family(
        "Gemma3",
        _gemma3,
        _gemma3_file,
        FIELDS["gemma3_text"],
        also_read=(*TOKENS, *ROTARY),
    ),
    "gemma3": _family(
        "Gemma3",
        _with_images,
        _no_file,
        ONE_STACK | {"text_config": mapping(), "tie_word_embeddings": exactly(True)},
        also_read=TOKENS,
        harmless=_OF_IMAGES,
        part=(  # prefixes of the text model in checkpoints, and those of the rules; tried in order
            ("language_model.model.", "model."),
            ("language_model.lm_head.", "lm_head."),
            ("model.language_model.", "model."),
            ("language_model.", "model."),
            ("lm_head.", "lm_head."),
        ),
    ),
}
