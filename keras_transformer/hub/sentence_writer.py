"""The files of a folder of sentence-transformers besides the encoder and its tokenizer, written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_transformer.hub.sentence_fields import ACTIVATIONS, DENSE_WEIGHTS, LEGACY_POOLINGS
from keras_transformer.hub.sentence_transformers import MODULES, SETTINGS, TRANSFORMER
from keras_transformer.hub.tensors import WEIGHTS
from keras_transformer.models.sentence import Embedding, Step
from keras_transformer.system.files import write_json
from keras_transformer.weights.weight_files import save_weights

_KINDS = {"dense": "Dense", "layer_norm": "LayerNorm", "normalize": "Normalize"}
_THEIRS = {ours: theirs for theirs, ours in ACTIVATIONS.items()}


def write_sentence_model(
    folder: Path, modes: Sequence[str], embedding: Embedding, d_model: int, max_length: int
) -> None:
    """Write the modules after the encoder, and the settings, so that any version can read them.

    Vectors that are compared by their cosine, and not truncated, end with a Normalize module.

    Args:
        folder: Folder of the encoder; it must exist.
        modes: Modes of the pooling, see `models.sentence.pool`.
        embedding: The modules after the pooling, and the settings.
        d_model: Width of the encoder.
        max_length: Maximum tokens of a text.
    """
    modules = ["Transformer", "Pooling"]
    _write(folder / "1_Pooling", _pooling(modes, d_model, embedding.include_prompt), {})
    steps, width = [*embedding.steps], d_model * len(modes)
    is_scaled = bool(steps) and steps[-1].kind == "normalize"
    if embedding.similarity == "cosine" and embedding.dimension is None and not is_scaled:
        steps.append(Step("normalize"))
    for step in steps:
        place = folder / f"{len(modules)}_{_KINDS[step.kind]}"
        _write(place, _facts(step, width), _tensors(step))
        modules.append(_KINDS[step.kind])
        width = step.width(width)
    write_json(folder / MODULES, [_module(i, kind) for i, kind in enumerate(modules)])
    write_json(folder / TRANSFORMER, {"max_seq_length": max_length, "do_lower_case": False})
    settings: dict[str, Any] = {
        "prompts": dict(embedding.prompts),
        "default_prompt_name": embedding.default_prompt_name,
        "similarity_fn_name": embedding.similarity,
    }
    if embedding.dimension is not None:
        settings["truncate_dim"] = embedding.dimension
    write_json(folder / SETTINGS, settings)


def _module(index: int, kind: str) -> dict[str, Any]:
    """Return the entry of a module in `modules.json`."""
    path = f"{index}_{kind}" if index else ""
    # Version 6 renamed the modules and still reads the old names.
    return dict(idx=index, name=str(index), path=path, type=f"sentence_transformers.models.{kind}")


def _pooling(modes, d_model, include_prompt):
    """Return the config of a pooling: with flags, if they give the modes in their order."""
    flags = {name: mode in modes for name, mode in LEGACY_POOLINGS.items()}
    in_order = [mode for mode in LEGACY_POOLINGS.values() if mode in modes]
    if [*modes] == in_order:
        facts = {"word_embedding_dimension": d_model} | flags
    else:  # version 6 or later
        facts = {"embedding_dimension": d_model, "pooling_mode": [*modes]}
    return facts | {"include_prompt": include_prompt}


def _facts(step: Step, width: int) -> dict[str, Any]:
    """Return the config of a module for input vectors of this width."""
    if step.kind == "normalize":
        return {}
    if step.kind == "layer_norm":
        return {"dimension": width}
    facts: dict[str, Any] = dict(in_features=width, out_features=step.width(width))
    facts["bias"] = "bias" in step.weights
    facts["activation_function"] = _THEIRS[step.activation]
    return facts | ({"use_residual": True} if step.residual else {})


def _tensors(step: Step) -> dict[str, np.ndarray]:
    """Return the tensors of a module by their names; empty without weights."""
    if step.kind == "layer_norm":
        return {"norm.weight": step.weights["gamma"], "norm.bias": step.weights["beta"]}
    weights = step.weights
    return {name: weights[ours].T for name, ours in DENSE_WEIGHTS.items() if ours in weights}


def _write(place: Path, facts: dict[str, Any], tensors: Mapping[str, np.ndarray]) -> None:
    place.mkdir()
    write_json(place / "config.json", facts)
    if tensors:
        save_weights(place / WEIGHTS, tensors)
