"""Our translators' weights as arrays of a Marian model, and back without any loss."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from keras_transformer.config import SINUSOIDS, TransformerConfig, require
from keras_transformer.hub.marian.layout import (
    EPSILON,
    LEGACY,
    NEW,
    TARGET,
    layout,
    stream_factor,
    token_factor,
)
from keras_transformer.hub.marian.marian_options import ACTIVATIONS, RECURRENT
from keras_transformer.hub.marian.npz import OPTIONS, SPECIAL
from keras_transformer.layers.embedding import sinusoids

_THEIR_ACTIVATIONS = {ours: theirs for theirs, ours in ACTIVATIONS.items()}
# Marian skips arrays whose names begin with "special:". The array `OURS` holds our config. An array
# named `REST` + path holds the difference in bits between our weight of this path and the value
# computed back from Marian's array.
OURS, REST = f"{SPECIAL}keras_transformer", f"{SPECIAL}keras_transformer/"
TOKENIZER = "keras_transformer"  # folder of our tokenizer beside the model
SHORTLIST = "shortlist.bin"  # ours beside the model, whether its search uses it or not
LENGTHS = 3  # Marian's max-length-factor: maximum target tokens per source token
NEVER = -1e9  # output bias of tokens that are never generated
_OUTPUT_BIAS = "decoder_ff_logit_out_b"

Arrays = dict[str, np.ndarray]


def kind_of(config: TransformerConfig, weights: Mapping[str, np.ndarray]) -> str:
    """Return the kind of Marian's layers that can hold a model: `LEGACY` if possible, else `NEW`.

    The legacy layers have Marian's sinusoids, and begin each translation with a vector of zeros.
    With pre-norm, they normalize keys and values of the decoder's self-attention only at the first
    position. So a pre-norm model needs the new layers, unless a recurrence replaces that attention.
    """
    is_legacy = not config.norm_first or config.decoder_recurrence is not None
    is_legacy &= (
        config.positions == "sinusoidal_tensor2tensor"
        and config.scale_embeddings
        and config.epsilon == EPSILON[LEGACY]
        and config.position_offset == 0
    )
    return LEGACY if is_legacy and not weights[TARGET][config.bos_id].any() else NEW


def options_of(config: TransformerConfig, kind: str = LEGACY) -> dict[str, Any]:
    """Return Marian's options for a model with our config.

    Raises:
        ValueError: If Marian cannot hold a model with this config; the message names the field.
    """
    _check(config)
    for name, plain in (("decoder_recurrence", None), ("norm_embeddings", False)):
        value = getattr(config, name)
        accepted = (
            f"{plain} for Marian, or positions must be 'sinusoidal_tensor2tensor', epsilon "
            f"{EPSILON[LEGACY]}, and the vector of BOS zero, as in models of Marian"
        )
        require(kind == LEGACY or value == plain, name, value, accepted)
    tied = {
        (True, True): "tied-embeddings-all",
        (False, True): "tied-embeddings",
        (True, False): "tied-embeddings-src",
    }.get((config.share_embeddings, config.tie_output))
    layers = {"transformer-postprocess": "dan"}
    if config.norm_first:
        layers = {"transformer-preprocess": "n", "transformer-postprocess": "da"}
        layers |= {"transformer-postprocess-top": "n"}
    if config.norm_embeddings:
        layers["transformer-postprocess-emb"] = "nd"
    if config.decoder_recurrence:
        layers |= {"transformer-decoder-autoreg": RECURRENT, "dec-cell": "ssru"}
    return {
        "type": kind,
        "dim-vocabs": [config.source_vocab_size, config.target_vocab_size],
        "dim-emb": config.d_model,
        "enc-depth": config.num_encoder_layers,
        "dec-depth": config.num_decoder_layers,
        "transformer-heads": config.num_heads,
        "transformer-dim-ffn": config.d_ff,
        "transformer-decoder-dim-ffn": config.decoder_d_ff or config.d_ff,
        "transformer-ffn-activation": _THEIR_ACTIVATIONS[config.activation],
        **layers,
        **({tied: True} if tied else {}),
    }


def arrays_of(
    config: TransformerConfig,
    weights: Mapping[str, np.ndarray],
    facts: Mapping[str, Any] | None = None,
) -> Arrays:
    """Return the arrays of Marian's model file for a model of ours.

    Args:
        config: The model's config.
        weights: Its weights in float32, by Keras path.
        facts: Further plain values to store in the file, for `facts_of`.

    Raises:
        ValueError: If Marian cannot hold the model; the message names the field of the config.
    """
    kind = kind_of(config, weights)
    options = options_of(config, kind) | {"version": "v1.12"}
    arrays: Arrays = {}
    for place in layout(config, kind):
        parts = place.rule.give(weights[place.rule.ours])
        arrays |= {name: part * np.float32(place.factor) for name, part in parts.items()}
    bias = arrays.setdefault(_OUTPUT_BIAS, np.zeros((1, config.target_vocab_size), "float32"))
    bias[:, list({config.pad_id, config.bos_id} - {*config.eos_ids})] = NEVER
    if kind == NEW:
        arrays |= _positions(config, weights)
        options |= {
            "transformer-train-position-embeddings": True,
            "max-length": LENGTHS * config.max_length,
        }
    arrays[OPTIONS] = _text(options)
    arrays[OURS] = _text({**(facts or {}), "config": config.to_dict()})
    for path, value in _weights_of(config, arrays).items():
        rest = weights[path].view("int32") - value.view("int32")
        if rest.any():
            is_small = np.abs(rest.astype("int64")).max() < 128
            arrays[f"{REST}{path}"] = rest.astype("int8") if is_small else rest
    return {name: np.ascontiguousarray(value) for name, value in arrays.items()}


def kernels(config: TransformerConfig, weights: Mapping[str, np.ndarray]) -> list[str]:
    """Return the names of Marian's arrays that are matrices of dense layers."""
    rules = [place.rule for place in layout(config, kind_of(config, weights))]
    return [name for x in rules if x.ours.endswith("/kernel") for name in x.names]


def restored(arrays: Mapping[str, np.ndarray]) -> tuple[TransformerConfig, Arrays]:
    """Return config and weights, bit for bit, of a model that `arrays_of` made from them.

    Args:
        arrays: All arrays of the file; `OURS` is one of them.
    """
    config = TransformerConfig.from_dict(facts_of(arrays)["config"])
    weights = _weights_of(config, arrays)
    for path, value in weights.items():
        if (rest := arrays.get(f"{REST}{path}")) is not None:
            weights[path] = (value.view("int32") + rest.astype("int32")).view("float32")
    return config, weights


def facts_of(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Return the `facts` given to `arrays_of`, and "config", the config's plain values."""
    return json.loads(bytes(arrays[OURS]).rstrip(b"\0"))


def _check(config):
    """Raise ValueError if Marian has no option for a field of a config."""
    what = type(config).__name__
    accepted = "TransformerConfig: Marian has only the Transformer of the paper"
    require(isinstance(config, TransformerConfig), "config", what, accepted)
    require(len(config.eos_ids) == 1, "eos_id", config.eos_id, "one id for Marian")
    accepted = f"one of {sorted(_THEIR_ACTIVATIONS)} for Marian"
    require(config.activation in _THEIR_ACTIVATIONS, "activation", config.activation, accepted)
    heads = config.num_decoder_heads or config.num_heads
    accepted = f"num_heads, {config.num_heads}, for Marian"
    require(heads == config.num_heads, "num_decoder_heads", heads, accepted)


def _table(stack):
    """Return the name of the table of positions of the encoder or the decoder."""
    return f"TransformerBatch{stack.title()}->{stack}->positionEmbedding->embeddings"


def _tables_of(config: TransformerConfig) -> dict[str, str]:
    """Return the paths of learned positions in our weights, by Marian's stack; {} without them."""
    if config.positions != "learned":
        return {}
    if config.share_embeddings:
        return {"encoder": "target_embedding/positions/embeddings"}
    names = {"encoder": "source", "decoder": "target"}
    return {stack: f"{side}_embedding/positions/embeddings" for stack, side in names.items()}


def _positions(config, weights):
    """Return Marian's tables of positions, with a row for each token of the longest translation.

    Marian's decoder begins with zeros where ours has the vector of BOS. So this vector is added to
    the decoder's first row.
    """
    rows, stream = LENGTHS * config.max_length, stream_factor(config, NEW)
    paths, tables = _tables_of(config), {}
    for stack in ("encoder", "decoder"):
        if config.positions in SINUSOIDS:
            offset = config.position_offset
            table = sinusoids(rows + offset, config.d_model, config.positions)[offset:]
        elif config.positions == "learned":
            table = weights[paths.get(stack) or paths["encoder"]][config.position_offset :]
            table = np.pad(table, [(0, max(0, rows - len(table))), (0, 0)], "edge")[:rows]
        else:
            table = np.zeros((rows, config.d_model), "float32")
        tables[_table(stack)] = table * np.float32(stream)
    bos = weights[TARGET][config.bos_id] * np.float32(token_factor(config, NEW))
    tables[_table("decoder")][0] += bos
    return tables


def _weights_of(config, arrays):
    """Return our weights from Marian's arrays, up to rounding."""
    kind = json.loads(bytes(arrays[OPTIONS]).rstrip(b"\0"))["type"]
    weights = {}
    for rule, factor in layout(config, kind):
        parts = {name: arrays[name] / np.float32(factor) for name in rule.names}
        weights[rule.ours] = rule.take(parts.__getitem__)
    for stack, path in _tables_of(config).items():
        table = arrays[_table(stack)][: config.max_length] / np.float32(stream_factor(config, NEW))
        unused = np.zeros((config.position_offset, config.d_model), "float32")
        weights[path] = np.concatenate([unused, table])
    return weights


def _text(value):
    return np.frombuffer(json.dumps(value).encode() + b"\0", "int8")
