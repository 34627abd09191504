"""Maps of LLaMA (1 to 3, SmolLM2), Mistral and SmolLM3 checkpoints, and shared parts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

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
    flag,
    mapping,
    positive,
    read_same,
    size,
    token,
    write_same,
)
from keras_transformer.hub.families.general_fields import ONE_STACK
from keras_transformer.hub.families.rotary_fields import (
    ROTARY,
    longest_of,
    read_rotary,
    read_rotary_dim,
    rotary_fields,
)
from keras_transformer.hub.families.window_fields import (
    layer_types,
    read_windows,
    window_fields,
)
from keras_transformer.models import LLaMA, LLaMAConfig

_SIZES = "vocab_size hidden_size intermediate_size num_hidden_layers num_attention_heads"
SHARED_FIELDS = (
    ONE_STACK
    | {name: size() for name in _SIZES.split()}
    | dict(
        head_dim=size(None),
        rms_norm_eps=positive(1e-6),
        tie_word_embeddings=flag(False),
        rope_parameters=mapping(),
        rope_scaling=mapping(),
        hidden_act=exactly("silu"),
        eos_token_id=token(2),
    )
)
SAME = dict(  # our field -> Hugging Face's, with the same value in all relatives
    vocab_size="vocab_size",
    d_model="hidden_size",
    d_ff="intermediate_size",
    num_layers="num_hidden_layers",
    num_heads="num_attention_heads",
    num_kv_heads="num_key_value_heads",
    head_dim="head_dim",
    epsilon="rms_norm_eps",
)
NAMES = (
    SAME
    | TOKEN_NAMES
    | dict(
        theta="rope_theta",
        rotary_dim="partial_rotary_factor",
        window="sliding_window",
        max_length="max_position_embeddings",
    )
)
INPUT_NORMS = {  # our norms of a block -> theirs
    "self_attention_norm/norm": "input_layernorm",
    "feed_forward_norm/norm": "post_attention_layernorm",
}
_NO_ROPE_LAYERS = Field(
    "a list of 0 and 1, or null",
    lambda x: isinstance(x, list) and all(type(y) is int and y in (0, 1) for y in x),
    None,
)
FIELDS = {
    "llama": SHARED_FIELDS
    | dict(
        num_key_value_heads=size(None),
        max_position_embeddings=size(2048),
        bos_token_id=token(1),
        attention_bias=flag(False),
        mlp_bias=flag(False),
    ),
    "mistral": SHARED_FIELDS
    | dict(
        num_key_value_heads=size(8, null=True),
        max_position_embeddings=size(4096 * 32),
        bos_token_id=token(1),
        attention_bias=exactly(False),
        mlp_bias=exactly(False),
        sliding_window=size(4096, null=True),
    ),
    "smollm3": SHARED_FIELDS
    | dict(
        num_key_value_heads=size(4, null=True),
        max_position_embeddings=size(32768),
        pad_token_id=token(128004),
        bos_token_id=token(128000),
        eos_token_id=token(128001),
        tie_word_embeddings=flag(True),
        attention_bias=flag(False),
        mlp_bias=flag(False),
        no_rope_layers=_NO_ROPE_LAYERS,
        no_rope_layer_interval=size(4),
        use_sliding_window=flag(False),
        sliding_window=size(None),
        layer_types=layer_types(),
    ),
}


def read_config(
    theirs: Any, default_theta: float = 10000.0, rotary_share: float | None = None, **fields: Any
) -> LLaMAConfig:
    """Return our config of a LLaMA or a relative.

    Args:
        theirs: Content of the `config.json`, with defaults filled in.
        default_theta: Base of the rotary rates if the file has none.
        rotary_share: Share of a head's features that rotate, if the file has none; None: in this
            family all of them rotate.
        fields: Further fields of our config in this family.
    """
    theta, scaling = read_rotary(theirs, default_theta, partial=rotary_share is not None)
    if rotary_share is not None:
        head_dim = theirs["head_dim"] or theirs["hidden_size"] // theirs["num_attention_heads"]
        fields["rotary_dim"] = read_rotary_dim(theirs, head_dim, rotary_share)
    return LLaMAConfig(
        theta=theta,
        scaling=scaling,
        max_length=longest_of(theirs, scaling),
        tie_output=theirs["tie_word_embeddings"],
        pad_id=token_id(theirs, "pad_token_id", "eos_token_id"),
        bos_id=token_id(theirs, "bos_token_id", "eos_token_id"),
        eos_id=token_ids(theirs, "eos_token_id"),  # Llama 3 lists several
        **read_same(theirs, SAME),
        **fields,
    )


def _file(config, kind, more):
    """Return the `config.json` of a LLaMA or a relative, see `family`."""
    head_dim = config.head_dim or config.d_model // config.num_heads
    share = (config.rotary_dim or head_dim) / head_dim
    return write_same(config, SAME | TOKEN_NAMES) | dict(
        architectures=[f"{kind}ForCausalLM"],
        hidden_act="silu",
        num_key_value_heads=config.num_kv_heads or config.num_heads,
        head_dim=head_dim,
        tie_word_embeddings=config.tie_output,
        attention_dropout=0.0,
        **rotary_fields(config.theta, config.scaling, config.max_length, share),
        **more(config),
    )


def bias_field(config: LLaMAConfig) -> dict[str, Any]:
    """Return the field of the bias of the projections to queries, keys and values."""
    return dict(attention_bias=config.qkv_bias)


def bias_fields(config: LLaMAConfig) -> dict[str, Any]:
    """Return the fields of the biases of attention and feed-forward."""
    return bias_field(config) | dict(mlp_bias=config.feed_forward_bias)


def read_biases(theirs: Any) -> dict[str, bool]:
    """Return the fields of our config that `bias_fields` writes."""
    bias = theirs["attention_bias"]
    return dict(qkv_bias=bias, output_bias=bias, feed_forward_bias=theirs["mlp_bias"])


def rules_of(
    config: LLaMAConfig,
    joined: Collection[str] = (),
    interleaved: bool = False,
    norms: tuple[str, str] = ("q_norm", "k_norm"),
    block_norms: Mapping[str, str] = INPUT_NORMS,
    experts: Callable[[LLaMAConfig, str, str], list[Rule]] | None = None,
) -> list[Rule]:
    """Return the rules of all weights of a LLaMA or a relative.

    Args:
        config: Our config.
        joined: Projections that the checkpoint has in one tensor: "qkv", those to queries, keys
            and values; "gate_up", the two whose outputs the gate multiplies.
        interleaved: Whether the checkpoint is for a model that rotates adjacent features,
            (x_2i, x_2i+1). Ours rotates (x_i, x_i+R/2), where R features rotate.
        norms: Names of the norms of queries and keys in the checkpoint.
        block_norms: Maps the norms of a block to their names in the checkpoint.
        experts: Function that returns the rules of a mixture of experts, from the config and the
            names of the block here and there; None: the family has none.
    """
    rules = table("embedding/tokens", "model.embed_tokens")
    kv_heads = config.num_kv_heads or config.num_heads
    heads = (config.num_heads, kv_heads, kv_heads)
    orders = [_order(config, x) for x in heads[:2]] + [None] if interleaved else ()
    for i in range(config.num_layers):
        ours, theirs = f"decoder/block_{i}", f"model.layers.{i}"
        names = ["qkv"] if "qkv" in joined else "qkv"
        rules += dense(
            f"{ours}/self_attention/query_key_value",
            *(f"{theirs}.self_attn.{x}_proj" for x in names),
            bias=config.qkv_bias,
            heads=heads,
            orders=orders,
        )
        output = f"{ours}/self_attention/output"
        rules += dense(output, f"{theirs}.self_attn.o_proj", bias=config.output_bias)
        if experts and config.num_experts and i not in config.dense_layers:
            rules += experts(config, ours, theirs)
        else:
            rules += _feed_forward(ours, theirs, "gate_up" in joined, config.feed_forward_bias)
        for norm, name in block_norms.items():
            rules += scale(f"{ours}/{norm}", f"{theirs}.{name}")
        if config.qk_norm:
            for name, part in zip(norms, ("query", "key"), strict=True):
                name = f"{theirs}.self_attn.{name}"
                rules += scale(f"{ours}/self_attention/{part}_norm", name)
    rules += scale("decoder/norm", "model.norm")
    if not config.tie_output:
        rules += dense("output", "lm_head", bias=False)
    return rules


def _feed_forward(ours, theirs, is_joined, bias):
    gated, rules = ("gate_up", "gate_up") if is_joined else ("gate", "up"), []
    for k, layer in enumerate(("hidden", "gate")):
        layer, name = f"{ours}/feed_forward/{layer}", f"{theirs}.mlp.{gated[k]}_proj"
        share = (k, 2) if is_joined else (0, 1)
        rules += [replace(rule, share=share) for rule in dense(layer, name, bias=bias)]
    return rules + dense(f"{ours}/feed_forward/output", f"{theirs}.mlp.down_proj", bias=bias)


def _order(config, num_heads):
    """Return the index of each of our features in a file that rotates adjacent features."""
    head_dim = config.head_dim or config.d_model // config.num_heads
    rotary_dim = config.rotary_dim or head_dim
    of_head = [*range(0, rotary_dim, 2), *range(1, rotary_dim, 2), *range(rotary_dim, head_dim)]
    return np.concatenate([i * head_dim + np.array(of_head) for i in range(num_heads)])


def family(name: str, read: Any, more: Any, fields: Any, rules: Any = rules_of) -> Family:
    """Return the family of a relative of LLaMA.

    Args:
        name: Name of the family in the names of its classes, such as "Qwen2".
        read: Argument `config` of `Family`.
        fields, rules: See `Family`.
        more: Function from our config to the fields of a `config.json` that not all relatives have.
    """
    return Family(
        LLaMA,
        read,
        rules,
        functools.partial(_file, kind=name, more=more),
        aliases={"lm_head.weight": ("model.embed_tokens.weight",)},
        unused=(".rotary_emb.inv_freq",),
        free=frozenset({"dropout", "num_kv_heads", "head_dim"}),
        prefix="model.",
        fields=fields,
        also_read=(*TOKENS, *ROTARY),
        # `pretraining_tp` splits matrix products; the other names fields that are ignored.
        harmless=("pretraining_tp", "ignore_keys_at_rope_validation"),
        names=NAMES,
        architectures=tuple(f"{name}{end}" for end in ("ForCausalLM", "Model")),
    )


def _llama(theirs, names):
    return read_config(theirs, **read_biases(theirs))


def _mistral(theirs, names):
    return read_config(theirs, window=theirs["sliding_window"])


def _smollm3(theirs, names):
    """Return our config of a SmolLM3, some of whose layers have no rotary positions."""
    count = theirs["num_hidden_layers"]
    rotates = theirs["no_rope_layers"]  # despite the name, 1 means that a layer rotates
    if rotates is None:
        rotates = [int((i + 1) % theirs["no_rope_layer_interval"] != 0) for i in range(count)]
    if len(rotates) < count:
        raise ValueError(f"no_rope_layers must have {count} entries, one a layer, got {rotates}")
    still = [not rotates[i] for i in range(count)]
    window, layers = read_windows(theirs, still, theirs["use_sliding_window"])
    return read_config(
        theirs,
        2e6,
        no_rotary=tuple(i for i in range(count) if still[i]),
        window=window,
        window_layers=layers,
        **read_biases(theirs),
    )


def _smollm3_fields(config):
    rotates = [int(i not in config.no_rotary) for i in range(config.num_layers)]
    return dict(
        no_rope_layers=rotates,
        use_sliding_window=config.window is not None,
        **bias_fields(config),
        **window_fields(config),
    )


FAMILIES = {
    "llama": family("Llama", _llama, bias_fields, FIELDS["llama"]),
    "mistral": family(
        "Mistral", _mistral, lambda x: dict(sliding_window=x.window), FIELDS["mistral"]
    ),
    "smollm3": family("SmolLM3", _smollm3, _smollm3_fields, FIELDS["smollm3"]),
}
