"""LLaMA (1 to 3) and Mistral."""

from __future__ import annotations

import functools

from keras_transformer.checkpoints.families.base import (
    Family,
    Rule,
    dense,
    only,
    scale,
    table,
    token_id,
)
from keras_transformer.models import LLaMA, LLaMAConfig


def _config(theirs, names):
    only(theirs, hidden_act="silu", attention_bias=False, mlp_bias=False)
    theta, scaling = _rotary(theirs)
    return LLaMAConfig(
        vocab_size=theirs["vocab_size"],
        d_model=theirs["hidden_size"],
        d_ff=theirs["intermediate_size"],
        num_layers=theirs["num_hidden_layers"],
        num_heads=theirs["num_attention_heads"],
        num_kv_heads=theirs.get("num_key_value_heads"),
        head_dim=theirs.get("head_dim"),
        theta=theta,
        scaling=scaling,
        window=theirs.get("sliding_window") if theirs["model_type"] == "mistral" else None,
        epsilon=theirs["rms_norm_eps"],
        max_length=theirs["max_position_embeddings"],
        tie_output=theirs.get("tie_word_embeddings", False),
        pad_id=_first_id(theirs, "pad_token_id", "eos_token_id"),
        bos_id=_first_id(theirs, "bos_token_id", "eos_token_id"),
        eos_id=_first_id(theirs, "eos_token_id"),
    )


def _first_id(theirs, *names):
    """Llama 3 lists several that end a text: the first of them does here."""
    lists = {name: theirs[name][0] for name in names if isinstance(theirs.get(name), list)}
    found = token_id({**theirs, **lists}, *names)
    return found if found >= 0 else token_id({**theirs, **lists}, names[-1])


def _rotary(theirs):
    """The base and its scaling; since version 5 of `transformers` both in `rope_parameters`."""
    found = dict(theirs.get("rope_parameters") or theirs.get("rope_scaling") or {})
    theta = found.pop("rope_theta", None) or theirs.get("rope_theta", 10000.0)
    kind = found.pop("rope_type", None) or found.pop("type", None) or "default"
    found.pop("type", None)
    if kind == "default":
        return float(theta), None
    found.setdefault("original_max_position_embeddings", theirs["max_position_embeddings"])
    return float(theta), {"rope_type": kind, **found}


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
            shares=(config.num_heads, kv_heads, kv_heads),
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
    )
    for kind in ("Llama", "Mistral")
}
