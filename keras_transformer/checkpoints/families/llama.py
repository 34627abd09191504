"""Map of LLaMA (1 to 3) and Mistral checkpoints."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from keras_transformer.checkpoints.families.family import (
    Family,
    Rule,
    dense,
    scale,
    table,
    token_id,
    token_ids,
)
from keras_transformer.checkpoints.families.fields import (
    exactly,
    flag,
    is_size,
    mapping,
    positive,
    size,
    token,
)
from keras_transformer.layers.rotary import check_scaling
from keras_transformer.models import LLaMA, LLaMAConfig

_SIZES = "vocab_size hidden_size intermediate_size num_hidden_layers num_attention_heads"
_FIELDS = {name: size() for name in _SIZES.split()} | dict(
    head_dim=size(None),
    rms_norm_eps=positive(1e-6),
    bos_token_id=token(1),
    tie_word_embeddings=flag(False),
    rope_parameters=mapping(),
    rope_scaling=mapping(),
    hidden_act=exactly("silu"),
    attention_bias=exactly(False),
    mlp_bias=exactly(False),
)
FIELDS = {
    "llama": _FIELDS | dict(num_key_value_heads=size(None), max_position_embeddings=size(2048)),
    "mistral": _FIELDS
    | dict(
        num_key_value_heads=size(8, null=True),
        max_position_embeddings=size(4096 * 32),
        sliding_window=size(4096, null=True),
    ),
}


def _config(theirs, names):
    theta, scaling = _rotary(theirs)
    return LLaMAConfig(
        vocab_size=theirs["vocab_size"],
        d_model=theirs["hidden_size"],
        d_ff=theirs["intermediate_size"],
        num_layers=theirs["num_hidden_layers"],
        num_heads=theirs["num_attention_heads"],
        num_kv_heads=theirs["num_key_value_heads"],
        head_dim=theirs["head_dim"],
        theta=theta,
        scaling=scaling,
        window=theirs["sliding_window"] if theirs["model_type"] == "mistral" else None,
        epsilon=theirs["rms_norm_eps"],
        max_length=theirs["max_position_embeddings"],
        tie_output=theirs["tie_word_embeddings"],
        pad_id=token_id(theirs, "pad_token_id", "eos_token_id"),
        bos_id=token_id(theirs, "bos_token_id", "eos_token_id"),
        eos_id=token_ids(theirs, "eos_token_id"),  # Llama 3 lists several
    )


def _rotary(theirs):
    """Return the base theta and its scaling, with the precedence of `transformers` (5.23).

    `rope_scaling` is preferred to `rope_parameters`, a `rope_theta` inside it to the outer one, but
    the outer `original_max_position_embeddings` to the inner one.
    """
    name = "rope_scaling" if theirs["rope_scaling"] else "rope_parameters"
    found = dict(theirs[name] or {})
    if any(isinstance(value, Mapping) for value in found.values()):
        raise ValueError(f"{name} must hold one set of numbers for all layers, got {found}")
    theta = positive(10000.0).read("rope_theta", {**theirs, **found})
    found.pop("rope_theta", None)
    part = found.get("partial_rotary_factor", theirs.get("partial_rotary_factor"))
    if part not in (None, 1):
        raise ValueError(f"partial_rotary_factor must be 1, got {part!r}")
    kind = found.pop("rope_type", found.get("type", "default"))
    found.pop("type", None)
    if kind == "default":
        return float(theta), None
    if kind in ("llama3", "yarn"):
        outer = "original_max_position_embeddings"
        length = found.get(outer, theirs["max_position_embeddings"])
        found[outer] = theirs.get(outer, length)
        if kind == "yarn" and found.get("factor", 0) is None and is_size(found[outer]):
            found["factor"] = theirs["max_position_embeddings"] / found[outer]
    scaling = {"rope_type": kind, **found}
    try:
        check_scaling(theta, scaling)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    return float(theta), scaling


def _config_file(config, kind):
    rotary = {"rope_type": "default", **(config.scaling or {}), "rope_theta": config.theta}
    return dict(
        architectures=[f"{kind}ForCausalLM"],
        hidden_act="silu",
        vocab_size=config.vocab_size,
        hidden_size=config.d_model,
        intermediate_size=config.d_ff,
        num_hidden_layers=config.num_layers,
        num_attention_heads=config.num_heads,
        num_key_value_heads=config.num_kv_heads or config.num_heads,
        head_dim=config.head_dim or config.d_model // config.num_heads,
        rope_parameters=rotary,
        sliding_window=config.window,
        rms_norm_eps=config.epsilon,
        max_position_embeddings=config.max_length,
        tie_word_embeddings=config.tie_output,
        attention_dropout=0.0,
        pad_token_id=config.pad_id,
        bos_token_id=config.bos_id,
        eos_token_id=config.eos_id,
    )


def _rules(config: LLaMAConfig) -> list[Rule]:
    rules = table("embedding/tokens", "model.embed_tokens")
    kv_heads = config.num_kv_heads or config.num_heads
    for i in range(config.num_layers):
        ours, theirs = f"decoder/block_{i}", f"model.layers.{i}"
        rules += dense(
            f"{ours}/self_attention/query_key_value",
            *(f"{theirs}.self_attn.{x}_proj" for x in "qkv"),
            bias=False,
            heads=(config.num_heads, kv_heads, kv_heads),
        )
        for layer, name in (
            ("self_attention/output", "self_attn.o_proj"),
            ("feed_forward/hidden", "mlp.gate_proj"),
            ("feed_forward/gate", "mlp.up_proj"),
            ("feed_forward/output", "mlp.down_proj"),
        ):
            rules += dense(f"{ours}/{layer}", f"{theirs}.{name}", bias=False)
        rules += scale(f"{ours}/self_attention_norm/norm", f"{theirs}.input_layernorm")
        rules += scale(f"{ours}/feed_forward_norm/norm", f"{theirs}.post_attention_layernorm")
    rules += scale("decoder/norm", "model.norm")
    if not config.tie_output:
        rules += dense("output", "lm_head", bias=False)
    return rules


FAMILIES = {
    kind.lower(): Family(
        LLaMA,
        _config,
        _rules,
        functools.partial(_config_file, kind=kind),
        aliases={"lm_head.weight": ("model.embed_tokens.weight",)},
        unused=(".rotary_emb.inv_freq",),
        free=frozenset({"dropout", "num_kv_heads", "head_dim"}),
        prefix="model.",
        fields=FIELDS[kind.lower()],
    )
    for kind in ("Llama", "Mistral")
}
