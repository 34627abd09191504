"""Import KerasHub's backbones as models of this package."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from keras_transformer.checkpoints.backbones import BACKBONES, FIELDS, Backbone
from keras_transformer.checkpoints.families.family import only
from keras_transformer.layers.layer import unfilled


def from_backbone(
    backbone: Any, fields: Mapping[str, Any] | None = None, dtype: Any = None
) -> keras.Model:
    """Our model with the weights of a KerasHub backbone.

    ```python
    backbone = keras_hub.models.GPT2Backbone.from_preset("gpt2_base_en")
    model = from_backbone(backbone, dict(pad_id=50256, bos_id=50256, eos_id=50256))
    ```

    What a backbone does not know, its tokenizer or task does: special ids, how long texts of a
    LLaMA may be, the classes of a ViT, whose head is new: of zeros (Dosovitskiy et al. 2021,
    B.1.1). For a head on a BERT there is `with_head`.

    Args:
        backbone: a `GPT2Backbone`, `LlamaBackbone`, `Llama3Backbone`, `MistralBackbone`,
            `BertBackbone`, `RobertaBackbone`, `XLMRobertaBackbone`, `AlbertBackbone`,
            `ESMBackbone`, `ViTBackbone` or `WhisperBackbone`; stays as it is.
        fields: of our config, such as `{"eos_id": 2, "max_length": 4096}`; None: its defaults.
        dtype: Keras dtype policy, such as "bfloat16"; None takes the global one.

    Raises:
        ValueError: if the backbone is another, or has what ours has not; names it.
    """
    kind = type(backbone).__name__
    if kind not in BACKBONES:
        raise ValueError(f"backbone must be one of {sorted(BACKBONES)}, got a {kind}")
    family, theirs = BACKBONES[kind], backbone.get_config()
    weights = {weight.path: weight for weight in backbone.weights}
    try:
        only(theirs, **family.accepted)
        known = {field.name for field in dataclasses.fields(family.model.config_class)}
        named = {
            ours: theirs[name]
            for name, ours in FIELDS.items()
            if ours in known and theirs.get(name) is not None
        }
        named |= {**family.fields, **family.computed(theirs, weights), **(fields or {})}
        config = family.model.config_class(**named)
    except (TypeError, ValueError) as error:  # the first: a field that is missing, or unknown
        raise ValueError(f"the {kind} does not fit: {error}") from error
    with unfilled():
        model = family.model(config, dtype=dtype)
    for weight in model.weights:
        if not weight.path.startswith(("seed_generator", *family.new)):
            _assign(weight, _theirs(weight.path, family), weights, family.absent)
    if weights:
        raise ValueError(f"the {kind} has weights that ours has not: {', '.join(weights)}")
    return model


def _theirs(path: str, family: Backbone) -> list[str]:
    """Return the parts of their model that make one of our weights."""
    layer, _, name = path.rpartition("/")
    block = re.search(r"block_(\d+)", path)
    layer, whole = (re.sub(r"block_\d+", "block_*", x) for x in (layer, path))
    parts = family.layers.get(whole) or family.layers[layer]
    parts = [parts] if isinstance(parts, str) else parts
    number = str(int(block[1]) + family.first_block) if block else "*"
    ending = "" if whole in family.layers else f"/{name}"
    return [part.replace("*", number) + ending for part in parts]


def _assign(weight: Any, paths: list[str], weights: dict[str, Any], absent: tuple[str, ...]):
    """Their heads lie along axes of their own, which a matrix of ours has side by side."""
    *rows, width = weight.shape
    parts = {
        path: keras.ops.convert_to_numpy(weights.pop(path)).reshape(*rows, -1)
        for path in paths
        if path in weights
    }
    lacking = [path for path in paths if path not in parts]
    if strange := [path for path in lacking if not path.endswith(absent or "/")]:
        raise ValueError(f"the backbone lacks {', '.join(strange)}, of which {weight.path} is made")
    rest = width - sum(part.shape[-1] for part in parts.values())
    parts |= {path: np.zeros((*rows, rest // len(lacking)), "float32") for path in lacking}
    weight.assign(np.concatenate([parts[path] for path in paths], axis=-1))
