"""The code of a compiled package, called without Python's lock (the GIL)."""

from __future__ import annotations

import ctypes
import tempfile
import weakref
import zipfile
from collections.abc import Mapping, Sequence
from ctypes import byref, c_bool, c_char_p, c_size_t, c_void_p
from pathlib import Path
from typing import Any

import torch

from keras_transformer.backend import private

# A package exports these functions for programs in C, see `aoti_runtime/interface.h` of PyTorch.
_PREFIX = "AOTInductorModelContainer"
# PyTorch's operators that have no function in C are called through an object of its loader.
_LOADERS_OWN = b"aoti_torch_proxy_executor_call_function"


class _Pair(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("tensor", c_void_p)]


class CompiledLibrary:
    """The code of a compiled package, which several threads run at once.

    PyTorch's own loader of packages keeps Python's lock while the code runs.

    Args:
        path: The package.
        weights: Weights that it reads, by name. They must not change.
        runs: Maximum number of runs at once; further ones wait.

    Raises:
        LookupError: If the package or PyTorch lacks a function that is needed.
        OSError: If the library cannot be loaded.
    """

    def __init__(self, path: Path, weights: Mapping[str, torch.Tensor], runs: int):
        if None in (private.HANDLES_OF_TENSORS, private.TENSORS_OF_HANDLES):
            raise LookupError("PyTorch does not give tensors to functions in C")
        self._library = _loaded(path)
        self._container = c_void_p()
        self._call("CreateWithDevice", byref(self._container), c_size_t(runs), b"cpu", None)
        names = self._weight_names()
        handles = _handles([weights[name] for _, name in names])
        delete = self._function("Delete")
        weakref.finalize(self, _delete, delete, self._container, handles).atexit = False
        pairs = (_Pair * len(names))(
            *(_Pair(name, handle) for (name, _), handle in zip(names, handles, strict=True))
        )
        arguments = self._container, pairs, c_size_t(len(names)), c_bool(False), c_bool(True)
        self._call("UpdateUserManagedConstantBufferPairs", *arguments)
        self._num_results = self._number("GetNumOutputs")
        self._run = self._function("Run")

    def __call__(self, arguments: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Run the code on contiguous tensors, and return its results."""
        handles, results = _handles(arguments), (c_void_p * self._num_results)()
        sides = handles, c_size_t(len(handles)), results, c_size_t(self._num_results)
        _check(self._run(self._container, *sides, None, None))  # it frees the handles
        return _tensors(results)

    def _weight_names(self):
        """Return for each weight its name in the library and its name in `weights`."""
        names = []
        for i in range(self._number("GetNumConstants")):
            short, name = c_char_p(), c_char_p()
            self._call("GetConstantName", self._container, c_size_t(i), byref(short))
            self._call("GetConstantOriginalFQN", self._container, c_size_t(i), byref(name))
            names.append((short.value, (name.value or b"").decode()))
        return names

    def _number(self, name):
        number = c_size_t()
        self._call(name, self._container, byref(number))
        return number.value

    def _call(self, name, *arguments):
        _check(self._function(name)(*arguments))

    def _function(self, name):
        try:
            return self._library[_PREFIX + name]
        except AttributeError as error:
            raise LookupError(f"the package has no function {name}") from error


def _loaded(path):
    """Load the library of a package; its file is needed only until it is loaded."""
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.endswith(".so")]
        if len(names) != 1:
            raise LookupError(f"the package must contain one library, has {names}")
        code = archive.read(names[0])
    if _LOADERS_OWN in code:
        raise LookupError("the package calls an operator that has no function in C")
    with tempfile.TemporaryDirectory() as room:
        file = Path(room, "code.so")
        file.write_bytes(code)
        return ctypes.CDLL(str(file))


def _check(status: int) -> None:
    """Raise RuntimeError if a function failed; the library has printed the reason."""
    if status:
        raise RuntimeError(f"compiled code failed with status {status}, see stderr")


def _handles(tensors: Sequence[torch.Tensor]) -> Any:
    """Return an array of the addresses of new references to tensors."""
    capsules = private.HANDLES_OF_TENSORS(tensors)
    return (c_void_p * len(capsules))(*(_address(capsule, None) for capsule in capsules))


def _tensors(handles: Any) -> list[torch.Tensor]:
    """Return the tensors of `_handles`, and free the references."""
    return private.TENSORS_OF_HANDLES([_capsule(handle, None, None) for handle in handles])


def _delete(delete, container, handles):
    delete(container)
    _tensors(handles)


_address = ctypes.pythonapi.PyCapsule_GetPointer
_address.restype, _address.argtypes = c_void_p, (ctypes.py_object, c_char_p)
_capsule = ctypes.pythonapi.PyCapsule_New
_capsule.restype, _capsule.argtypes = ctypes.py_object, (c_void_p, c_char_p, c_void_p)
