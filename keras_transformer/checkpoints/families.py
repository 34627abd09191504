"""Which weight of ours is which of a Hugging Face checkpoint: a map a family, as data.

A family is the `model_type`s of its `config.json`, what our config makes of that file and back,
and `Rule`s from weight to weight. Marian, Pegasus, M2M-100 (and NLLB-200) and mBART-50 have one
layout, T5 (v1.1, mT5, MADLAD-400) another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from keras_transformer.config import TransformerConfig
from keras_transformer.models import T5, T5Config, Transformer

ACTIVATIONS = {  # theirs -> ours
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}


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


@dataclass(frozen=True)
class Family:
    """How one kind of checkpoint is read and written.

    Args:
        model: our class.
        config: their `config.json` and the names of their weights -> our config.
        rules: our config -> the rules of all weights.
        aliases: their names of what another one may hold already, and those others.
        unused: ends of their names of what is no weight, such as tables of sinusoids, or is one
            that no model looks at.
        config_file: our config -> their `config.json`, without its `model_type`.
    """

    model: type
    config: Callable[[Mapping[str, Any], Iterable[str]], Any]
    rules: Callable[[Any], list[Rule]]
    config_file: Callable[[Any], dict[str, Any]]
    aliases: Mapping[str, tuple[str, ...]]
    unused: tuple[str, ...] = ()


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


def _bart_rules(config: TransformerConfig) -> list[Rule]:
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


def _t5_rules(config: T5Config) -> list[Rule]:
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


# Configs: theirs to ours, and back.


def _activation(name: str) -> str:
    if name not in ACTIVATIONS:
        raise ValueError(f"activation must be one of {sorted(ACTIVATIONS)}, got {name!r}")
    return ACTIVATIONS[name]


def _their_activation(name: str) -> str:
    return next(theirs for theirs, ours in ACTIVATIONS.items() if ours == name)


def _one(theirs: Mapping[str, Any], *names: str) -> Any:
    """The one value that several fields have."""
    values = [theirs[name] for name in names]
    if len(set(values)) > 1:
        raise ValueError(f"{' and '.join(names)} must be equal, got {values}")
    return values[0]


def _id(theirs: Mapping[str, Any], name: str, *others: str) -> int:
    """The first of these fields that is there and not null; one number, or a list of one."""
    for field in (name, *others):
        value = theirs.get(field)
        if isinstance(value, list) and len(value) == 1:
            (value,) = value
        if isinstance(value, int):
            return value
        if value is not None:
            raise ValueError(f"{field} must be one token's number, got {value!r}")
    raise KeyError(name)


def _bart_config(theirs: Mapping[str, Any], names: Iterable[str], scaled: bool, **family: Any):
    return TransformerConfig(
        source_vocab_size=theirs["vocab_size"],
        d_model=theirs["d_model"],
        d_ff=_one(theirs, "encoder_ffn_dim", "decoder_ffn_dim"),
        num_encoder_layers=theirs["encoder_layers"],
        num_decoder_layers=theirs["decoder_layers"],
        num_heads=_one(theirs, "encoder_attention_heads", "decoder_attention_heads"),
        dropout=theirs.get("dropout", 0.1),
        activation=_activation(theirs["activation_function"]),
        scale_embeddings=theirs.get("scale_embedding", scaled),
        max_length=theirs["max_position_embeddings"],
        epsilon=1e-5,
        tie_output=theirs.get("tie_word_embeddings", True),
        pad_id=_id(theirs, "pad_token_id"),
        eos_id=_id(theirs, "eos_token_id"),
        **family,
    )


def _marian_config(theirs, names):
    return _bart_config(
        theirs,
        names,
        scaled=False,
        target_vocab_size=theirs.get("decoder_vocab_size") or theirs["vocab_size"],
        share_embeddings=theirs.get("share_encoder_decoder_embeddings", True),
        positions="sinusoidal_halves",
        output_bias=True,
        bos_id=_id(theirs, "decoder_start_token_id", "pad_token_id"),
    )


def _m2m_config(theirs, names):
    return _bart_config(
        theirs,
        names,
        scaled=True,
        target_vocab_size=theirs["vocab_size"],
        positions="sinusoidal_tensor2tensor",
        position_offset=2,
        norm_first=True,
        bos_id=_id(theirs, "decoder_start_token_id", "eos_token_id"),
    )


def _mbart_config(theirs, names):
    return _bart_config(
        theirs,
        names,
        scaled=False,
        target_vocab_size=theirs["vocab_size"],
        positions="learned",
        position_offset=2,
        norm_first=True,
        norm_embeddings=True,
        output_bias=True,
        bos_id=_id(theirs, "decoder_start_token_id", "eos_token_id"),
    )


def _pegasus_config(theirs, names):
    return _bart_config(
        theirs,
        names,
        scaled=False,
        target_vocab_size=theirs["vocab_size"],
        positions="sinusoidal_halves",
        norm_first=True,
        output_bias=True,
        bos_id=_id(theirs, "decoder_start_token_id", "pad_token_id"),
    )


def _bart_file(config: TransformerConfig) -> dict[str, Any]:
    return dict(
        is_encoder_decoder=True,
        vocab_size=config.source_vocab_size,
        d_model=config.d_model,
        encoder_ffn_dim=config.d_ff,
        decoder_ffn_dim=config.d_ff,
        encoder_layers=config.num_encoder_layers,
        decoder_layers=config.num_decoder_layers,
        encoder_attention_heads=config.num_heads,
        decoder_attention_heads=config.num_heads,
        dropout=config.dropout,
        attention_dropout=0.0,
        activation_dropout=0.0,
        activation_function=_their_activation(config.activation),
        scale_embedding=config.scale_embeddings,
        max_position_embeddings=config.max_length,
        tie_word_embeddings=config.tie_output,
        pad_token_id=config.pad_id,
        eos_token_id=config.eos_id,
        decoder_start_token_id=config.bos_id,
    )


def _marian_file(config):
    return _bart_file(config) | dict(
        architectures=["MarianMTModel"],
        decoder_vocab_size=config.target_vocab_size,
        share_encoder_decoder_embeddings=config.share_embeddings,
        forced_eos_token_id=config.eos_id,
    )


def _pegasus_file(config):
    return _bart_file(config) | dict(
        architectures=["PegasusForConditionalGeneration"], forced_eos_token_id=config.eos_id
    )


def _m2m_file(config):
    architectures = ["M2M100ForConditionalGeneration"]
    return _bart_file(config) | dict(architectures=architectures)


def _mbart_file(config):
    return _bart_file(config) | dict(
        architectures=["MBartForConditionalGeneration"],
        forced_eos_token_id=config.eos_id,
        add_final_layer_norm=True,
    )


def _t5_config(theirs, names):
    theirs = {"pad_token_id": 0, "eos_token_id": 1, **theirs}
    gated, _, activation = theirs.get("feed_forward_proj", "relu").rpartition("-")
    if gated and activation == "gelu":
        activation = "gelu_new"
    return T5Config(
        vocab_size=theirs["vocab_size"],
        d_model=theirs["d_model"],
        d_ff=theirs["d_ff"],
        num_encoder_layers=theirs["num_layers"],
        num_decoder_layers=theirs.get("num_decoder_layers") or theirs["num_layers"],
        num_heads=theirs["num_heads"],
        head_dim=theirs["d_kv"],
        num_buckets=theirs.get("relative_attention_num_buckets", 32),
        max_distance=theirs.get("relative_attention_max_distance", 128),
        dropout=theirs.get("dropout_rate", 0.1),
        activation=_activation(activation),
        gated=bool(gated),
        # Whether the output has weights of its own is seen by them, not by the config: that of
        # mT5 says one thing and means another (`transformers` 5.23).
        tie_output="lm_head.weight" not in set(names),
        scale_output=_scales_output(theirs),
        epsilon=theirs.get("layer_norm_epsilon", 1e-6),
        max_length=theirs.get("n_positions", 512),
        pad_id=_id(theirs, "pad_token_id"),
        bos_id=_id(theirs, "decoder_start_token_id", "pad_token_id"),
        eos_id=_id(theirs, "eos_token_id"),
    )


def _scales_output(theirs):
    if theirs["model_type"] == "mt5":
        return False
    tied = theirs.get("tie_word_embeddings", True) is not False
    return theirs.get("scale_decoder_outputs", tied)


def _t5_file(config):
    activation = _their_activation(config.activation)
    activation = "gelu" if config.gated and activation == "gelu_new" else activation
    return dict(
        architectures=["T5ForConditionalGeneration"],
        is_encoder_decoder=True,
        vocab_size=config.vocab_size,
        d_model=config.d_model,
        d_ff=config.d_ff,
        num_layers=config.num_encoder_layers,
        num_decoder_layers=config.num_decoder_layers,
        num_heads=config.num_heads,
        d_kv=config.head_dim,
        relative_attention_num_buckets=config.num_buckets,
        relative_attention_max_distance=config.max_distance,
        dropout_rate=config.dropout,
        feed_forward_proj=f"gated-{activation}" if config.gated else activation,
        tie_word_embeddings=config.scale_output,
        scale_decoder_outputs=config.scale_output,
        layer_norm_epsilon=config.epsilon,
        pad_token_id=config.pad_id,
        decoder_start_token_id=config.bos_id,
        eos_token_id=config.eos_id,
    )


_BART_SHARED, _DECODER = "model.shared.weight", "model.decoder.embed_tokens.weight"
_BART_ALIASES = {
    "model.encoder.embed_tokens.weight": (_BART_SHARED,),
    _DECODER: (_BART_SHARED,),
    "lm_head.weight": (_BART_SHARED, _DECODER),
}
_POSITIONS = ("embed_positions.weight", "embed_positions.weights")
_T5_ALIASES = {
    "encoder.embed_tokens.weight": ("shared.weight",),
    "decoder.embed_tokens.weight": ("shared.weight",),
    "lm_head.weight": ("shared.weight", "decoder.embed_tokens.weight"),
}
# Of the first T5s, which computed positions there and used them nowhere.
_T5_UNUSED = ("EncDecAttention.relative_attention_bias.weight",)

FAMILIES = {
    "marian": Family(
        Transformer, _marian_config, _bart_rules, _marian_file, _BART_ALIASES, _POSITIONS
    ),
    "pegasus": Family(
        Transformer, _pegasus_config, _bart_rules, _pegasus_file, _BART_ALIASES, _POSITIONS
    ),
    "m2m_100": Family(Transformer, _m2m_config, _bart_rules, _m2m_file, _BART_ALIASES, _POSITIONS),
    "mbart": Family(Transformer, _mbart_config, _bart_rules, _mbart_file, _BART_ALIASES),
    "t5": Family(T5, _t5_config, _t5_rules, _t5_file, _T5_ALIASES, _T5_UNUSED),
}
FAMILIES["mt5"] = FAMILIES["t5"]
