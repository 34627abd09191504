"""Adapters in the layout of PEFT: `adapter_config.json` and `adapter_model.safetensors`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from keras_transformer.config import is_number, require, require_whole
from keras_transformer.hub.hugging_face_checkpoint import rules_of
from keras_transformer.hub.tensors import check_finite
from keras_transformer.system.files import read_json, write_json
from keras_transformer.system.foreign_fields import FieldTable
from keras_transformer.weights.adapters import Adapter
from keras_transformer.weights.weight_files import read_weights, save_weights

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
_PREFIX, _A, _B = "base_model.model.", ".lora_A.weight", ".lora_B.weight"
# The names of the tensors tell which modules an adapter changes.
_MODULES = ("target_modules", "exclude_modules", "layers_to_transform", "layers_pattern")
# Initializations of the two factors that leave the base unchanged. "pissa", "olora", "corda",
# "loftq" and "lora_ga" change it, so their adapters do not fit the base that they name.
_BEGINNINGS = (True, False, None, "gaussian", "eva", "orthogonal", "mica")
TABLE = FieldTable(  # fields of PEFT 0.21
    read=("r", "lora_alpha", "use_rslora"),
    harmless=(
        *_MODULES,
        *("task_type", "auto_mapping", "peft_version", "base_model_name_or_path", "revision"),
        *("inference_mode", "lora_dropout", "runtime_config", "megatron_core", "qalora_group_size"),
        *("loftq_config", "eva_config", "corda_config", "lora_ga_config"),  # of initial values
        "fan_in_fan_out",  # the layouts of the base's layers decide
    ),
    refused={
        "peft_type": ("LORA",),
        "init_lora_weights": _BEGINNINGS,
        "bias": ("none",),
        "rank_pattern": ({}, None),
        "alpha_pattern": ({}, None),
    }
    | dict.fromkeys(("use_dora", "lora_bias", "use_qalora", "ensure_weight_tying"), (False, None))
    | dict.fromkeys(
        ("modules_to_save", "trainable_token_indices", "target_parameters"), (None, [], {})
    )
    | dict.fromkeys(
        ("alora_invocation_tokens", "arrow_config", "kasa_config", "layer_replication"), (None,)
    )
    | dict.fromkeys(
        ("megatron_config", "monteclora_config", "use_bdlora", "velora_config"), (None,)
    ),
)
_WRITTEN = ("peft_type", "bias", "use_dora", "modules_to_save", "rank_pattern", "alpha_pattern")


def read_peft(folder: str | os.PathLike, model: Any) -> Adapter:
    """Read an adapter that PEFT wrote for the checkpoint that a model was imported from.

    If our model fuses projections, their products become one, whose rank is the sum of the ranks.

    Args:
        folder: Folder with `adapter_config.json` and `adapter_model.safetensors`.
        model: The base, of a family that `hugging_face_checkpoint.write_model` can write.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If a file is broken, the adapter is not plain LoRA, or it does not fit the
            model.
    """
    path = Path(folder, CONFIG)
    theirs = read_json(path)
    require(isinstance(theirs, dict), f"the content of {path}", theirs, "an object")
    TABLE.check(theirs, path)
    rank, alpha = theirs.get("r"), theirs.get("lora_alpha")
    require_whole(f"r in {path}", rank, 1)
    require(is_number(alpha), f"lora_alpha in {path}", alpha, "a number")
    scale = alpha / (rank**0.5 if theirs.get("use_rslora") else rank)

    arrays = read_weights(Path(folder, WEIGHTS), foreign=True)
    arrays = {
        name.removeprefix(_PREFIX): check_finite(x.astype("float32"), name, Path(folder, WEIGHTS))
        for name, x in arrays.items()
    }
    shapes = {weight.path: tuple(weight.shape) for weight in model.weights}
    products, used = {}, set()
    for rule in _rules(model.config):
        pairs = {name: _pair(arrays, name.removesuffix(".weight")) for name in rule.names}
        pairs = {name: pair for name, pair in pairs.items() if pair is not None}
        if pairs:
            products[rule.ours] = _joined(rule, pairs, shapes[rule.ours], scale)
            used |= {name.removesuffix(".weight") + x for name in pairs for x in (_A, _B)}
    if strange := sorted(arrays.keys() - used):
        raise ValueError(f"{folder} changes {strange[0]}, which is no dense layer of the model")
    require(len(products) > 0, f"the products in {folder}", 0, "one or more")
    return Adapter(products, {}, None, rank, rank)


def _rules(config):
    """Return the rules without those of weights that are parts of a tensor in the checkpoint."""
    return [rule for rule in rules_of(config) if rule.share == (0, 1)]


def _pair(arrays, module):
    pair = arrays.get(module + _A), arrays.get(module + _B)
    return None if any(x is None for x in pair) else pair


def _joined(rule, pairs, shape, scale):
    """Return A (D, R) and B (R, F) of one of our kernels, with all projections that it fuses.

    In B, each projection has its own rows and columns; the rest is zero.
    """
    empty = rule.give(np.broadcast_to(np.float32(0), shape))  # zeros, for the shapes
    turned = rule.layout == "transposed"
    total = sum(len(a) for a, _ in pairs.values())
    firsts, parts, start = [], {}, 0
    for name, weight in empty.items():
        outputs, inputs = weight.shape if turned else weight.shape[::-1]
        part = np.zeros((outputs, total), "float32")
        if name in pairs:
            a, b = pairs[name]
            accepted = f"{(len(a), inputs)} and {(outputs, len(a))}"
            has_shapes = a.shape == (len(a), inputs) and b.shape == (outputs, len(a))
            require(has_shapes, f"the shapes of {name}", (a.shape, b.shape), accepted)
            part[:, start : start + len(a)] = b
            firsts.append(scale * a)
            start += len(a)
        parts[name] = part if turned else part.T
    return np.concatenate(firsts).T, rule.take(parts.__getitem__)


def write_peft(
    folder: str | os.PathLike, adapter: Adapter, config: Any, base: str | os.PathLike = ""
) -> None:
    """Write an adapter for the checkpoint that `write_model` makes of its base.

    `write_model` is in `hub.hugging_face_checkpoint`.

    Args:
        folder: Folder to write `adapter_config.json` and `adapter_model.safetensors` to.
        adapter: The adapter, from `Adapter.of` or `Adapter.read`.
        config: Config of its base.
        base: Name or folder of the base's checkpoint, from which PEFT loads it; "": not written.

    Raises:
        ValueError: If weights were trained whole, the family has no such checkpoints, or a changed
            weight is only a part of a tensor in them.
    """
    whole = sorted(adapter.whole)
    require(not whole, "weights trained whole", whole, "none: only products are written")
    arrays: dict[str, np.ndarray] = {}
    modules, layouts = set(), set()
    rules = {rule.ours: rule for rule in _rules(config)}
    for path, (a_DR, b_RF) in adapter.products.items():
        require(path in rules, "the adapter", path, "one of weights that are tensors of their own")
        rule = rules[path]
        for name, part in rule.give(b_RF).items():
            module = name.removesuffix(".weight")
            b = part if rule.layout == "transposed" else part.T
            arrays |= {f"{_PREFIX}{module}{_A}": a_DR.T, f"{_PREFIX}{module}{_B}": b}
            modules.add(module.rpartition(".")[2])
            layouts.add(rule.layout)
    Path(folder).mkdir(parents=True, exist_ok=True)
    save_weights(Path(folder, WEIGHTS), arrays)
    facts = {name: TABLE.refused[name][0] for name in _WRITTEN}
    facts |= dict(r=adapter.rank, lora_alpha=adapter.alpha, lora_dropout=0.0)
    facts |= dict(target_modules=sorted(modules), fan_in_fan_out="transposed" not in layouts)
    write_json(Path(folder, CONFIG), facts | {"base_model_name_or_path": os.fspath(base)})
