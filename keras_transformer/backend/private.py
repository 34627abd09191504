"""Private names of Keras, TensorFlow and PyTorch, each with a fallback on public functions.

A name that a later release lacks is None here. The fallback is slower, or checks less, but has the
same results up to rounding (`tests/backend/test_private.py` hides each name). The comments name the
last version in which the name was found to exist and to be needed.
"""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
from keras import ops

BACKEND = keras.backend.backend()


def _find(module: str, name: str) -> Any:
    """Return an attribute of a module by its dotted name, or None if it is missing."""
    try:
        return functools.reduce(getattr, name.split("."), importlib.import_module(module))
    except (ImportError, AttributeError, RuntimeError):
        return None


# Keras 3.15. For `in_stateless_scope` below: outside a scope, Keras's function takes twenty times
# as long. This is the module, because `clear_session` replaces the tracker in it.
GLOBAL_STATE = _find("keras.src.backend.common", "global_state")
# Keras 3.15. The mask that `Masking` or `Embedding(mask_zero=True)` attached to a tensor.
GET_MASK = _find("keras.src.backend.common.masking", "get_keras_mask")
# Keras 3.15. Whether a call only infers shapes.
IN_SYMBOLIC_SCOPE = _find("keras.src.backend.common.symbolic_scope", "in_symbolic_scope")
_ABSENT: Any = None  # names of one backend are None on the others
GET_DEVICE = TO_TORCH_DTYPE = PACKAGE_LOADER = IN_XLA = _ABSENT
LINEAR_POINTWISE = REORDER_WEIGHT = INT_MM = FUSED_ADAM = PEEK_TRANSFORM = _ABSENT
INT4_MM = INT4_PACK = HANDLES_OF_TENSORS = TENSORS_OF_HANDLES = _ABSENT
if BACKEND == "torch":
    # Keras 3.15. Device of new tensors, and PyTorch dtypes by their Keras names.
    GET_DEVICE = _find("keras.src.backend.torch.core", "get_device")
    TO_TORCH_DTYPE = _find("keras.src.backend.torch.core", "to_torch_dtype")
    # PyTorch 2.13. oneDNN's product with bias and ReLU, and its memory layout of a weight.
    LINEAR_POINTWISE = _find("torch", "ops.mkldnn._linear_pointwise")
    REORDER_WEIGHT = _find("torch", "ops.mkldnn._reorder_linear_weight")
    # PyTorch 2.13. Product of int8 matrices.
    INT_MM = _find("torch", "_int_mm")
    # PyTorch 2.13. Product of a bfloat16 matrix and a 4-bit matrix in blocks; conversion of the
    # second matrix to the order that the product requires.
    INT4_MM = _find("torch", "ops.aten._weight_int4pack_mm_for_cpu")
    INT4_PACK = _find("torch", "ops.aten._convert_weight_to_int4pack_for_cpu")
    # PyTorch 2.13. Adam in one pass over memory.
    FUSED_ADAM = _find("torch", "_fused_adam_")
    # PyTorch 2.13. Loads a compiled package, without imports that take a second.
    PACKAGE_LOADER = _find("torch", "_C._aoti.AOTIModelPackageLoader")
    # PyTorch 2.13. Conversion of tensors to addresses for functions in C, and back.
    HANDLES_OF_TENSORS = _find("torch", "_C._aoti.unsafe_alloc_void_ptrs_from_tensors")
    TENSORS_OF_HANDLES = _find("torch", "_C._aoti.alloc_tensors_by_stealing_from_void_ptrs")
    # PyTorch 2.13. The innermost of `torch.func`'s transforms, which has no public name.
    PEEK_TRANSFORM = _find("torch", "_C._functorch.peek_interpreter_stack")
elif BACKEND == "tensorflow":
    # TensorFlow 2.21. Whether XLA will compile a graph.
    IN_XLA = _find("tensorflow.python.ops.control_flow_util", "GraphOrParentsInXlaContext")


def in_stateless_scope() -> bool:
    """Return whether a `keras.StatelessScope` replaces the values of variables.

    Fallback: True, with which callers use the plain formula.
    """
    tracker = getattr(GLOBAL_STATE, "GLOBAL_STATE_TRACKER", None)
    return tracker is None or tracker.__dict__.get("stateless_scope") is not None


def attached_mask(x: Any) -> Any:
    """Return the mask (B, S) that Keras attached to a tensor, or None."""
    return getattr(x, "_keras_mask", None) if GET_MASK is None else GET_MASK(x)


def in_symbolic_scope() -> bool:
    """Return whether a call only infers shapes; fallback: True."""
    return True if IN_SYMBOLIC_SCOPE is None else IN_SYMBOLIC_SCOPE()


def is_rematerialized(layer: keras.layers.Layer) -> bool:
    """Return whether Keras recomputes a layer in the backward pass (`_remat_mode`, 3.15)."""
    return bool(getattr(layer, "_remat_mode", None))


def own_policy(layer: keras.layers.Layer) -> Any:
    """Return a layer's dtype policy (`_dtype_policy`, 3.15); None if it is a map of policies."""
    policy = getattr(layer, "_dtype_policy", None)
    return None if isinstance(policy, keras.dtype_policies.DTypePolicyMap) else policy


def layers_inside(layer: keras.layers.Layer) -> list[keras.layers.Layer]:
    """Return all layers inside a layer or model, without duplicates (`_flatten_layers`, 3.15)."""
    flatten = getattr(layer, "_flatten_layers", None)
    if flatten is not None:
        return list(flatten(include_self=False))
    layers = {id(layer): layer}

    def visit(value):
        if isinstance(value, dict | list | tuple):
            for item in value.values() if isinstance(value, dict) else value:
                visit(item)
        elif isinstance(value, keras.layers.Layer) and id(value) not in layers:
            layers[id(value)] = value
            visit(dict(vars(value)))

    visit(dict(vars(layer)))
    return list(layers.values())[1:]


def build_metrics(model: keras.Model, batch: Any) -> None:
    """Create the variables of a compiled model's metrics (`_symbolic_build`, Keras 3.15).

    Fallback: one evaluation step, then a reset of the metrics.
    """
    build = getattr(model, "_symbolic_build", None)
    if build is not None:
        build(data_batch=batch)
        return
    model.test_on_batch(*batch)
    model.reset_metrics()


def in_strategy(model: keras.Model) -> bool:
    """Return whether a TensorFlow strategy is in use (`_distribute_strategy`, Keras 3.15).

    Fallback: True, with which the optimizer's variables are created in the first step.
    """
    return getattr(model, "_distribute_strategy", True) is not None


def own_value(variable: keras.Variable) -> Any:
    """Return a variable's tensor without the cast of mixed precision (`_value`, Keras 3.15)."""
    value = getattr(variable, "_value", None)
    return variable.value if value is None else value


if BACKEND == "torch":
    import torch

    def device() -> Any:
        """Return the device of new tensors."""
        return ops.zeros(()).device if GET_DEVICE is None else GET_DEVICE()

    @functools.cache
    def torch_dtype(dtype: Any) -> torch.dtype:
        """Return the PyTorch dtype of a Keras dtype name."""
        if TO_TORCH_DTYPE is not None:
            return TO_TORCH_DTYPE(dtype)
        return getattr(torch, keras.backend.standardize_dtype(dtype))

    def in_transform() -> bool:
        """Return whether the caller is inside a `torch.func` transform; fallback: False."""
        return PEEK_TRANSFORM is not None and PEEK_TRANSFORM() is not None

    def version_of(tensor: torch.Tensor) -> int | None:
        """Return a counter of in-place changes (`_version`, PyTorch 2.13); fallback: None."""
        return getattr(tensor, "_version", None)

    def onednn_linear(
        x_ND: torch.Tensor, weight_FD: torch.Tensor, bias: Any = None, relu: bool = False
    ) -> torch.Tensor:
        """Return x W^T + b, with or without ReLU, computed by oneDNN; fallback: `linear`."""
        if LINEAR_POINTWISE is not None:
            return LINEAR_POINTWISE(x_ND, weight_FD, bias, "relu" if relu else "none", [], "")
        x_NF = torch.nn.functional.linear(x_ND, weight_FD, bias)
        return x_NF.relu_() if relu else x_NF

    def write_package(program: Any, path: Path, options: dict[str, Any]) -> dict[str, torch.Tensor]:
        """Compile an exported program into a package; return its weights by name.

        The package contains no weights (`aot_compile`, PyTorch 2.13): it would copy them to memory
        that is aligned to 16 bytes, where reading vectors of 64 bytes takes 1.6 times as long.
        Fallback: the package contains the weights, and {} is returned.

        Products with frozen weights become generated C++, which for a few rows takes a third of the
        time of PyTorch's products (`preprocessing_fns`, PyTorch 2.13, excludes these). Fallback:
        PyTorch's products.

        Args:
            program: The exported program.
            path: The package to write.
            options: Options of PyTorch's compiler.
        """
        # With early inlining, GCC keeps sums of products of five rows or more in memory instead of
        # registers, and the code takes three times as long. PyTorch 2.13 has no option for compiler
        # flags, but the value of this option becomes a part of the compiler's command. Fallback:
        # early inlining.
        is_gcc = _find("torch._inductor.cpp_builder", "is_gcc")
        name = "enable_floating_point_contract_flag"
        value = _find("torch._inductor.config", f"cpp.{name}")
        if is_gcc is not None and is_gcc() and isinstance(value, str):
            options = options | {f"cpp.{name}": f"{value} -fno-early-inlining"}
        # Any GCC that compiles PyTorch's headers supports AVX2 and AVX-512. Without this option,
        # PyTorch compiles the headers three times to find out (`vec_isa_ok`, PyTorch 2.13).
        is_known = hasattr(_find("torch._inductor.config", "cpp"), "vec_isa_ok")
        if is_known and is_gcc is not None and is_gcc():
            options = options | {"cpp.vec_isa_ok": True}
        name = "get_algorithm_selector_cache"  # its module takes long to import
        selector = _find("torch._inductor.select_algorithm", name)
        choices = getattr(selector and selector(), "preprocessing_fns", None)
        if choices is not None:
            backends = {"max_autotune_gemm_backends": "CPP,ATEN"}
            options = options | {"max_autotune_gemm": True} | backends
            choices.append(_generated)
        try:
            return _write_package(program, os.fspath(path), options)
        finally:
            if choices is not None:
                choices.remove(_generated)

    def _write_package(program, path, options):
        """Compile a program into a package; return the weights that it needs, by name."""
        pack = _find("torch._inductor.package", "package_aoti")
        known = _find("torch._inductor.config", "aot_inductor")
        kind = "package_constants_on_disk_format"
        if None in (pack, PACKAGE_LOADER) or not hasattr(known, kind):
            torch._inductor.aoti_compile_and_package(
                program, package_path=path, inductor_configs=options
            )
            return {}
        options = options | {
            "aot_inductor.package": True,
            "aot_inductor.package_constants_in_so": False,
            f"aot_inductor.{kind}": "pickle_weights",  # returned among the files, not written
        }
        arguments, named = program.example_inputs
        module = program.module(check_guards=False)
        files = torch._inductor.aot_compile(module, arguments, named, options=options)
        pack(path, [file for file in files if isinstance(file, str)])
        (weights,) = (file for file in files if not isinstance(file, str))
        return {name: weight for name, (weight, *_) in weights.items()}

    def _generated(choices: list[Any]) -> list[Any]:
        """Return the kernels that are generated code, or all if none of them is."""
        return [x for x in choices if type(x).__name__ != "ExternKernelCaller"] or choices

    def package_runner(
        path: Path, weights: dict[str, torch.Tensor]
    ) -> Callable[[list[Any]], list[Any]]:
        """Return the function in a compiled package, from a list of tensors to a list of tensors.

        Fallback: PyTorch's public loader, which is slower: it parses the structure of arguments.

        Args:
            path: The package.
            weights: Weights that it may read, by name; {} if the package contains them. The caller
                keeps them alive.
        """
        if PACKAGE_LOADER is None:
            return torch._inductor.aoti_load_package(os.fspath(path))
        loader = PACKAGE_LOADER(os.fspath(path), "model", False, 1, -1)
        if weights:
            read = {name: weights[name] for name in loader.get_constant_fqns()}
            loader.load_constants(read, False, True, True)
        return loader.boxed_run

    def onednn_weight(weight_FD: torch.Tensor) -> torch.Tensor | None:
        """Return a weight in oneDNN's layout for `onednn_linear`; None if not available."""
        if LINEAR_POINTWISE is None or REORDER_WEIGHT is None:
            return None
        try:
            return REORDER_WEIGHT(weight_FD.contiguous(), None)
        except RuntimeError:  # not supported by the processor
            return None

elif BACKEND == "tensorflow":

    def in_xla(graph: Any) -> bool:
        """Return whether XLA will compile a graph; fallback: True."""
        return True if IN_XLA is None else IN_XLA(graph)
