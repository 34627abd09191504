"""Map of T5Gemma checkpoints: two stacks of Gemma 2's blocks, each with its own settings."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from keras_transformer.config import require
from keras_transformer.hub.families import general_fields
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
    complete,
    exactly,
    rate,
    read_same,
    write_same,
)
from keras_transformer.hub.families.gemma_fields import FIELDS
from keras_transformer.hub.families.general_fields import ENCODER_DECODER
from keras_transformer.hub.families.rotary_fields import ROTARY, read_rotary, rotary_fields
from keras_transformer.hub.families.window_fields import FULL, SLIDING, read_windows
from keras_transformer.models import T5Gemma, T5GemmaConfig
from keras_transformer.system.foreign_fields import FieldTable

_IDS = (*TOKENS, "decoder_start_token_id")
_STACK = Field("an object", lambda x: isinstance(x, Mapping))
_OUTSIDE = ("is_encoder_decoder", "tie_word_embeddings", "use_bidirectional_attention")
_FIELDS = {name: field for name, field in FIELDS["gemma2"].items() if name not in _OUTSIDE}
_READ = {*_FIELDS, *ROTARY}
_TABLE = FieldTable(_READ, {*general_fields.KNOWN, "dropout_rate", "tie_word_embeddings"} - _READ)
# Our field -> Hugging Face's, with the same value: fields that are equal in both stacks, ...
_SHARED = dict(
    vocab_size="vocab_size",
    head_dim="head_dim",
    attention_cap="attn_logit_softcapping",
    epsilon="rms_norm_eps",
)
# ... those of the decoder, ...
_SIZES = dict(
    d_model="hidden_size",
    d_ff="intermediate_size",
    num_heads="num_attention_heads",
    num_kv_heads="num_key_value_heads",
)
_DECODER = _SIZES | dict(
    num_decoder_layers="num_hidden_layers", logit_cap="final_logit_softcapping"
)
# ... and those of the encoder.
_ENCODER = dict(
    encoder_d_model="hidden_size",
    encoder_d_ff="intermediate_size",
    num_encoder_heads="num_attention_heads",
    num_encoder_kv_heads="num_key_value_heads",
    num_encoder_layers="num_hidden_layers",
)
_WINDOW = 4096  # `transformers` (5.23) needs a number even if no layer has a window


def _stack(theirs: Mapping[str, Any], side: str) -> dict[str, Any]:
    """Return the checked fields of the encoder or the decoder, with defaults filled in.

    Also their window, the layers that have it, and their rotary base, as in our config.
    """
    stack = dict(theirs[side])
    _TABLE.check(stack, f"{side} of config.json")
    try:
        complete(stack, general_fields.FIELDS)
        stack = complete(stack, _FIELDS)
        theta, scaling = read_rotary(stack)
        name = "rope_scaling" if stack["rope_scaling"] else "rope_parameters"
        require(scaling is None, name, stack[name], "without a scaling")
        usual = [i % 2 == 0 for i in range(stack["num_hidden_layers"])]
        window, layers = read_windows(stack, usual)
    except KeyError as error:
        raise ValueError(f"{side} lacks {error.args[0]!r}") from error
    except ValueError as error:
        raise ValueError(f"{side}: {error}") from error
    return stack | dict(window=window, window_layers=layers, theta=theta)


def _config(theirs, names):
    encoder, decoder = _stack(theirs, "encoder"), _stack(theirs, "decoder")
    for name in (*_SHARED.values(), "query_pre_attn_scalar", "theta"):
        require(encoder[name] == decoder[name], f"{name} of encoder", encoder[name], decoder[name])
    ids = decoder | {name: theirs[name] for name in _IDS if name in theirs}
    scalar, window = decoder["query_pre_attn_scalar"], encoder["window"]
    return T5GemmaConfig(
        dropout=theirs["dropout_rate"],
        theta=decoder["theta"],
        window=decoder["window"],
        window_layers=decoder["window_layers"],
        # `sliding_window` tokens are visible on each side.
        encoder_window=None if window is None else window + 1,
        encoder_window_layers=encoder["window_layers"],
        query_scale=None if scalar == decoder["head_dim"] else scalar**-0.5,
        max_length=min(x["max_position_embeddings"] for x in (encoder, decoder)),
        pad_id=token_id(ids, "pad_token_id"),
        bos_id=token_id(ids, "decoder_start_token_id", "bos_token_id"),
        eos_id=token_ids(ids, "eos_token_id"),
        **read_same(decoder, _SHARED | _DECODER),
        **read_same(encoder, _ENCODER),
    )


def _config_file(config):
    scalar = round((config.query_scale or config.head_dim**-0.5) ** -2)
    shared = write_same(config, _SHARED | TOKEN_NAMES) | dict(
        hidden_activation="gelu_pytorch_tanh",
        query_pre_attn_scalar=scalar,
        final_logit_softcapping=config.logit_cap,
        **rotary_fields(config.theta, None, config.max_length),
    )
    layers, window = config.num_encoder_layers, config.encoder_window
    window = window and max(1, window - 1)
    of_encoder = _windows(layers, window, config.encoder_window_layers)
    of_decoder = _windows(config.num_decoder_layers, config.window, config.window_layers)
    sizes = {_SIZES[name]: value for name, value in config.encoder_sizes.items()}
    return write_same(config, TOKEN_NAMES) | dict(
        architectures=["T5GemmaForConditionalGeneration"],
        is_encoder_decoder=True,
        vocab_size=config.vocab_size,
        dropout_rate=config.dropout,
        decoder_start_token_id=config.bos_id,
        tie_word_embeddings=True,
        encoder=shared | sizes | of_encoder,
        decoder=shared | write_same(config, _DECODER) | of_decoder,
    )


def _windows(count, window, layers):
    """Return the fields of a stack that `read_windows` reads, and its number of layers."""
    has_window = [window and (layers is None or i in layers) for i in range(count)]
    types = [SLIDING if has else FULL for has in has_window]
    return dict(num_hidden_layers=count, sliding_window=window or _WINDOW, layer_types=types)


def _rules(config: T5GemmaConfig) -> list[Rule]:
    """Return the rules of all weights of a T5Gemma."""
    encoder = config.encoder_sizes
    sides = {
        "encoder": (config.num_encoder_layers, encoder["num_heads"], encoder["num_kv_heads"]),
        "decoder": (config.num_decoder_layers, config.num_heads, config.num_kv_heads),
    }
    norm, rules = functools.partial(scale, layout="plus_one"), []
    for side, (layers, heads, kv_heads) in sides.items():
        parts = {"attention" if side == "encoder" else "self_attention": "self_attn"}
        parts |= {"feed_forward": "feedforward"}
        parts |= {"cross_attention": "cross_attn"} if side == "decoder" else {}
        for i in range(layers):
            ours, theirs = f"{side}/block_{i}", f"model.{side}.layers.{i}"
            for part, name in parts.items():
                rules += norm(f"{ours}/{part}_norm/norm", f"{theirs}.pre_{name}_layernorm")
                rules += norm(f"{ours}/{part}_norm/output_norm", f"{theirs}.post_{name}_layernorm")
                if part == "feed_forward":
                    for layer, x in (("hidden", "gate"), ("gate", "up"), ("output", "down")):
                        rules += dense(
                            f"{ours}/{part}/{layer}", f"{theirs}.mlp.{x}_proj", bias=False
                        )
                    continue
                rules += dense(f"{ours}/{part}/output", f"{theirs}.{name}.o_proj", bias=False)
                query, key, value = (f"{theirs}.{name}.{x}_proj" for x in "qkv")
                if part == "cross_attention":
                    rules += dense(f"{ours}/{part}/query", query, bias=False)
                    fused, of_heads = f"{ours}/{part}/key_value", (kv_heads, kv_heads)
                    rules += dense(fused, key, value, bias=False, heads=of_heads)
                else:
                    fused, of_all = f"{ours}/{part}/query_key_value", (heads, kv_heads, kv_heads)
                    rules += dense(fused, query, key, value, bias=False, heads=of_all)
        rules += norm(f"{side}/norm", f"model.{side}.norm")
        ours = "source_embedding" if side == "encoder" else "target_embedding"
        rules += table(f"{ours}/tokens", f"model.{side}.embed_tokens")
    return rules


FAMILIES = {
    "t5gemma": Family(
        T5Gemma,
        _config,
        _rules,
        _config_file,
        aliases={"lm_head.out_proj.weight": ("model.decoder.embed_tokens.weight",)},
        prefix="model.",
        fields=ENCODER_DECODER
        | dict(
            encoder=_STACK,
            decoder=_STACK,
            dropout_rate=rate(0.0),
            tie_word_embeddings=exactly(True),
        ),
        also_read=_IDS,
        harmless=("vocab_size", "classifier_dropout_rate"),  # the decoder has a `vocab_size`
        names=_SHARED
        | _DECODER
        | _ENCODER
        | TOKEN_NAMES
        | dict(query_scale="query_pre_attn_scalar", window="sliding_window"),
        architectures=("T5GemmaForConditionalGeneration", "T5GemmaModel"),
    )
}
