"""Maps of BART, Marian (OPUS-MT), Pegasus, M2M-100 (also NLLB-200) and mBART, and shared parts."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

from keras_transformer.config import TransformerConfig, require
from keras_transformer.hub.families.family import (
    Family,
    Rule,
    dense,
    norm,
    their_activation,
    token_id,
    token_ids,
)
from keras_transformer.hub.families.fields import (
    ACTIVATIONS,
    OF_SIDES,
    PAIR_NAMES,
    SIDE_NAMES,
    SIDE_SIZES,
    SIDE_SYNONYMS,
    activation,
    flag,
    pair_tokens,
    rate,
    read_same,
    size,
    write_same,
)
from keras_transformer.hub.families.general_fields import ENCODER_DECODER
from keras_transformer.models import Transformer

_FIELDS = ENCODER_DECODER | {name: size() for name in ("vocab_size", "d_model", *OF_SIDES)}
_FIELDS |= dict(
    max_position_embeddings=size(1024),
    dropout=rate(0.1),
    activation_function=activation("gelu"),
    scale_embedding=flag(False),
    tie_word_embeddings=flag(True),
    **pair_tokens(1, 2, 2),
)
_MARIAN_FIELDS = _FIELDS | dict(
    decoder_vocab_size=size(None),
    share_encoder_decoder_embeddings=flag(True),
    **pair_tokens(58100, 58100, 0),
)
_PEGASUS_FIELDS = _FIELDS | pair_tokens(0, 0, 1)
FIELDS = _FIELDS | dict(max_position_embeddings=size())  # required, because positions are weights
_MBART_FIELDS = FIELDS | pair_tokens(1, None, 2)
_M2M_FIELDS = _FIELDS | dict(activation_function=activation("relu"), scale_embedding=flag(True))

_SAME = SIDE_SIZES | dict(
    scale_embeddings="scale_embedding",
    max_length="max_position_embeddings",
    tie_output="tie_word_embeddings",
)
NAMES = SIDE_NAMES | _SAME | {f"{x}_vocab_size": "vocab_size" for x in ("source", "target")}
_CLASSES = dict(marian="Marian", pegasus="Pegasus", m2m_100="M2M100", mbart="MBart", bart="Bart")
_START = "decoder_start_token_id"
_ENDS = ("ForConditionalGeneration", "MTModel", "Model")

_SHARED, _BIAS = "model.shared.weight", "final_logits_bias"
_ENCODER, _DECODER = (f"model.{side}.embed_tokens.weight" for side in ("encoder", "decoder"))


def _config(
    theirs: Mapping[str, Any],
    names: Iterable[str],
    target_vocab_size: int | None = None,
    shared: bool = True,
    config_class: type[TransformerConfig] = TransformerConfig,
    **family: Any,
) -> TransformerConfig:
    """Return our config: fields that all these families share, and those in `family`."""
    # Without a tied output, each side may have a table of its own.
    has_own = not theirs["tie_word_embeddings"] and not {_ENCODER, _DECODER}.isdisjoint(names)
    return config_class(
        source_vocab_size=theirs["vocab_size"],
        target_vocab_size=target_vocab_size or theirs["vocab_size"],
        share_embeddings=shared and not has_own,
        activation=ACTIVATIONS[theirs["activation_function"]],
        epsilon=1e-5,
        pad_id=token_id(theirs, "pad_token_id"),
        eos_id=token_ids(theirs, "eos_token_id"),
        **read_same(theirs, _SAME),
        **family,
    )


def _marian_config(theirs, names):
    """Return our config of a Marian."""
    source, target = theirs["vocab_size"], theirs["decoder_vocab_size"]
    name = "share_encoder_decoder_embeddings"
    accepted = f"false for vocab_size={source} and decoder_vocab_size={target}"
    require(not theirs[name] or source == (target or source), name, theirs[name], accepted)
    return _config(
        theirs,
        names,
        target_vocab_size=theirs["decoder_vocab_size"],
        shared=theirs["share_encoder_decoder_embeddings"],
        positions="sinusoidal_halves",
        output_bias=True,
        bos_id=token_id(theirs, _START, "pad_token_id"),
    )


def _m2m_config(theirs, names):
    """Return our config of an M2M-100 or NLLB-200."""
    return _config(
        theirs,
        names,
        positions="sinusoidal_tensor2tensor",
        position_offset=token_id(theirs, "pad_token_id") + 1,
        norm_first=True,
        bos_id=token_id(theirs, _START),
    )


def bart_config(theirs: Mapping[str, Any], names: Iterable[str], **family: Any) -> Any:
    """Return our config of a BART or mBART.

    Args:
        theirs: Content of the `config.json`, with defaults filled in.
        names: Names of the tensors in the checkpoint.
        family: Further fields of our config.
    """
    # `transformers` takes a missing bias for zeros; the bare model (BartModel) has none.
    names = set(names)
    options = dict(output_bias=_BIAS in names) | family
    return _config(
        theirs,
        names,
        positions="learned",
        position_offset=2,
        norm_embeddings=True,
        bos_id=token_id(theirs, _START),
        **options,
    )


def _mbart_config(theirs, names):
    # mBART-25 may have no start token, as each text begins with the token of its language.
    theirs = theirs | {_START: token_id(theirs, _START, "eos_token_id")}
    return bart_config(theirs, names, norm_first=True, output_bias=True)


def _pegasus_config(theirs, names):
    """Return our config of a Pegasus."""
    return _config(
        theirs,
        names,
        positions="sinusoidal_halves",
        norm_first=True,
        output_bias=True,
        bos_id=token_id(theirs, _START, "pad_token_id"),
    )


def write_sides(config: Any, names: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a `config.json` that BART, its relatives and Whisper share.

    Args:
        config: Our config.
        names: Maps fields of our config to fields of the file with the same value.
    """
    decoder = config.decoder_sizes
    return write_same(config, {**names, **PAIR_NAMES}) | dict(
        is_encoder_decoder=True,
        decoder_ffn_dim=decoder["d_ff"],
        decoder_attention_heads=decoder["num_heads"],
        attention_dropout=0.0,
        activation_dropout=0.0,
        activation_function=their_activation(config.activation),
    )


def file_of(config: TransformerConfig, kind: str) -> dict[str, Any]:
    """Return the `config.json` of one of these families, without `model_type`."""
    end = "MTModel" if kind == "marian" else "ForConditionalGeneration"
    theirs = write_sides(config, _SAME)
    theirs |= dict(architectures=[_CLASSES[kind] + end], vocab_size=config.source_vocab_size)
    if kind != "m2m_100":
        theirs["forced_eos_token_id"] = config.eos_id
    if kind == "marian":
        theirs["decoder_vocab_size"] = config.target_vocab_size
        theirs["share_encoder_decoder_embeddings"] = config.share_embeddings
    if kind == "mbart":
        theirs["add_final_layer_norm"] = True
    return theirs


def _attention(
    ours: str, theirs: str, heads: int, key_bias: bool, cross: bool = False
) -> list[Rule]:
    query, key, value = (f"{theirs}.{name}_proj" for name in "qkv")
    rules = dense(f"{ours}/output", f"{theirs}.out_proj")
    parts, fused = [query, key, value], f"{ours}/query_key_value"
    if cross:
        rules += dense(f"{ours}/query", query)
        parts, fused = [key, value], f"{ours}/key_value"
    fused_heads = (heads,) * len(parts)
    biases = tuple(f"{x}.bias" if key_bias or x != key else None for x in parts)
    rules += dense(fused, *parts, bias=False, heads=fused_heads)
    return [*rules, Rule(f"{fused}/bias", biases, heads=fused_heads)]


def blocks(config: Any, key_bias: bool = True) -> list[Rule]:
    """Return the rules of the blocks of both sides.

    Args:
        config: Our config.
        key_bias: Whether keys have a bias in the checkpoint; if not, ours is zero. A bias of the
            keys adds the same number to all scores of a query, so it never changes the attention.
    """
    rules = []
    for side in ("encoder", "decoder"):
        layers, attention, heads = config.num_encoder_layers, "attention", config.num_heads
        if side == "decoder":
            layers, attention = config.num_decoder_layers, "self_attention"
            heads = config.decoder_sizes["num_heads"]
        for i in range(layers):
            ours, theirs = f"{side}/block_{i}", f"model.{side}.layers.{i}"
            rules += _attention(f"{ours}/{attention}", f"{theirs}.self_attn", heads, key_bias)
            rules += norm(f"{ours}/{attention}_norm/norm", f"{theirs}.self_attn_layer_norm")
            if side == "decoder":
                path, name = f"{ours}/cross_attention", f"{theirs}.encoder_attn"
                rules += _attention(path, name, heads, key_bias, cross=True)
                rules += norm(f"{path}_norm/norm", f"{name}_layer_norm")
            rules += dense(f"{ours}/feed_forward/hidden", f"{theirs}.fc1")
            rules += dense(f"{ours}/feed_forward/output", f"{theirs}.fc2")
            rules += norm(f"{ours}/feed_forward_norm/norm", f"{theirs}.final_layer_norm")
    return rules


def rules_of(config: TransformerConfig) -> list[Rule]:
    """Return the rules of all weights of a BART, Marian, Pegasus, M2M-100 or mBART."""
    rules = blocks(config)
    for side in ("encoder", "decoder"):
        if config.norm_first:
            rules += norm(f"{side}/norm", f"model.{side}.layer_norm")
        embedding = "source_embedding" if side == "encoder" else "target_embedding"
        if config.positions == "learned":
            positions = f"model.{side}.embed_positions.weight"
            rules.append(Rule(f"{embedding}/positions/embeddings", (positions,)))
        if config.norm_embeddings:
            rules += norm(f"{embedding}/norm", f"model.{side}.layernorm_embedding")
    if not config.share_embeddings:
        rules.append(Rule("source_embedding/tokens/embeddings", (_ENCODER,)))
    target = _SHARED if config.share_embeddings else _DECODER
    rules.append(Rule("target_embedding/tokens/embeddings", (target,)))
    if not config.tie_output:
        rules += dense("output", "lm_head", bias=False)
    if config.output_bias:
        rules.append(Rule("output_bias/bias", (_BIAS,), "row"))
    return rules


ALIASES = {_ENCODER: (_SHARED,), _DECODER: (_SHARED,), "lm_head.weight": (_SHARED, _DECODER)}
# Ignored tensors: a table that neither side reads, sinusoids, a version number in older files.
UNUSED = (_SHARED, "embed_positions.weight", "embed_positions.weights", "coder.version")
# Without a tied output, `transformers` (5.23) ties no tables: each copy is written.
_MARIAN_UNTIED = {_ENCODER: _SHARED, _DECODER: _SHARED}
_UNTIED = _MARIAN_UNTIED | {_SHARED: _ENCODER}

FAMILIES = {
    kind: Family(
        Transformer,
        config,
        rules_of,
        functools.partial(file_of, kind=kind),
        ALIASES,
        UNUSED,
        prefix="model.",
        fields=fields,
        untied=_MARIAN_UNTIED if kind == "marian" else _UNTIED,
        synonyms=SIDE_SYNONYMS,
        names=NAMES,
        architectures=tuple(_CLASSES[kind] + end for end in _ENDS),
    )
    for kind, config, fields in (
        ("marian", _marian_config, _MARIAN_FIELDS),
        ("pegasus", _pegasus_config, _PEGASUS_FIELDS),
        ("m2m_100", _m2m_config, _M2M_FIELDS),
        ("mbart", _mbart_config, _MBART_FIELDS),
        ("bart", bart_config, FIELDS),
    )
}
