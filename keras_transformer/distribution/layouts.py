"""Layouts of weights: the axis of each weight that is split over an axis of a device mesh.

Tensor parallelism as in Megatron (Shoeybi et al. 2019, section 3): the products that widen (query,
key, value; the first product of the feed-forward) are split by columns, those that narrow (the
output of attention and feed-forward) by rows, and the vocabulary is split by tokens. Each attention
and each feed-forward then needs one all-reduce in its forward pass. Mixtures of experts are split
by experts, which needs one, too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import keras

DATA, MODEL = "data", "model"
_WIDENS = r"(.*/)?(query_key_value|query|key_value|feed_forward/hidden|feed_forward/gate)"
TENSOR_PARALLEL = {
    rf"{_WIDENS}/kernel": (None, MODEL),
    rf"{_WIDENS}/bias": (MODEL,),
    r"(.*/)?(\w*attention|feed_forward)/output/kernel": (MODEL, None),
    r"(.*/)?feed_forward/experts_(hidden|gate|output)": (MODEL, None, None),
    r"(.*/)?tokens/embeddings": (MODEL, None),
    r"output/kernel": (None, MODEL),
    r"output_bias/bias": (MODEL,),
}
# Vocabulary weights stay whole if the model axis does not divide the vocabulary size: sizes of
# imported models are often odd numbers, such as 50,257.
_VOCABULARY = re.compile(r"(.*/)?tokens/embeddings|output/kernel|output_bias/bias")


def axes_of(
    path: str, shape: Sequence[int], data: int, model: int, shard_weights: bool
) -> tuple[str | None, ...]:
    """Return the mesh axis that splits each axis of a weight; None for axes that are whole.

    Args:
        path: Path of the weight, such as "encoder/block_0/attention/query_key_value/kernel".
        shape: Shape of the weight.
        data: Devices along the data axis.
        model: Devices along the model axis.
        shard_weights: Whether matrices are split over the data axis, too (FSDP; Zhao et al. 2023):
            along the longest axis that it divides and that the model axis leaves whole. Vectors
            stay whole: gathering them would cost more time than the saved memory is worth.

    Raises:
        ValueError: If several rules match the path, or the model axis does not divide a weight
            that it splits, other than those of the vocabulary.
    """
    axes: list[str | None] = [None] * len(shape)
    rules = [rule for pattern, rule in TENSOR_PARALLEL.items() if re.fullmatch(pattern, path)]
    if len(rules) > 1:
        raise ValueError(f"one rule must match {path}, got {len(rules)}")
    if rules and model > 1:
        (rule,) = rules
        axis = rule.index(MODEL)
        if shape[axis] % model == 0:
            axes[axis] = MODEL
        elif not _VOCABULARY.fullmatch(path):
            raise ValueError(
                f"model={model} must divide axis {axis} of {path}, got shape {tuple(shape)}"
            )
    if shard_weights and data > 1 and len(shape) > 1:
        whole = [axis for axis, name in enumerate(axes) if name is None and not shape[axis] % data]
        if whole:
            axes[max(whole, key=lambda axis: shape[axis])] = DATA
    return tuple(axes)


class MeshLayout(keras.distribution.ModelParallel):
    """A Keras distribution that splits batches over the data axis, and weights by `axes_of`.

    Args:
        mesh: A device mesh with the axes "data" and "model".
        shard_weights: Whether matrices are split over the data axis, too.
        parts: Number of parts of a batch that different processes make and pass to `fit`; 1: each
            process passes whole batches.
    """

    def __init__(self, mesh: keras.distribution.DeviceMesh, shard_weights: bool, parts: int = 1):
        rules = keras.distribution.LayoutMap(mesh)
        super().__init__(layout_map=rules, batch_dim_name=DATA, auto_shard_dataset=False)
        self.shard_weights = shard_weights
        self.parts = parts

    def get_data_layout(self, data_shape: Sequence[int]) -> keras.distribution.TensorLayout:
        """Return the layout of a batch, or of this process's part of one.

        Raises:
            ValueError: If the devices along the data axis do not divide the rows.
        """
        rows, parts = data_shape[0], self.device_mesh.shape[0] // self.parts
        if rows % parts:
            whose = "a batch" if self.parts == 1 else "a process's part of a batch"
            raise ValueError(f"{whose} must have a multiple of {parts} rows, got {rows}")
        return super().get_data_layout(data_shape)

    def get_variable_layout(self, variable: Any) -> keras.distribution.TensorLayout:
        """Return the layout of a weight; Keras gives it to the optimizer's moments, too."""
        data, model = self.device_mesh.shape
        axes = axes_of(variable.path, variable.shape, data, model, self.shard_weights)
        return keras.distribution.TensorLayout(axes, self.device_mesh)
