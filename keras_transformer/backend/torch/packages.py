"""Functions that read a model's weights, compiled to C++ by PyTorch's compiler and kept on disk.

A step of a search is hundreds of small operations, and Python takes longer to call them than they
take to run. TorchInductor (Ansel et al. 2024, PyTorch 2) translates a recorded function to C++.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import sys
import threading
import warnings
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import torch
from safetensors.torch import load, save

from keras_transformer.backend import private
from keras_transformer.backend.compilation import portable
from keras_transformer.backend.torch.compiled_library import CompiledLibrary
from keras_transformer.backend.torch.matrix_products import whole_blocks
from keras_transformer.backend.workers import num_workers
from keras_transformer.system.files import LOCK, MOST_CACHED, keep_newest, replacing
from keras_transformer.system.locks import acquired, waiting
from keras_transformer.system.processor import processor_features

FORMAT = 2  # number of the packages' format; those with another number are compiled again
# Weights are constants, which the compiler may pack. The code has one thread: more threads slow
# small models down. Values that all layers read, such as a mask, are computed once, not again for
# each element of a softmax. The compiler has one process, too.
_CONFIG = {
    "freezing": True,
    "realize_reads_threshold": 0,
    "cpp.threads": 1,
    "compile_threads": 1,
}
_WEIGHTS = "weights.safetensors"  # in a package: the weights that the compiler computed
_LAYOUT = ".layout"  # suffix of a weight's name, for its sizes and strides
_ALIGNMENT = 64  # bytes; a vector that crosses two cache lines takes twice as long to read


class Packages:
    """A store of compiled functions of a model.

    Each function is compiled ahead of time and kept in `folder`; later processes load it instead of
    compiling again.

    Args:
        model: The model. The code reads its weights, or copies of them that the compiler packed.
        folder: Folder of the compiled functions; made if it is missing.

    Attributes:
        workers: Number of threads that can run the functions at the same time; 1 if calls wait for
            each other.

    Raises:
        ImportError: If there is no C++ compiler.
        ValueError: If the model is not on the CPU.
    """

    def __init__(self, model: keras.Model, folder: Path):
        _require_compiler()
        device = torch.device(private.device()).type
        if device != "cpu":
            raise ValueError(f"the device must be cpu for compiled functions, got {device!r}")
        folder.mkdir(0o700, parents=True, exist_ok=True)
        self._variables, self._folder = model.variables, folder
        self.workers = num_workers()
        self._packed: dict[Any, torch.Tensor] = {}  # packed weights of all functions, each once

    def compiled(
        self, name: str, function: Callable, examples: Sequence[Sequence[Any]]
    ) -> Callable[[Sequence[Any]], list[Any]]:
        """Return the compiled function, from the flattened arguments to the flattened result.

        Args:
            name: Name of the computation, unique among those with the same weights and shapes.
            function: Function from trees of tensors and positive numbers to a tree of tensors.
            examples: Arguments of two calls, which differ in each number and size that may vary.

        Raises:
            ValueError: If the compiler cannot compile the function.
        """
        path, flat, leaves = self._planned(name, function, examples)
        with waiting(path.with_suffix(LOCK)):
            if not _is_whole(path):
                with replacing(path) as temporary:
                    self._compile(flat, leaves, temporary)
            return self._loaded(path, flat)

    def kept(
        self,
        name: str,
        function: Callable,
        examples: Sequence[Sequence[Any]],
        timeout: float = 0,
    ) -> Callable[[Sequence[Any]], list[Any]] | None:
        """Return what `compiled` returns if the function is in the folder, else None.

        Args:
            name, function, examples: See `compiled`.
            timeout: Seconds to wait for a process that compiles or loads the same function; if that
                takes longer, None is returned.
        """
        path, flat, _ = self._planned(name, function, examples)
        if not path.exists() or (lock := acquired(path.with_suffix(LOCK), timeout)) is None:
            return None
        try:
            return self._loaded(path, flat) if _is_whole(path) else None
        finally:
            lock.release()

    def _planned(self, name, function, examples):
        """Return the path of a function's package, the module of `_flat`, and flat arguments."""
        leaves = [[*map(_carrier, keras.tree.flatten(example))] for example in examples]
        variables = _variables_of(function, examples[0])
        sizes = [[(*x.shape, str(x.dtype)) for x in example] for example in leaves]
        key = json.dumps([name, sizes, [*map(_digest, variables)], _environment()])
        path = self._folder / f"{hashlib.sha256(key.encode()).hexdigest()[:40]}.pt2"
        return path, _flat(function, examples[0], variables), leaves

    def _loaded(self, path, flat):
        """Return the function in a package; the caller holds its lock."""
        weights = self._weights_of(path, flat)
        run = self._runner(path, weights)
        os.utime(path)  # the least recently used packages are removed first
        keep_newest(self._folder.glob("*.pt2"), MOST_CACHED)

        def call(leaves, weights=weights):  # this reference keeps the weights alive
            return run([x if type(x) is torch.Tensor else _carrier(x) for x in leaves])

        return call

    def _runner(self, path, weights):
        """Return the function in a package, from a list of tensors to a list of tensors."""
        try:
            return CompiledLibrary(path, weights, self.workers)
        except (LookupError, OSError):
            self.workers = 1
        run, alone = private.package_runner(path, weights), threading.Lock()

        def call(leaves):
            # The code holds Python's lock while it waits for a call in another thread, which needs
            # that lock to end.
            with alone:
                return run(leaves)

        return call

    def _compile(self, function, leaves, path):
        """Compile a function into a package; sizes that differ between examples may vary."""
        same, any_size = torch.export.Dim.STATIC, torch.export.Dim.DYNAMIC
        sizes = [
            {
                axis: same if size == other else any_size
                for axis, (size, other) in enumerate(zip(x.shape, y.shape, strict=True))
            }
            for x, y in zip(*leaves, strict=True)
        ]
        try:
            with torch.no_grad(), portable(), whole_blocks(), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # PyTorch's warnings about itself
                program = torch.export.export(
                    function, (leaves[0],), dynamic_shapes=(sizes,), strict=False
                )
                addresses = {x.value.data_ptr() for x in self._variables}
                # Weights that became constants do not count in the package's name: a model with
                # other weights would get the same package.
                if any(x.data_ptr() in addresses for x in program.constants.values()):
                    raise ValueError("it reads weights past their variables")
                if weights := private.write_package(program, path, _CONFIG):
                    of_model = {name for name, _ in function.named_buffers()}
                    packed = {name: x for name, x in weights.items() if name not in of_model}
                    _add_weights(path, packed)
        except Exception as error:  # the compiler raises many types
            raise ValueError(f"PyTorch cannot compile the search: {error}") from error

    def _weights_of(self, path, function):
        """Return the weights that a package reads, aligned; {} if it contains them."""
        with zipfile.ZipFile(path) as archive:
            if (name := _name_of_weights(archive)) not in archive.namelist():
                return {}
            stored = load(archive.read(name))
        weights = {name: _aligned(weight) for name, weight in function.named_buffers()}
        for name in [name for name in stored if name + _LAYOUT in stored]:
            layout = stored[name + _LAYOUT].tolist()
            key = repr(layout), _digest(stored[name])
            if key not in self._packed:
                self._packed[key] = _aligned(stored[name]).as_strided(*layout)
            weights[name] = self._packed[key]
        return weights


def _is_whole(path):
    """Return whether a package exists and is not damaged."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.testzip() is None
    except (OSError, zipfile.BadZipFile):
        return False


def _add_weights(path, weights):
    """Add weights that are not the model's to a package, each with its layout in memory."""
    stored = {}
    for name, weight in weights.items():
        sizes, strides = weight.shape, weight.stride()
        stop = 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
        stored[name] = weight.as_strided((stop,), (1,)).clone()
        stored[name + _LAYOUT] = torch.tensor([sizes, strides], dtype=torch.int64)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(_name_of_weights(archive), save(stored))


def _aligned(weight):
    return weight if weight.data_ptr() % _ALIGNMENT == 0 else weight.clone()


def _name_of_weights(archive):
    folder, _, _ = archive.namelist()[0].partition("/")  # the folder of all files
    return f"{folder}/{_WEIGHTS}"


def _digest(numbers):
    values = keras.ops.convert_to_numpy(numbers)
    return hashlib.sha256(np.ascontiguousarray(values).data).hexdigest()


def _require_compiler():
    name = os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++")
    if sys.platform != "win32" and shutil.which(name) is None:
        raise ImportError(
            f"a C++ compiler is needed, and {name} is missing: install it, or set CXX"
        )


def _carrier(x):
    """Return a contiguous tensor for compiled code; a number n becomes one of shape (n + 1, 0)."""
    if isinstance(x, np.ndarray):
        return torch.from_numpy(np.ascontiguousarray(x))
    return x.contiguous() if torch.is_tensor(x) else torch.empty(x + 1, 0)


def _variables_of(function, example):
    """Return the variables that a function reads."""
    read: dict[int, keras.Variable] = {}

    class Reading(keras.StatelessScope):
        def get_current_value(self, variable):
            read.setdefault(id(variable), variable)
            return super().get_current_value(variable)

    with torch.no_grad(), portable(), Reading():
        function(*example)
    return list(read.values())


def _flat(function, example, variables):
    """Return a module that holds the weights, and computes the function from flat arguments."""
    are_numbers = [isinstance(x, int) for x in keras.tree.flatten(example)]

    class Function(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for number, variable in enumerate(variables):
                self.register_buffer(f"weight_{number}", variable.value.detach())

        def forward(self, leaves):
            values = [
                x.shape[0] - 1 if is_number else x
                for x, is_number in zip(leaves, are_numbers, strict=True)
            ]
            mapping = list(zip(variables, self.buffers(), strict=True))
            with keras.StatelessScope(state_mapping=mapping):
                results = function(*keras.tree.pack_sequence_as(example, values))
            return [x.contiguous() for x in keras.tree.flatten(results)]

    return Function()


@functools.cache
def _environment():
    """Return the versions, sources and instruction sets that the compiled code depends on."""
    sources = hashlib.sha256()
    for path in sorted(Path(__file__).parents[2].rglob("*.py")):
        sources.update(path.read_bytes())
    versions = [FORMAT, torch.version.__version__, keras.__version__, sources.hexdigest()]
    return [*versions, *sorted(processor_features())]
