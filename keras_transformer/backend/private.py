"""Every private name of Keras, TensorFlow and PyTorch that is used, and what is done without it.

A name that a later release lacks is None here, and the public way is taken: slower, or with fewer
checks, but with the same numbers; `tests/backend/test_private.py` hides each. The versions are
those in which the name was last seen to be there and needed.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

import keras
from keras import ops

BACKEND = keras.backend.backend()


def _find(module: str, name: str) -> Any:
    """Return what a module has under a dotted name, or None."""
    try:
        return functools.reduce(getattr, name.split("."), importlib.import_module(module))
    except (ImportError, AttributeError, RuntimeError):
        return None


# Keras 3.15. `in_stateless_scope` of Keras takes twenty times as long where there is no scope.
GLOBAL_STATE = _find("keras.src.backend.common.global_state", "GLOBAL_STATE_TRACKER")
# Keras 3.15. The mask that `Masking` or `Embedding(mask_zero=True)` attached to a tensor.
GET_MASK = _find("keras.src.backend.common.masking", "get_keras_mask")
# Keras 3.15. Whether a call only finds out shapes.
IN_SYMBOLIC_SCOPE = _find("keras.src.backend.common.symbolic_scope", "in_symbolic_scope")
GET_DEVICE = TO_TORCH_DTYPE = None
LINEAR_POINTWISE = REORDER_WEIGHT = INT_MM = FUSED_ADAM = PEEK_TRANSFORM = IN_XLA = None
if BACKEND == "torch":
    # Keras 3.15. Where new tensors go, and types by their Keras names.
    GET_DEVICE = _find("keras.src.backend.torch.core", "get_device")
    TO_TORCH_DTYPE = _find("keras.src.backend.torch.core", "to_torch_dtype")
    # PyTorch 2.13. oneDNN's product with bias and ReLU, and its own order of a weight.
    LINEAR_POINTWISE = _find("torch", "ops.mkldnn._linear_pointwise")
    REORDER_WEIGHT = _find("torch", "ops.mkldnn._reorder_linear_weight")
    # PyTorch 2.13. The product of matrices of 8 bits.
    INT_MM = _find("torch", "_int_mm")
    # PyTorch 2.13. Adam in one pass over memory.
    FUSED_ADAM = _find("torch", "_fused_adam_")
    # PyTorch 2.13. The innermost of `torch.func`'s transforms, which has no public name.
    PEEK_TRANSFORM = _find("torch", "_C._functorch.peek_interpreter_stack")
elif BACKEND == "tensorflow":
    # TensorFlow 2.21. Whether XLA is to compile a graph.
    IN_XLA = _find("tensorflow.python.ops.control_flow_util", "GraphOrParentsInXlaContext")


def in_stateless_scope() -> bool:
    """Return whether variables have other values than their own, or none: `keras.StatelessScope`.

    Without the name True: whoever asks then takes the plain way.
    """
    if GLOBAL_STATE is None:
        return True
    return GLOBAL_STATE.__dict__.get("stateless_scope") is not None


def attached_mask(x: Any) -> Any:
    """Return the mask (B, S) that Keras attached to a tensor, or None."""
    return getattr(x, "_keras_mask", None) if GET_MASK is None else GET_MASK(x)


def in_symbolic_scope() -> bool:
    """Return whether a call only finds out shapes; without the name True."""
    return True if IN_SYMBOLIC_SCOPE is None else IN_SYMBOLIC_SCOPE()


def is_rematerialized(layer: keras.layers.Layer) -> bool:
    """Return whether Keras computes a layer again in the backward pass (`_remat_mode`, 3.15)."""
    return bool(getattr(layer, "_remat_mode", None))


def layers_inside(layer: keras.layers.Layer) -> list[keras.layers.Layer]:
    """Return all layers inside a layer or model, each once (`_flatten_layers`, Keras 3.15)."""
    flatten = getattr(layer, "_flatten_layers", None)
    if flatten is not None:
        return list(flatten(include_self=False))
    found = {id(layer): layer}

    def visit(value):
        if isinstance(value, dict | list | tuple):
            for one in value.values() if isinstance(value, dict) else value:
                visit(one)
        elif isinstance(value, keras.layers.Layer) and id(value) not in found:
            found[id(value)] = value
            visit(dict(vars(value)))

    visit(dict(vars(layer)))
    return list(found.values())[1:]


def build_metrics(model: keras.Model, batch: Any) -> None:
    """Make the variables of a compiled model's metrics (`_symbolic_build`, Keras 3.15).

    Without the name by a step of `evaluate`, which is undone.
    """
    build = getattr(model, "_symbolic_build", None)
    if build is not None:
        build(data_batch=batch)
        return
    model.test_on_batch(*batch)
    model.reset_metrics()


def in_strategy(model: keras.Model) -> bool:
    """Return whether a strategy of TensorFlow was chosen (`_distribute_strategy`, Keras 3.15).

    Without the name True: the optimizer's variables are then made in the first step.
    """
    return getattr(model, "_distribute_strategy", True) is not None


def own_value(variable: keras.Variable) -> Any:
    """Return a variable's own tensor (`_value`, Keras 3.15), not cast as in mixed precision."""
    value = getattr(variable, "_value", None)
    return variable.value if value is None else value


if BACKEND == "torch":
    import torch

    def device() -> Any:
        """Return where new tensors go."""
        return ops.zeros(()).device if GET_DEVICE is None else GET_DEVICE()

    def torch_dtype(dtype: Any) -> torch.dtype:
        """Return PyTorch's type of a Keras name."""
        if TO_TORCH_DTYPE is not None:
            return TO_TORCH_DTYPE(dtype)
        return getattr(torch, keras.backend.standardize_dtype(dtype))

    def in_transform() -> bool:
        """Return whether `torch.func` transforms what is called."""
        return PEEK_TRANSFORM is not None and PEEK_TRANSFORM() is not None

    def version_of(tensor: torch.Tensor) -> int | None:
        """Return a number that changes with the tensor (`_version`, PyTorch 2.13), or None."""
        return getattr(tensor, "_version", None)

    def onednn_linear(
        x_ND: torch.Tensor, weight_FD: torch.Tensor, bias: Any = None, relu: bool = False
    ) -> torch.Tensor:
        """Return relu(x W^T + b), or without the ReLU, by oneDNN."""
        if LINEAR_POINTWISE is not None:
            return LINEAR_POINTWISE(x_ND, weight_FD, bias, "relu" if relu else "none", [], "")
        x_NF = torch.nn.functional.linear(x_ND, weight_FD, bias)
        return x_NF.relu_() if relu else x_NF

    def onednn_weight(weight_FD: torch.Tensor) -> torch.Tensor | None:
        """Return a weight in oneDNN's own order, which `onednn_linear` takes; None: not here."""
        if LINEAR_POINTWISE is None or REORDER_WEIGHT is None:
            return None
        try:
            return REORDER_WEIGHT(weight_FD.contiguous(), None)
        except RuntimeError:  # a processor without it
            return None

elif BACKEND == "tensorflow":

    def in_xla(graph: Any) -> bool:
        """Return whether XLA is to compile a graph; without the name True."""
        return True if IN_XLA is None else IN_XLA(graph)
