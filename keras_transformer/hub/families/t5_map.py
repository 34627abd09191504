"""Map of T5, T5 v1.1, mT5, MADLAD-400 and UMT5 checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keras_transformer.hub.families.family import (
    Family,
    Rule,
    dense,
    scale,
    table,
    their_activation,
    token_id,
    token_ids,
)
from keras_transformer.hub.families.fields import (
    ACTIVATIONS,
    PAIR_NAMES,
    PAIR_TOKENS,
    Field,
    activation,
    flag,
    positive,
    rate,
    read_same,
    size,
    token,
    write_same,
)
from keras_transformer.hub.families.general_fields import ENCODER_DECODER
from keras_transformer.models import T5, T5Config, T5EncoderConfig

_SAME = dict(  # our field -> Hugging Face's, with the same value
    vocab_size="vocab_size",
    d_model="d_model",
    d_ff="d_ff",
    num_heads="num_heads",
    head_dim="d_kv",
    num_buckets="relative_attention_num_buckets",
    max_distance="relative_attention_max_distance",
    dropout="dropout_rate",
    epsilon="layer_norm_epsilon",
)
NAMES = (
    _SAME
    | PAIR_NAMES
    | dict(
        num_encoder_layers="num_layers",
        activation="feed_forward_proj",
        max_length="n_positions",
    )
)
SYNONYMS = dict(
    hidden_size="d_model",
    num_attention_heads="num_heads",
    num_hidden_layers="num_layers",
    head_dim="d_kv",
)
_SIZES = ("vocab_size", "d_model", "d_ff", "num_layers", "num_heads", "d_kv")
_FORWARDS = [*ACTIVATIONS, *(f"gated-{name}" for name in ACTIVATIONS)]


def _are_tasks(value):
    tasks = value.values() if isinstance(value, Mapping) else [None]
    return all(isinstance(task, Mapping) for task in tasks)


def fields_of(feed_forward: str) -> dict[str, Field]:
    """Return the fields of a `config.json`, given the default of `feed_forward_proj`."""
    return (
        ENCODER_DECODER
        | {name: size() for name in _SIZES}
        | dict(
            num_decoder_layers=size(None),
            relative_attention_num_buckets=size(32),
            relative_attention_max_distance=size(128),
            dropout_rate=rate(0.1),
            feed_forward_proj=Field(f"one of {_FORWARDS}", lambda x: x in _FORWARDS, feed_forward),
            dense_act_fn=activation(None),
            is_gated_act=flag(None),
            layer_norm_epsilon=positive(1e-6),
            n_positions=size(512),
            tie_word_embeddings=flag(None),
            task_specific_params=Field("an object of objects or null", _are_tasks, None),
            pad_token_id=token(0),
            eos_token_id=token(1),
        )
    )


def read_shared(theirs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that our configs of a T5 and of its encoder alone share.

    `is_gated_act` and `dense_act_fn`, which `transformers` derives from `feed_forward_proj`, take
    precedence over it.
    """
    gated, _, name = theirs["feed_forward_proj"].rpartition("-")
    if gated and name == "gelu":
        name = "gelu_new"
    if theirs["is_gated_act"] is not None:
        gated = theirs["is_gated_act"]
    return read_same(theirs, _SAME) | dict(
        positions_by_layer=theirs["model_type"] == "umt5",
        activation=ACTIVATIONS[theirs["dense_act_fn"] or name],
        gated=bool(gated),
        max_length=theirs["n_positions"],
        pad_id=token_id(theirs, "pad_token_id"),
    )


def _config(theirs, names):
    """Return our config of a T5."""
    return T5Config(
        num_encoder_layers=theirs["num_layers"],
        num_decoder_layers=theirs["num_decoder_layers"] or theirs["num_layers"],
        tie_output="lm_head.weight" not in set(names) and not _is_untied(theirs),
        scale_output=_scales_output(theirs),
        bos_id=token_id(theirs, "decoder_start_token_id", "pad_token_id"),
        eos_id=token_ids(theirs, "eos_token_id"),
        **read_shared(theirs),
    )


def _is_untied(theirs):
    """Return whether the config alone tells that the output has separate weights.

    Only the config of an older T5 does, which has no `scale_decoder_outputs`. Newer configs of T5
    always say tied, and `transformers` (5.23) ignores the field in mT5 and UMT5. In all these, the
    output is untied if the checkpoint has a tensor for it.
    """
    is_older = theirs["model_type"] == "t5" and "scale_decoder_outputs" not in theirs
    return is_older and theirs["tie_word_embeddings"] is False


def _scales_output(theirs):
    if theirs["model_type"] == "mt5":
        return False
    return bool(theirs.get("scale_decoder_outputs", theirs["tie_word_embeddings"] is not False))


def write_shared(config: T5Config | T5EncoderConfig) -> dict[str, Any]:
    """Return the fields of a `config.json` that a T5 and its encoder alone share."""
    name = their_activation(config.activation)
    if config.gated:
        name = "gated-gelu" if name == "gelu_new" else f"gated-{name}"
    return write_same(config, _SAME) | dict(feed_forward_proj=name, pad_token_id=config.pad_id)


def _config_file(config):
    """Return the `config.json` of a T5 (also mT5) or UMT5."""
    kind = "UMT5" if config.positions_by_layer else "T5"
    return write_shared(config) | dict(
        architectures=[f"{kind}ForConditionalGeneration"],
        is_encoder_decoder=True,
        num_layers=config.num_encoder_layers,
        num_decoder_layers=config.num_decoder_layers,
        tie_word_embeddings=config.tie_output,
        scale_decoder_outputs=config.scale_output,
        decoder_start_token_id=config.bos_id,
        eos_token_id=config.eos_id,
    )


def _rules(config: T5Config) -> list[Rule]:
    """Return the rules of T5, T5 v1.1, mT5, MADLAD-400 and UMT5."""
    sides = dict(encoder=config.num_encoder_layers, decoder=config.num_decoder_layers)
    rules = rules_of(config, sides)
    if not config.tie_output:
        rules += dense("output", "lm_head", bias=False)
    return rules


def rules_of(config: T5Config | T5EncoderConfig, sides: Mapping[str, int]) -> list[Rule]:
    """Return the rules of the stacks with these numbers of layers, and of the token table."""
    rules = []
    for side, layers in sides.items():
        attention = "attention" if side == "encoder" else "self_attention"
        for i in range(layers):
            ours, theirs = f"{side}/block_{i}", f"{side}.block.{i}.layer"
            query, key, value, output = (f"{theirs}.0.SelfAttention.{x}" for x in "qkvo")
            fused, heads = f"{ours}/{attention}/query_key_value", (config.num_heads,) * 3
            rules += dense(fused, query, key, value, bias=False, heads=heads)
            rules += dense(f"{ours}/{attention}/output", output, bias=False)
            rules += scale(f"{ours}/{attention}_norm/norm", f"{theirs}.0.layer_norm")
            last = 1
            if side == "decoder":
                query, key, value, output = (f"{theirs}.1.EncDecAttention.{x}" for x in "qkvo")
                rules += dense(f"{ours}/cross_attention/query", query, bias=False)
                fused = f"{ours}/cross_attention/key_value"
                rules += dense(fused, key, value, bias=False, heads=heads[:2])
                rules += dense(f"{ours}/cross_attention/output", output, bias=False)
                rules += scale(f"{ours}/cross_attention_norm/norm", f"{theirs}.1.layer_norm")
                last = 2
            layer = f"{theirs}.{last}.DenseReluDense"
            hidden = ("wi_0", "wi_1") if config.gated else ("wi",)
            for name, part in zip(("hidden", "gate"), hidden, strict=False):
                rules += dense(f"{ours}/feed_forward/{name}", f"{layer}.{part}", bias=False)
            rules += dense(f"{ours}/feed_forward/output", f"{layer}.wo", bias=False)
            rules += scale(f"{ours}/feed_forward_norm/norm", f"{theirs}.{last}.layer_norm")
        rules += scale(f"{side}/norm", f"{side}.final_layer_norm")
        for i in range(layers if config.positions_by_layer else 1):
            ours = f"relative_bias_{i}" if config.positions_by_layer else "relative_bias"
            theirs = f"{side}.block.{i}.layer.0.SelfAttention.relative_attention_bias"
            rules += table(f"{side}/{ours}/embedding", theirs)
    rules.append(Rule("embedding/tokens/embeddings", ("shared.weight",)))
    return rules


_ALIASES = {
    "encoder.embed_tokens.weight": ("shared.weight",),
    "decoder.embed_tokens.weight": ("shared.weight",),
    "lm_head.weight": ("shared.weight", "decoder.embed_tokens.weight"),
}
_ARCHITECTURES = tuple(
    f"{name}{end}"
    for name in ("T5", "MT5", "UMT5")
    for end in ("ForConditionalGeneration", "WithLMHeadModel", "Model")
)
# In the first T5 checkpoints: a position bias of the cross-attention that is never used.
_UNUSED = ("EncDecAttention.relative_attention_bias.weight",)

# Defaults of `feed_forward_proj`, by `model_type`.
FEED_FORWARDS = {"t5": "relu", "mt5": "gated-gelu", "umt5": "gated-gelu"}
FAMILIES = {
    kind: Family(
        T5,
        _config,
        _rules,
        _config_file,
        _ALIASES,
        _UNUSED,
        free=frozenset({"max_length"}),
        fields=fields_of(feed_forward),
        also_read=PAIR_TOKENS + (() if kind == "mt5" else ("scale_decoder_outputs",)),
        harmless=("scale_decoder_outputs",),  # mT5 never scales these outputs
        synonyms=SYNONYMS,
        names=NAMES,
        architectures=_ARCHITECTURES,
    )
    for kind, feed_forward in FEED_FORWARDS.items()
}
