"""Weights of ours by the names of a Hugging Face checkpoint: one list of `Rule`s a layout."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from keras_transformer.config import TransformerConfig
from keras_transformer.models import T5Config


@dataclass(frozen=True)
class Rule:
    """A weight of ours and what it is in a checkpoint.

    Args:
        ours: path of our weight.
        theirs: names in the checkpoint; several lie side by side in ours, along the last axis.
        layout: "same", "transposed", or "row" where theirs has one more axis, of size 1, in front.
    """

    ours: str
    theirs: tuple[str, ...]
    layout: str = "same"

    def take(self, read: Callable[[str], np.ndarray]) -> np.ndarray:
        """Our weight, from tensors that `read` gives by their names."""
        parts = [read(name) for name in self.theirs]
        if self.layout == "transposed":
            parts = [part.T for part in parts]
        elif self.layout == "row":
            parts = [part[0] for part in parts]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)

    def give(self, value: np.ndarray) -> dict[str, np.ndarray]:
        """Their tensors by name, from our weight."""
        parts = np.split(value, len(self.theirs), axis=-1)
        if self.layout == "transposed":
            parts = [part.T for part in parts]
        elif self.layout == "row":
            parts = [part[None] for part in parts]
        return dict(zip(self.theirs, parts, strict=True))


# Layouts: what a layer of ours is there.


def _dense(ours: str, *theirs: str, bias: bool = True) -> list[Rule]:
    rules = [Rule(f"{ours}/kernel", tuple(f"{name}.weight" for name in theirs), "transposed")]
    if bias:
        rules.append(Rule(f"{ours}/bias", tuple(f"{name}.bias" for name in theirs)))
    return rules


def _norm(ours: str, theirs: str) -> list[Rule]:
    return [
        Rule(f"{ours}/gamma", (f"{theirs}.weight",)),
        Rule(f"{ours}/beta", (f"{theirs}.bias",)),
    ]


def _scale(ours: str, theirs: str) -> list[Rule]:
    return [Rule(f"{ours}/scale", (f"{theirs}.weight",))]


def _bart_attention(ours: str, theirs: str, cross: bool = False) -> list[Rule]:
    query, key, value = (f"{theirs}.{name}_proj" for name in "qkv")
    rules = _dense(f"{ours}/output", f"{theirs}.out_proj")
    if cross:
        return rules + _dense(f"{ours}/query", query) + _dense(f"{ours}/key_value", key, value)
    return rules + _dense(f"{ours}/query_key_value", query, key, value)


def bart_rules(config: TransformerConfig) -> list[Rule]:
    """Of Marian, Pegasus, M2M-100 and mBART-50."""
    rules = []
    sides = dict(encoder=config.num_encoder_layers, decoder=config.num_decoder_layers)
    for side, layers in sides.items():
        attention = "attention" if side == "encoder" else "self_attention"
        for i in range(layers):
            ours, theirs = f"{side}/block_{i}", f"model.{side}.layers.{i}"
            rules += _bart_attention(f"{ours}/{attention}", f"{theirs}.self_attn")
            rules += _norm(f"{ours}/{attention}_norm/norm", f"{theirs}.self_attn_layer_norm")
            if side == "decoder":
                names = f"{ours}/cross_attention", f"{theirs}.encoder_attn"
                rules += _bart_attention(*names, cross=True)
                rules += _norm(f"{names[0]}_norm/norm", f"{names[1]}_layer_norm")
            rules += _dense(f"{ours}/feed_forward/hidden", f"{theirs}.fc1")
            rules += _dense(f"{ours}/feed_forward/output", f"{theirs}.fc2")
            rules += _norm(f"{ours}/feed_forward_norm/norm", f"{theirs}.final_layer_norm")
        if config.norm_first:
            rules += _norm(f"{side}/norm", f"model.{side}.layer_norm")
        embedding = "source_embedding" if side == "encoder" else "target_embedding"
        if config.positions == "learned":
            positions = f"model.{side}.embed_positions.weight"
            rules.append(Rule(f"{embedding}/positions/embeddings", (positions,)))
        if config.norm_embeddings:
            rules += _norm(f"{embedding}/norm", f"model.{side}.layernorm_embedding")
    target = "model.shared.weight"
    if not config.share_embeddings:
        target, source = "model.decoder.embed_tokens.weight", "model.encoder.embed_tokens.weight"
        rules.append(Rule("source_embedding/tokens/embeddings", (source,)))
    rules.append(Rule("target_embedding/tokens/embeddings", (target,)))
    if not config.tie_output:
        rules += _dense("output", "lm_head", bias=False)
    if config.output_bias:
        rules.append(Rule("output_bias/bias", ("final_logits_bias",), "row"))
    return rules


def t5_rules(config: T5Config) -> list[Rule]:
    """Of T5, T5 v1.1, mT5 and MADLAD-400."""
    rules = []
    sides = dict(encoder=config.num_encoder_layers, decoder=config.num_decoder_layers)
    for side, layers in sides.items():
        attention = "attention" if side == "encoder" else "self_attention"
        for i in range(layers):
            ours, theirs = f"{side}/block_{i}", f"{side}.block.{i}.layer"
            query, key, value, output = (f"{theirs}.0.SelfAttention.{x}" for x in "qkvo")
            rules += _dense(f"{ours}/{attention}/query_key_value", query, key, value, bias=False)
            rules += _dense(f"{ours}/{attention}/output", output, bias=False)
            rules += _scale(f"{ours}/{attention}_norm/norm", f"{theirs}.0.layer_norm")
            last = 1
            if side == "decoder":
                query, key, value, output = (f"{theirs}.1.EncDecAttention.{x}" for x in "qkvo")
                rules += _dense(f"{ours}/cross_attention/query", query, bias=False)
                rules += _dense(f"{ours}/cross_attention/key_value", key, value, bias=False)
                rules += _dense(f"{ours}/cross_attention/output", output, bias=False)
                rules += _scale(f"{ours}/cross_attention_norm/norm", f"{theirs}.1.layer_norm")
                last = 2
            dense = f"{theirs}.{last}.DenseReluDense"
            hidden = ("wi_0", "wi_1") if config.gated else ("wi",)
            for name, part in zip(("hidden", "gate"), hidden, strict=False):
                rules += _dense(f"{ours}/feed_forward/{name}", f"{dense}.{part}", bias=False)
            rules += _dense(f"{ours}/feed_forward/output", f"{dense}.wo", bias=False)
            rules += _scale(f"{ours}/feed_forward_norm/norm", f"{theirs}.{last}.layer_norm")
        rules += _scale(f"{side}/norm", f"{side}.final_layer_norm")
        table = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        rules.append(Rule(f"{side}/relative_bias/embedding/embeddings", (table,)))
    rules.append(Rule("embedding/tokens/embeddings", ("shared.weight",)))
    if not config.tie_output:
        rules += _dense("output", "lm_head", bias=False)
    return rules
