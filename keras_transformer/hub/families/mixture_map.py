"""Maps of Mixtral and Qwen3-MoE: relatives of LLaMA with mixtures of experts."""

from __future__ import annotations

import dataclasses
import functools

from keras_transformer.config import is_number
from keras_transformer.hub.families.family import Family, Rule
from keras_transformer.hub.families.fields import (
    Field,
    flag,
    positive,
    read_same,
    size,
    token,
    write_same,
)
from keras_transformer.hub.families.llama_map import (
    NAMES,
    SHARED_FIELDS,
    bias_field,
    family,
    read_config,
    rules_of,
)

_MIXTURE = dict(
    router_aux_loss_coef=Field("a number of at least 0", lambda x: is_number(x) and x >= 0, 0.001)
)
_ROUTING = dict(experts_per_token="num_experts_per_tok", balance_loss="router_aux_loss_coef")
FIELDS = {
    "mixtral": SHARED_FIELDS
    | _MIXTURE
    | dict(
        num_key_value_heads=size(8, null=True),
        max_position_embeddings=size(4096 * 32),
        rms_norm_eps=positive(1e-5),
        bos_token_id=token(1),
        sliding_window=size(None),
        num_local_experts=size(8),
        num_experts_per_tok=size(2),
    ),
    "qwen3_moe": SHARED_FIELDS
    | _MIXTURE
    | dict(
        num_key_value_heads=size(4),
        max_position_embeddings=size(32768),
        bos_token_id=token(None),
        eos_token_id=token(None),
        attention_bias=flag(False),
        use_sliding_window=flag(False),
        sliding_window=size(4096, null=True),
        num_experts=size(128),
        num_experts_per_tok=size(8),
        moe_intermediate_size=size(768),
        norm_topk_prob=flag(False),
        decoder_sparse_step=size(1),
        mlp_only_layers=Field(
            "a list of indices of layers, or null",
            lambda x: isinstance(x, list) and all(type(i) is int and i >= 0 for i in x),
            None,
        ),
    ),
}


def _mixtral(theirs, names):
    return read_config(
        theirs,
        1e6,
        window=theirs["sliding_window"],
        num_experts=theirs["num_local_experts"],
        **read_same(theirs, _ROUTING),
    )


def _mixtral_fields(config):
    fields = dict(sliding_window=config.window, num_local_experts=config.num_experts)
    return fields | write_same(config, _ROUTING)


def _qwen3(theirs, names):
    """Return our config of a Qwen3-MoE, some of whose layers have no experts."""
    bias, step = theirs["attention_bias"], theirs["decoder_sparse_step"]
    dense, count = theirs["mlp_only_layers"] or (), theirs["num_hidden_layers"]
    return read_config(
        theirs,
        qk_norm=True,
        qkv_bias=bias,
        output_bias=bias,
        window=theirs["sliding_window"] if theirs["use_sliding_window"] else None,
        num_experts=theirs["num_experts"],
        expert_d_ff=theirs["moe_intermediate_size"],
        normalize_routing=theirs["norm_topk_prob"],
        dense_layers=tuple(i for i in range(count) if i in dense or (i + 1) % step),
        **read_same(theirs, _ROUTING),
    )


def _qwen3_fields(config):
    return bias_field(config) | dict(
        use_sliding_window=config.window is not None,
        sliding_window=config.window,
        num_experts=config.num_experts,
        moe_intermediate_size=config.expert_d_ff or config.d_ff,
        norm_topk_prob=config.normalize_routing,
        decoder_sparse_step=1,
        mlp_only_layers=list(config.dense_layers),
        **write_same(config, _ROUTING),
    )


def _experts(config, ours, theirs, part, matrices):
    """Return the rules of a mixture of experts, whose matrices are `matrices`."""
    path, stem = f"{ours}/feed_forward", f"{theirs}.{part}"
    rules = [Rule(f"{path}/router", (f"{stem}.gate.weight",), "transposed")]
    for layer, name in zip(("hidden", "gate", "output"), matrices, strict=True):
        each = (f"{stem}.experts.{i}.{name}.weight" for i in range(config.num_experts))
        rules.append(Rule(f"{path}/experts_{layer}", tuple(each), "experts"))
    return rules


def _family(name, kind, read, more, part, matrices, **changes):
    experts = functools.partial(_experts, part=part, matrices=matrices)
    rules = functools.partial(rules_of, experts=experts)
    return dataclasses.replace(family(name, read, more, FIELDS[kind], rules), **changes)


# `num_experts` and `num_local_experts` are one field. The router's noise is for training, and
# `output_router_logits` adds an output.
FAMILIES: dict[str, Family] = {
    "mixtral": _family(
        "Mixtral",
        "mixtral",
        _mixtral,
        _mixtral_fields,
        "block_sparse_moe",
        ("w1", "w3", "w2"),
        harmless=("output_router_logits", "router_jitter_noise"),
        synonyms={"num_experts": "num_local_experts"},
        names=NAMES | _ROUTING | {"num_experts": "num_local_experts"},
    ),
    "qwen3_moe": _family(
        "Qwen3Moe",
        "qwen3_moe",
        _qwen3,
        _qwen3_fields,
        "mlp",
        ("gate_proj", "up_proj", "down_proj"),
        harmless=("output_router_logits", "max_window_layers"),
        synonyms={"num_local_experts": "num_experts"},
        names=NAMES | _ROUTING | {"expert_d_ff": "moe_intermediate_size"},
    ),
}
