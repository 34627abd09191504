"""Adapters: small files with the changes that LoRA made to a base model (Hu et al. 2021)."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_transformer.backend.private import layers_inside
from keras_transformer.config import is_number, require, require_whole
from keras_transformer.system.named_models import ADAPTER
from keras_transformer.weights.sizes import sized_by
from keras_transformer.weights.weight_files import read_weights, save_weights

SAMPLES = 16  # values of each weight of the base that an adapter keeps to recognize its base
_BASE, _A, _B = "base", "lora_kernel_a", "lora_kernel_b"


@dataclass(frozen=True)
class Adapter:
    """Changes of the weights of a base model: low-rank products, and weights trained whole.

    Args:
        products: Matrices A (D, rank) and B (rank, F) by the Keras path of a kernel W, which
            becomes W + (alpha / rank) A B.
        whole: Weights that were trained whole, such as those of a new head, by path.
        base: Samples (N, `SAMPLES`) of the N weights of the base that are not in `whole`, in the
            order of their paths; None: any base with weights of these shapes is accepted.
        rank: Rank of the products.
        alpha: Scale of the products, see `products`.
    """

    products: Mapping[str, tuple[np.ndarray, np.ndarray]]
    whole: Mapping[str, np.ndarray]
    base: np.ndarray | None
    rank: int
    alpha: float

    @classmethod
    def of(cls, model: keras.Model) -> Adapter:
        """Return the adapter of a model after `enable_lora`.

        Raises:
            ValueError: If the model has no LoRA.
        """
        layers = [x for x in layers_inside(model) if getattr(x, "lora_enabled", False)]
        require(len(layers) > 0, "model", model.name, "a model with LoRA: see `enable_lora`")
        products = {
            layer._kernel.path: (_array(layer.lora_kernel_a), _array(layer.lora_kernel_b))
            for layer in layers
        }
        trained = {id(weight) for weight in model.trainable_weights}
        weights = [weight for weight in model.weights if weight.name not in (_A, _B)]
        whole = {weight.path: _array(weight) for weight in weights if id(weight) in trained}
        frozen = {weight.path: weight for weight in weights if id(weight) not in trained}
        rank, alpha = layers[0].lora_rank, layers[0].lora_alpha
        return cls(products, whole, _samples(frozen), rank, alpha)

    def write(self, path: str | os.PathLike) -> None:
        """Write the arrays as a safetensors file, atomically."""
        assert self.base is not None, "an adapter without its base is only read"
        arrays = dict(self.whole) | {_BASE: self.base}
        for kernel, (a_DR, b_RF) in self.products.items():
            layer = kernel.rpartition("/")[0]
            arrays |= {f"{layer}/{_A}": a_DR, f"{layer}/{_B}": b_RF}
        save_weights(path, arrays)

    @classmethod
    def read(cls, folder: str | os.PathLike, facts: Mapping[str, Any]) -> Adapter:
        """Read the file of a saved adapter.

        Args:
            folder: Folder with an `adapter.safetensors`.
            facts: The entry "adapter" of its `config.json`, with `rank` and `alpha`.

        Raises:
            FileNotFoundError: If the file is missing.
            ValueError: If the file or a value is broken.
        """
        path = Path(folder, ADAPTER)
        rank, alpha = facts.get("rank"), facts.get("alpha")
        require_whole(f'"rank" of the adapter {folder}', rank, 1)
        require(is_number(alpha), f'"alpha" of the adapter {folder}', alpha, "a number")
        arrays = read_weights(path)
        base = arrays.pop(_BASE, None)
        names = [name for name in arrays if name.endswith(f"/{_A}")]
        products = {}
        for name in names:
            layer = name.rpartition("/")[0]
            a_DR, b_RF = arrays.pop(name), arrays.pop(f"{layer}/{_B}", np.empty(0))
            is_product = a_DR.ndim == b_RF.ndim == 2 and a_DR.shape[1] == b_RF.shape[0]
            require(is_product, f"{path}: {layer}", "other arrays", "the two factors of a product")
            products[f"{layer}/kernel"] = a_DR, b_RF
        has_base = base is not None and base.ndim == 2 and base.shape[1] == SAMPLES
        require(has_base and len(products) > 0, str(path), "another file", "an adapter")
        return cls(products, arrays, base, rank, alpha)  # type: ignore[arg-type]  # numbers, see above

    @staticmethod
    def size_of(folder: str | os.PathLike) -> int:
        """Return the number of parameters in the file of a saved adapter."""
        arrays = read_weights(Path(folder, ADAPTER))
        return sum(value.size for name, value in arrays.items() if name != _BASE)

    @property
    def changed(self) -> list[str]:
        """Paths of the weights that the adapter changes."""
        return [*self.products, *self.whole]

    def value(self, path: str, base: Mapping[str, Any]) -> np.ndarray:
        """Return a weight of the adapted model, given the base's weights by path."""
        if path in self.whole:
            return self.whole[path]
        value = _array(base[path])
        if path not in self.products:
            return value
        a_DR, b_RF = self.products[path]
        product = (self.alpha / self.rank) * (a_DR @ b_RF)
        return (value.astype("float32") + product).astype(value.dtype)

    def check(self, base: Mapping[str, Any], shapes: Mapping[str, tuple]) -> None:
        """Check that the adapter was trained on this base.

        Args:
            base: Weights of the base by path.
            shapes: Shapes of the weights of the adapted model by path.

        Raises:
            ValueError: If a weight is missing, has another shape, or has other values than in the
                base that the adapter was trained on.
        """
        brought = {path: value.shape for path, value in self.whole.items()}
        brought |= {path: (len(a), b.shape[1]) for path, (a, b) in self.products.items()}
        if missing := sorted(brought.keys() - shapes.keys()):
            raise ValueError(f"it changes {missing[0]}, which the model lacks")
        for path, shape in shapes.items():
            trained_shape = brought.get(path, shape)
            same = trained_shape == shape
            require(same, f"the adapter's shape of {path}", trained_shape, f"{shape}")
            if path not in self.whole:
                base_shape = tuple(base[path].shape) if path in base else None
                require(base_shape == shape, f"the base's shape of {path}", base_shape, f"{shape}")
        if self.base is None:
            return
        others = sorted(shapes.keys() - self.whole.keys())
        if len(others) != len(self.base):
            raise ValueError(f"it was trained on {len(self.base)} other weights, not {len(others)}")
        for path, expected in zip(others, self.base, strict=True):
            sample = _sample(base[path])
            # A base that was loaded in another precision has rounded values.
            if not np.array_equal(sample, expected.astype(sample.dtype), equal_nan=True):
                raise ValueError(f"the values of {path} are others than those it was trained on")

    def on(self, model: Any, config: Any) -> Any:
        """Return the adapted model: `model`, changed in place, or a new model if configs differ.

        Args:
            model: The base.
            config: Config of the adapted model: it may have another head, or another dropout rate.

        Raises:
            ValueError: If the model is quantized, or the adapter was trained on another base.
        """
        base, made = {weight.path: weight for weight in model.weights}, model
        if model.quantization:
            raise ValueError(f"its weights are of {model.quantization}: adapters need floats")
        if config != model.config:
            shapes = [*(x.shape for x in model.weights), *(x.shape for x in self.whole.values())]
            with sized_by(config, len(shapes), sum(map(math.prod, shapes))):
                made = type(model)(config, dtype=model._policy)
        self.check(base, {weight.path: tuple(weight.shape) for weight in made.weights})
        for weight in made.weights:
            if made is not model or weight.path in self.changed:
                weight.assign(self.value(weight.path, base))
        return made


def _array(weight):
    """Return a copy of a weight: a view would change with it (PyTorch) or become invalid (JAX)."""
    return np.array(ops.convert_to_numpy(weight))


def _sample(weight):
    """Return `SAMPLES` values of a weight, evenly spaced."""
    values = np.ravel(ops.convert_to_numpy(weight))
    return values[[math.floor(i * (len(values) - 1) / (SAMPLES - 1)) for i in range(SAMPLES)]]


def _samples(weights):
    """Return samples of the N weights (N, `SAMPLES`), in the order of their paths."""
    rows = [_sample(weights[path]).astype("float32") for path in sorted(weights)]
    return np.stack(rows) if rows else np.zeros((0, SAMPLES), "float32")
