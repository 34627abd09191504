"""The architectures of GGUF files that our families have, as data: fields, tensors, layouts.

An architecture maps keys of the metadata to fields of a `config.json`, and names of tensors to
those of Hugging Face's checkpoints. Further fields are computed from the metadata and the names.
The module `rope_scaling` reads the fields of rotary scaling.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from keras_transformer.config import require
from keras_transformer.hub.families.window_fields import FULL, SLIDING

_NAME = re.compile(r"(?:blk\.(?P<block>\d+)\.)?(?P<layer>\w+)\.(?P<part>weight|bias)")
_SIZES = {
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "block_count": "num_hidden_layers",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
}
_GPT2_SIZES = {
    "context_length": "n_positions",
    "embedding_length": "n_embd",
    "block_count": "n_layer",
    "feed_forward_length": "n_inner",
    "attention.head_count": "n_head",
    "attention.layer_norm_epsilon": "layer_norm_epsilon",
}
_ENDS = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
_BLOCK = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_QK_NORMS = {"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}
_OUTPUT_NORMS = {
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
_GPT2_BLOCK = {
    "attn_norm": "ln_1",
    "attn_qkv": "attn.c_attn",
    "attn_output": "attn.c_proj",
    "ffn_norm": "ln_2",
    "ffn_up": "mlp.c_fc",
    "ffn_down": "mlp.c_proj",
}
LARGEST_GEMMAS = {"gemma2": 46, "gemma3": 62}  # numbers of layers of the models with 27B weights


@dataclass(frozen=True)
class Architecture:
    """An architecture of GGUF files, and the family of checkpoints that it belongs to.

    Args:
        kind: The `model_type` of the family.
        block: Names of layers in a block, and their names in Hugging Face's checkpoints.
        ends: The same for the other layers.
        stem: Prefix of the names of a block's layers in Hugging Face's checkpoints, without the
            number of the block.
        sizes: Keys of the metadata, after the name of the architecture, that a file must have, and
            the fields of `config.json`.
        fields: Function from the metadata of the architecture, by keys without its name, and the
            names of the tensors to further fields.
        also_read: Further keys that `fields` reads.
        interleaved: Layers whose outputs rotate in pairs of adjacent features (x_2i, x_2i+1): the
            rows of a head are in another order than in Hugging Face's checkpoints.
        norms_plus_one: Whether the scales of the norms are those of Hugging Face's plus one.
        transposed: Layers whose weights are those of Hugging Face's transposed.
        rotates: Whether positions are rotary.
    """

    kind: str
    block: Mapping[str, str]
    fields: Callable[[Mapping[str, Any], frozenset[str]], dict[str, Any]]
    ends: Mapping[str, str] = field(default_factory=lambda: _ENDS)
    stem: str = "model.layers."
    sizes: Mapping[str, str] = field(default_factory=lambda: _SIZES)
    also_read: tuple[str, ...] = ()
    interleaved: tuple[str, ...] = ()
    norms_plus_one: bool = False
    transposed: tuple[str, ...] = ()
    rotates: bool = True

    def their_name(self, name: str) -> str:
        """Return the name of a tensor in Hugging Face's checkpoints; unknown names are kept."""
        match = _NAME.fullmatch(name)
        if match is None:
            return name
        layers, stem = (
            (self.ends, "")
            if match["block"] is None
            else (self.block, f"{self.stem}{match['block']}.")
        )
        layer = layers.get(match["layer"])
        return name if layer is None else f"{stem}{layer}.{match['part']}"

    def stored_name(self, theirs: str) -> str:
        """Return the name of a tensor in GGUF, given the one in Hugging Face's checkpoints."""
        layer, _, part = theirs.rpartition(".")
        prefix, layers = "", self.ends
        if theirs.startswith(self.stem):
            number, _, layer = layer.removeprefix(self.stem).partition(".")
            prefix, layers = f"blk.{number}.", self.block
        return f"{prefix}{ {y: x for x, y in layers.items()}[layer] }.{part}"

    def their_value(self, name: str, value: np.ndarray, heads: Mapping[str, int]) -> np.ndarray:
        """Return a tensor in the layout of Hugging Face's checkpoints.

        Args:
            name: Name of the tensor in GGUF.
            value: Its value there.
            heads: Number of heads of each of the `interleaved` layers.
        """
        layer = name.split(".")[-2]
        if layer in self.interleaved:
            value = _exchanged(value, (heads[layer], -1, 2))
        return self._other(name, layer, value, -1)

    def stored_value(self, name: str, value: np.ndarray, heads: Mapping[str, int]) -> np.ndarray:
        """Return a tensor in the layout of GGUF; the inverse of `their_value`."""
        layer = name.split(".")[-2]
        if layer in self.interleaved:
            value = _exchanged(value, (heads[layer], 2, -1))
        return self._other(name, layer, value, 1)

    def _other(self, name, layer, value, step):
        if self.norms_plus_one and layer.endswith("norm"):
            return value + np.float32(step)
        if layer in self.transposed and name.endswith(".weight"):
            return value.T
        return value


def _exchanged(value, shape):
    """Return a tensor with its rows reordered: reshaped to these 3 axes, the last 2 exchanged."""
    rows = value.reshape(*shape, *value.shape[1:])
    return np.ascontiguousarray(rows.swapaxes(1, 2)).reshape(value.shape)


def _head_dim(facts):
    return facts.get("attention.key_length") or facts["embedding_length"] // _num_heads(facts)


def _num_heads(facts):
    return facts["attention.head_count"]


def _grouped(facts):
    """Return the fields of the width of a head and of the number of key/value heads."""
    head_dim = _head_dim(facts)
    for name in ("attention.value_length", "rope.dimension_count"):
        value = facts.get(name, head_dim)
        require(value == head_dim, name, value, f"{head_dim}, the width of a head")
    count = facts.get("attention.head_count_kv", _num_heads(facts))
    return dict(head_dim=head_dim, num_key_value_heads=count)


def _with_bias(facts, names):
    return _grouped(facts) | dict(attention_bias="blk.0.attn_q.bias" in names)


def _phi3(facts, names):
    """Return the fields of a Phi-3; only a part of each head may rotate."""
    head_dim = _head_dim(facts)
    rotary_dim = facts.get("rope.dimension_count", head_dim)
    fields = _grouped({**facts, "rope.dimension_count": head_dim})
    fields |= dict(sliding_window=facts.get("attention.sliding_window") or None)
    return fields | (
        {} if rotary_dim == head_dim else dict(partial_rotary_factor=rotary_dim / head_dim)
    )


def _granite(facts, names):
    """Return the fields of a Granite; a factor that is absent or 0 is the usual one."""
    usual = _head_dim(facts) ** -0.5
    return _with_bias(facts, names) | dict(
        embedding_multiplier=facts.get("embedding_scale") or 1.0,
        residual_multiplier=facts.get("residual_scale") or 1.0,
        attention_multiplier=facts.get("attention.scale") or usual,
        logits_scaling=facts.get("logit_scale") or 1.0,
    )


def _gemma(facts, names):
    return _grouped(facts)


def _later_gemma(name, every, window=None, attention_cap=None, logit_cap=None):
    """Return the function for the fields of a Gemma 2 or 3, see `Architecture`.

    `every`: each `every`-th layer has no window. It and the later arguments are the values that
    llama.cpp uses if a file has no key for them.
    """

    def fields(facts, names):
        head_dim, count = _head_dim(facts), facts["block_count"]
        # The query scale, as in llama.cpp: files have no key for it.
        is_largest = count == LARGEST_GEMMAS[name]
        scalar = facts["embedding_length"] / _num_heads(facts) if is_largest else head_dim
        pattern = facts.get("attention.sliding_window_pattern", every)
        if not isinstance(pattern, list):
            pattern = [bool((i + 1) % pattern) for i in range(count)]
        return _grouped(facts) | dict(
            query_pre_attn_scalar=scalar,
            sliding_window=facts.get("attention.sliding_window", window),
            layer_types=[SLIDING if has_window else FULL for has_window in pattern],
            attn_logit_softcapping=facts.get("attn_logit_softcapping", attention_cap),
            final_logit_softcapping=facts.get("final_logit_softcapping", logit_cap),
        )

    return fields


def _gemma3(facts, names):
    local = facts.get("rope.freq_base_swa", 10000.0)
    return _later_gemma("gemma3", 6)(facts, names) | dict(rope_local_base_freq=local)


_HEADS = ("attention.head_count_kv", "attention.key_length", "attention.value_length")
_WINDOWS = ("attention.sliding_window", "attention.sliding_window_pattern")
_FACTORS = ("embedding_scale", "residual_scale", "attention.scale", "logit_scale")
_CAPS = ("attn_logit_softcapping", "final_logit_softcapping")
_PAIRS = ("attn_q", "attn_k")
ARCHITECTURES = {
    "llama": Architecture("llama", _BLOCK, _with_bias, also_read=_HEADS, interleaved=_PAIRS),
    "smollm3": Architecture("smollm3", _BLOCK, _with_bias, also_read=_HEADS, interleaved=_PAIRS),
    "qwen2": Architecture("qwen2", _BLOCK, lambda facts, _: _grouped(facts), also_read=_HEADS),
    "qwen3": Architecture("qwen3", _BLOCK | _QK_NORMS, _with_bias, also_read=_HEADS),
    "phi3": Architecture(
        "phi3",
        {
            **{x: _BLOCK[x] for x in ("attn_norm", "attn_output", "ffn_norm", "ffn_down")},
            "attn_qkv": "self_attn.qkv_proj",
            "ffn_up": "mlp.gate_up_proj",
        },
        _phi3,
        also_read=(*_HEADS, "attention.sliding_window"),
    ),
    "olmo2": Architecture(
        "olmo2",
        {
            **{x: y for x, y in _BLOCK.items() if x not in ("attn_norm", "ffn_norm")},
            **{x: y for x, y in _OUTPUT_NORMS.items() if x != "ffn_norm"},
            **_QK_NORMS,
        },
        _with_bias,
        also_read=_HEADS,
    ),
    "granite": Architecture(
        "granite", _BLOCK, _granite, also_read=(*_HEADS, *_FACTORS), interleaved=_PAIRS
    ),
    "gemma": Architecture("gemma", _BLOCK, _gemma, also_read=_HEADS, norms_plus_one=True),
    "gemma2": Architecture(
        "gemma2",
        _BLOCK | _OUTPUT_NORMS,
        _later_gemma("gemma2", 2, window=4096, attention_cap=50.0, logit_cap=30.0),
        also_read=(*_HEADS, *_WINDOWS, *_CAPS),
        norms_plus_one=True,
    ),
    "gemma3": Architecture(
        "gemma3_text",
        _BLOCK | _OUTPUT_NORMS | _QK_NORMS,
        _gemma3,
        also_read=(*_HEADS, *_WINDOWS, *_CAPS, "rope.freq_base_swa"),
        norms_plus_one=True,
    ),
    "gpt2": Architecture(
        "gpt2",
        _GPT2_BLOCK,
        lambda facts, names: {},
        ends={
            "token_embd": "transformer.wte",
            "position_embd": "transformer.wpe",
            "output_norm": "transformer.ln_f",
            "output": "lm_head",
        },
        stem="transformer.h.",
        sizes=_GPT2_SIZES,
        transposed=("attn_qkv", "attn_output", "ffn_up", "ffn_down"),
        rotates=False,
    ),
}
