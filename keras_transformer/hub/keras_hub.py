"""Import KerasHub's backbones as models of this package."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from keras_transformer.hub.backbones import BACKBONES, FIELDS, Backbone
from keras_transformer.hub.families.family import only
from keras_transformer.layers.head_groups import fuse
from keras_transformer.layers.layer import skip_init


def from_backbone(
    backbone: Any, fields: Mapping[str, Any] | None = None, dtype: Any = None
) -> keras.Model:
    """Return a model of this package with the weights of a KerasHub backbone.

    ```python
    backbone = keras_hub.models.GPT2Backbone.from_preset("gpt2_base_en")
    model = from_backbone(backbone, dict(pad_id=50256, bos_id=50256, eos_id=50256))
    ```

    `fields` supplies what a backbone does not store: special ids, the maximum length of a LLaMA,
    the classes of a ViT. The head of a ViT is new, with zero weights (Dosovitskiy et al. 2021,
    B.1.1). To put a head on a BERT, use `with_head`.

    Args:
        backbone: A `GPT2Backbone`, `LlamaBackbone`, `Llama3Backbone`, `MistralBackbone`,
            `BertBackbone`, `RobertaBackbone`, `XLMRobertaBackbone`, `AlbertBackbone`,
            `ESMBackbone`, `ViTBackbone` or `WhisperBackbone`; it is not modified.
        fields: Fields of our config to set, such as `{"eos_id": 2, "max_length": 4096}`; others
            come from the backbone or have their defaults.
        dtype: Keras dtype policy such as "bfloat16"; None: the global one.

    Raises:
        ValueError: If the backbone's class, a setting or a weight is not supported; names it.
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
        config: Any = family.model.config_class(**named)
    except (TypeError, ValueError) as error:  # TypeError: a field is missing or unknown
        raise ValueError(f"the {kind} does not fit: {error}") from error
    with skip_init():
        model = family.model(config, dtype=dtype)
    kv_heads = getattr(config, "num_kv_heads", None) or config.num_heads
    for weight in model.weights:
        if not weight.path.startswith(("seed_generator", *family.new)):
            paths = _theirs(weight.path, family)
            weight.assign(_ours(weight, paths, weights, family.absent, kv_heads))
    if weights:
        raise ValueError(f"the {kind} has weights without a counterpart: {', '.join(weights)}")
    return model


def _theirs(path: str, family: Backbone) -> list[str]:
    """Return the paths of the backbone's weights that one of our weights is made of."""
    layer, _, name = path.rpartition("/")
    block = re.search(r"block_(\d+)", path)
    layer, whole = (re.sub(r"block_\d+", "block_*", x) for x in (layer, path))
    parts = family.layers.get(whole) or family.layers[layer]
    names = [parts] if isinstance(parts, str) else parts
    number = str(int(block[1]) + family.first_block) if block else "*"
    ending = "" if whole in family.layers else f"/{name}"
    return [part.replace("*", number) + ending for part in names]


def _ours(
    weight: Any,
    paths: list[str],
    weights: dict[str, Any],
    absent: tuple[str, ...],
    num_kv_heads: int,
) -> np.ndarray:
    """Return one of our weights, made of those at `paths`, which are removed from `weights`.

    Head axes are merged. Weights in `absent` that the backbone lacks are zeros.
    """
    *rows, width = weight.shape
    parts = {
        path: keras.ops.convert_to_numpy(weights.pop(path)).reshape(*rows, -1)
        for path in paths
        if path in weights
    }
    lacking = [path for path in paths if path not in parts]
    if strange := [path for path in lacking if not path.endswith(absent or "/")]:
        raise ValueError(f"the backbone lacks {', '.join(strange)}, which {weight.path} needs")
    rest = width - sum(part.shape[-1] for part in parts.values())
    parts |= {path: np.zeros((*rows, rest // len(lacking)), "float32") for path in lacking}
    return fuse([parts[path] for path in paths], num_kv_heads if len(paths) > 1 else 1)
