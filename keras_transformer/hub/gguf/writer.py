"""Writer of GGUF files, which llama.cpp runs: a language model with its tokenizer."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from keras_transformer.config import require
from keras_transformer.hub.families import FAMILIES
from keras_transformer.hub.gguf.architectures import ARCHITECTURES
from keras_transformer.hub.gguf.container import GGUFFile, library
from keras_transformer.hub.gguf.metadata import SAMPLING, architecture_of, config_of
from keras_transformer.hub.gguf.rope_scaling import write_scaling
from keras_transformer.hub.gguf.token_writer import token_facts
from keras_transformer.hub.hugging_face_checkpoint import parts_of
from keras_transformer.search import Generation
from keras_transformer.text.text_tokenizer import TextTokenizer

QUANTIZATIONS = ("F16", "Q8_0", "F32")
WRITTEN = ("llama", "smollm3", "qwen2", "qwen3", "gpt2")  # architectures with byte-level tokenizers
_FILE_TYPES = {"F32": 0, "F16": 1, "Q8_0": 7}  # of llama.cpp
_ALWAYS_F32 = ("position_embd.weight",)
_MOST_F16 = 65504.0
_BLOCK = 32  # numbers of Q8_0 that share a scale


def write_gguf(
    path: str | os.PathLike,
    config: Any,
    weights: Mapping[str, np.ndarray],
    tokenizer: TextTokenizer,
    template: str | None = None,
    search: Generation | None = None,
    name: str = "",
    quantization: str = "F16",
) -> None:
    """Write a GGUF file.

    Args:
        path: The file.
        config: The model's config.
        weights: Its weights in float32, by Keras path.
        tokenizer: Its tokenizer.
        template: Source of its chat template; None: it has none.
        search: Its default search, of which temperature, `top_k`, `top_p`, `min_p` and the
            repetition penalty are written, without a temperature only the penalty; None: no search
            is written.
        name: Its name.
        quantization: Type of the matrices, one of `QUANTIZATIONS`. With Q8_0, a matrix whose row
            length is no multiple of 32 has F16. Vectors and learned positions have F32.

    Raises:
        ImportError: If the package `gguf` is missing.
        ValueError: If `quantization` is unknown, or a GGUF file cannot hold the model or its
            tokenizer; gives the reason.
    """
    require(quantization in QUANTIZATIONS, "quantization", quantization, f"one of {QUANTIZATIONS}")
    theirs, tensors = parts_of(config, weights)
    kinds = {ARCHITECTURES[name].kind: name for name in WRITTEN}
    kind = theirs["model_type"]
    require(kind in kinds, "the family of the model", kind, f"one of {[*kinds]} in a GGUF file")
    architecture = ARCHITECTURES[kinds[kind]]
    heads, facts, factors = {}, {}, {}
    if architecture.rotates:
        facts, factors, heads = _of_rotary(theirs)
    facts |= {key: theirs[field] for key, field in architecture.sizes.items()}
    facts |= dict(vocab_size=theirs["vocab_size"])
    facts = {f"{kinds[kind]}.{key}": value for key, value in facts.items()}
    facts |= {"general.type": "model", "general.name": name}
    facts |= {"general.file_type": _FILE_TYPES[quantization]}
    facts |= {"general.quantization_version": 2} | _search_facts(search)
    facts |= token_facts(tokenizer, config)
    if template is not None:
        facts["tokenizer.chat_template"] = template
    writer = library().GGUFWriter(os.fspath(path), kinds[kind])
    for key, value in facts.items():
        _add(writer, key, value)
    for theirs_name, value in tensors.items():
        stored = architecture.stored_name(theirs_name)
        value = architecture.stored_value(stored, value, heads)
        _add_tensor(writer, stored, value, quantization)
    for stored, value in factors.items():
        _add_tensor(writer, stored, value, quantization)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    _check(path, config)


def _of_rotary(theirs):
    """Return keys of heads and positions, tensors of rotary factors, and head counts by layer."""
    head_dim, count = theirs["head_dim"], theirs["num_key_value_heads"]
    keys, factors = write_scaling(theirs, head_dim)
    keys |= {
        "attention.head_count_kv": count,
        "attention.key_length": head_dim,
        "attention.value_length": head_dim,
        "rope.dimension_count": head_dim,
        "rope.freq_base": float(theirs["rope_parameters"]["rope_theta"]),
    }
    return keys, factors, {"attn_q": theirs["num_attention_heads"], "attn_k": count}


def _search_facts(search):
    """Return the keys of a search; if it does not sample, only that of the repetition penalty.

    Values equal to our defaults are left out, except the temperature.
    """
    if search is None:
        return {}
    names = SAMPLING if search.temperature else {"penalty_repeat": "repetition_penalty"}
    values = {key: getattr(search, option) for key, option in names.items()}
    usual = Generation()
    return {
        f"general.sampling.{key}": value if key == "top_k" else float(value)
        for key, value in values.items()
        if value is not None and (key == "temp" or value != getattr(usual, names[key]))
    }


def _add(writer, key, value):
    """Add a key to the metadata, with the type that llama.cpp expects."""
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    else:
        writer.add_array(key, value)


def _add_tensor(writer, name, value, quantization):
    """Add a tensor in the type that `write_gguf` documents for a quantization."""
    value = np.ascontiguousarray(value, "float32")
    if value.ndim < 2 or name in _ALWAYS_F32:
        quantization = "F32"
    elif quantization == "Q8_0" and value.shape[-1] % _BLOCK:
        quantization = "F16"
    if quantization == "F16":
        largest = float(np.abs(value).max(initial=0.0))
        require(largest <= _MOST_F16, f"numbers of {name}", largest, f"at most {_MOST_F16} for F16")
    kind = library().GGMLQuantizationType[quantization]
    writer.add_tensor(name, library().quantize(value, kind), raw_dtype=kind)


def _check(path, config):
    """Raise ValueError if the model of a written file would be read with another config."""
    file = GGUFFile(path)
    architecture = architecture_of(file)
    family = FAMILIES[architecture.kind]
    names = map(architecture.their_name, file.tensors)
    again = family.read(config_of(file, architecture), {*names}).to_dict()
    others = [
        name
        for name, value in config.to_dict().items()
        if name not in family.free and not _same(value, again[name])
    ]
    if others:
        told = ", ".join(f"{name}={again[name]!r:.100}" for name in others)
        raise ValueError(f"a GGUF file cannot hold the model: it would be read with {told}")


def _same(value, other):
    """Return whether two values of a config are equal; GGUF has numbers in float32."""
    if isinstance(value, float) and isinstance(other, float):
        return bool(np.float32(value) == np.float32(other))
    if isinstance(value, dict) and isinstance(other, dict) and value.keys() == other.keys():
        return all(_same(value[name], other[name]) for name in value)
    if isinstance(value, list | tuple) and isinstance(other, list | tuple):
        return len(value) == len(other) and all(map(_same, value, other))
    return bool(value == other)
