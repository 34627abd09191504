"""Which weight of ours is which of a Hugging Face checkpoint: a map a family, as data.

A family is the `model_type`s of its `config.json`, what our config makes of that file and back,
and `Rule`s from weight to weight. Marian, Pegasus, M2M-100 (and NLLB-200) and mBART-50 have one
layout, T5 (v1.1, mT5, MADLAD-400) another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from keras_transformer.checkpoints.rules import Rule, bart_rules, t5_rules
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
        Transformer, _marian_config, bart_rules, _marian_file, _BART_ALIASES, _POSITIONS
    ),
    "pegasus": Family(
        Transformer, _pegasus_config, bart_rules, _pegasus_file, _BART_ALIASES, _POSITIONS
    ),
    "m2m_100": Family(Transformer, _m2m_config, bart_rules, _m2m_file, _BART_ALIASES, _POSITIONS),
    "mbart": Family(Transformer, _mbart_config, bart_rules, _mbart_file, _BART_ALIASES),
    "t5": Family(T5, _t5_config, t5_rules, _t5_file, _T5_ALIASES, _T5_UNUSED),
}
FAMILIES["mt5"] = FAMILIES["t5"]
