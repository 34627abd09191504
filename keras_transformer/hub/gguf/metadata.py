"""The metadata of a GGUF file as a `config.json` and a `generation_config.json`.

Each key is read, harmless, or refused if its value changes results. Keys that `gguf` knows and
that are not listed here are refused: they belong to parts that our families do not have.
"""

from __future__ import annotations

from typing import Any

from keras_transformer.config import require
from keras_transformer.hub.families.fields import MOST_LAYERS, is_size
from keras_transformer.hub.gguf.architectures import ARCHITECTURES, Architecture
from keras_transformer.hub.gguf.container import GGUFFile, library
from keras_transformer.hub.gguf.rope_scaling import ROTARY, read_scaling
from keras_transformer.system.foreign_fields import FieldTable

# Keys of the architecture. The vocabulary size is that of the embedding table. Old versions of
# llama.cpp wrote a layout of tensors, which is always the same.
_HARMLESS = ("vocab_size", "tensor_data_layout", "rope.scaling.finetuned")
_REFUSED: dict[str, tuple[Any, ...]] = {
    "attention.causal": (True,),
    "attention.clamp_kqv": (0.0,),
    "attention.max_alibi_bias": (0.0,),
    "attention.scale": (0.0,),
    "attention.sliding_window": (0,),
    "embedding_scale": (1.0, 0.0),
    "expert_count": (0,),
    "expert_used_count": (0,),
    "logit_scale": (0.0, 1.0),
    "pooling_type": (0,),
    "residual_scale": (0.0, 1.0),
    "rope.scale_linear": (1.0,),
    "rope.scaling.yarn_ext_factor": (1.0,),
    "rope.scaling.yarn_attn_factor": (1.0,),
    "rope.scaling.yarn_log_multiplier": (0.0,),
    "use_parallel_residual": (False,),
}
_SEARCH = "general.sampling."
SAMPLING = {  # keys of a search, and fields of `generation_config.json`
    "temp": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
    "penalty_repeat": "repetition_penalty",
}
_GENERAL = {
    f"{_SEARCH}xtc_probability": (0.0,),
    f"{_SEARCH}mirostat": (0,),
    f"{_SEARCH}sequence": (None,),
    "general.type": ("model",),
    "general.quantization_version": (2,),
}
_ENDS = (
    "eos_token_id",
    "eot_token_id",
    "eom_token_id",
)  # tokens that end a text, a turn, a message


def architecture_of(file: GGUFFile) -> Architecture:
    """Return the architecture of a file, after checking the keys of its metadata.

    Raises:
        ValueError: If it is not supported, a key or the token table is missing, or a key has a
            value that changes results and is not supported.
    """
    name = file.facts.get("general.architecture")
    is_known = isinstance(name, str) and name in ARCHITECTURES
    require(is_known, f"general.architecture in {file.path}", name, f"one of {[*ARCHITECTURES]}")
    architecture = ARCHITECTURES[str(name)]
    for key in architecture.sizes:
        if f"{name}.{key}" not in file.facts:
            raise ValueError(f"{file.path} lacks {name}.{key}")
    if "token_embd.weight" not in file.tensors:
        raise ValueError(f"{file.path} lacks token_embd.weight")
    table_of(str(name)).check(_checked(file.facts), file.path)
    return architecture


def table_of(name: str) -> FieldTable:
    """Return the table of the keys of an architecture and of those that all files may have."""
    architecture = ARCHITECTURES[name]
    read = {*architecture.sizes, *architecture.also_read}
    read |= {*ROTARY} if architecture.rotates else set()
    refused = {x: (None,) for x in known_keys() if x not in read and x not in _HARMLESS} | _REFUSED
    return FieldTable(
        read={f"{name}.{x}" for x in read} | {"general.architecture", "general.alignment"},
        harmless={f"{name}.{x}" for x in _HARMLESS},
        refused={f"{name}.{x}": y for x, y in refused.items() if x not in read} | _GENERAL,
    )


def known_keys() -> set[str]:
    """Return the keys of architectures that `gguf` knows, without the name of the architecture."""
    groups, keys = [library().Keys], set()
    for group in groups:
        entries = [value for name, value in vars(group).items() if not name.startswith("_")]
        groups += [value for value in entries if isinstance(value, type)]
        keys |= {value for value in entries if isinstance(value, str)}
    return {key.removeprefix("{arch}.") for key in keys if key.startswith("{arch}.")}


def _checked(facts):
    """Return the metadata without the keys that describe the file, or that other code checks."""
    sampling = {f"{_SEARCH}{name}" for name in SAMPLING}
    return {
        name: value
        for name, value in facts.items()
        if name in _GENERAL
        or not name.startswith(("general.", "tokenizer.", "split.", "quantize.", "imatrix."))
        or (name.startswith(_SEARCH) and name not in sampling)
    }


def config_of(file: GGUFFile, architecture: Architecture) -> dict[str, Any]:
    """Return the `config.json` of a file.

    Raises:
        ValueError: If a value is not supported; names the key.
    """
    facts, names = _of_architecture(file), frozenset(file.tensors)
    for key in architecture.sizes:
        whole = is_size(facts[key]) or key.endswith("epsilon")
        require(whole, f"{key} in {file.path}", facts[key], "a whole number of at least 1")
    layers = facts["block_count"]
    accepted = f"at most {MOST_LAYERS}"
    require(layers <= MOST_LAYERS, f"block_count in {file.path}", layers, accepted)
    size = file.tensors["token_embd.weight"].shape[0]
    config = {field: facts[key] for key, field in architecture.sizes.items()}
    config |= dict(
        model_type=architecture.kind,
        vocab_size=size,
        tie_word_embeddings="output.weight" not in names,
        **architecture.fields(facts, names),
        **token_ids_of(file),
    )
    if architecture.rotates:
        config["rope_theta"] = facts.get("rope.freq_base", 10000.0)
        config |= read_scaling(file, facts, config)
    return config


def _of_architecture(file):
    """Return the metadata of the architecture, by keys without its name.

    A list with the same number for each block becomes this number, except the pattern of windows.

    Raises:
        ValueError: If the numbers of another list differ.
    """
    prefix = f"{file.facts['general.architecture']}."
    facts = {x.removeprefix(prefix): y for x, y in file.facts.items() if x.startswith(prefix)}
    for key, value in facts.items():
        if isinstance(value, list) and value and key != "attention.sliding_window_pattern":
            accepted = "the same number for all blocks"
            require(len({*value}) == 1, f"{prefix}{key} in {file.path}", value, accepted)
            facts[key] = value[0]
    return facts


def token_ids_of(file: GGUFFile) -> dict[str, Any]:
    """Return the fields of special tokens; `eos_token_id` is a list if several end a text."""
    ids = {x: file.facts.get(f"tokenizer.ggml.{x}") for x in ("bos_token_id", *_ENDS)}
    ends = list(dict.fromkeys(ids[x] for x in _ENDS if ids[x] is not None))
    return dict(
        bos_token_id=ids["bos_token_id"],
        eos_token_id=ends[0] if len(ends) == 1 else ends or None,
        pad_token_id=file.facts.get("tokenizer.ggml.padding_token_id"),
    )


def generation_of(file: GGUFFile) -> dict[str, Any]:
    """Return the `generation_config.json` of a file: its end tokens, and its authors' search.

    Without a temperature above 0, only a repetition penalty remains of the search.
    """
    values = {name: file.facts.get(f"{_SEARCH}{key}") for key, name in SAMPLING.items()}
    search = {name: value for name, value in values.items() if value is not None}
    if search.get("temperature"):
        search["do_sample"] = True
    else:
        search = {x: y for x, y in search.items() if x == "repetition_penalty"}
    return {"eos_token_id": token_ids_of(file)["eos_token_id"]} | search
