"""Functions over a model that PyTorch's compiler makes programs of, which are kept on disk.

A step of a search is hundreds of small operations, and Python takes longer to call them than they
take themselves. TorchInductor (Ansel et al. 2024, PyTorch 2) writes a recorded function as C++.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import sys
import warnings
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import torch

from keras_transformer.backend import private
from keras_transformer.backend.compilation import portable
from keras_transformer.system.files import replacing
from keras_transformer.system.locks import waiting
from keras_transformer.system.processor import processor_features

FORMAT = 1  # of the packages; those of another number are compiled again
# Frozen weights are part of the code, which has one thread: more would cost small models much.
_CONFIG = {"freezing": True, "cpp.threads": 1, "compile_threads": 1}


class Packages:
    """Compiles functions over a model, each once for all later processes.

    Args:
        model: The model, whose weights become part of the code.
        folder: Folder of the compiled functions; made if it is missing.

    Raises:
        ImportError: If there is no C++ compiler.
        ValueError: If the model is not on the processor.
    """

    def __init__(self, model: keras.Model, folder: Path):
        _require_compiler()
        device = torch.device(private.device()).type
        if device != "cpu":
            raise ValueError(f"the device must be cpu for compiled functions, got {device!r}")
        folder.mkdir(0o700, parents=True, exist_ok=True)
        self._variables, self._folder = model.variables, folder

    def compiled(
        self, name: str, function: Callable, examples: Sequence[Sequence[Any]]
    ) -> Callable[[Sequence[Any]], list[Any]]:
        """Return `function`, compiled: from the leaves of its arguments to those of its result.

        Args:
            name: What the function computes, as far as weights and shapes of arguments leave open.
            function: Function from trees of tensors and positive numbers to a tree of tensors.
            examples: Two calls, which differ in each number and each size that may differ.

        Raises:
            ValueError: If the compiler cannot compile the function.
        """
        leaves = [[*map(_carrier, keras.tree.flatten(example))] for example in examples]
        variables = _variables_of(function, examples[0])
        sizes = [[(*x.shape, str(x.dtype)) for x in example] for example in leaves]
        key = json.dumps([name, sizes, [*map(_digest, variables)], _environment()])
        path = self._folder / f"{hashlib.sha256(key.encode()).hexdigest()[:40]}.pt2"
        with waiting(path.with_suffix(".lock")):
            if not _is_whole(path):
                flat = _flat(function, examples[0], variables)
                with replacing(path) as temporary:
                    self._compile(flat, leaves, temporary)
            run = private.package_runner(path)
        return lambda leaves: run(
            [x.contiguous() if type(x) is torch.Tensor else _carrier(x) for x in leaves]
        )

    def _compile(self, function, leaves, path):
        same, any_size = torch.export.Dim.STATIC, torch.export.Dim.DYNAMIC
        sizes = [
            {
                axis: same if size == other else any_size
                for axis, (size, other) in enumerate(zip(x.shape, y.shape, strict=True))
            }
            for x, y in zip(*leaves, strict=True)
        ]
        told = "compiling a part of the search for this processor, once, which takes minutes"
        warnings.warn(told, stacklevel=2)
        try:
            with torch.no_grad(), portable(), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of PyTorch about itself
                program = torch.export.export(
                    function, (leaves[0],), dynamic_shapes=(sizes,), strict=False
                )
                own = {x.value.data_ptr() for x in self._variables}
                # The name of the package would not tell it from that of another model.
                if any(x.data_ptr() in own for x in program.constants.values()):
                    raise ValueError("it reads weights past their variables")
                private.write_package(program, path, _CONFIG)
        except Exception as error:  # of many kinds
            raise ValueError(f"PyTorch cannot compile the search: {error}") from error


def _is_whole(path):
    """Return whether there is such a package and each byte is as it was written."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.testzip() is None
    except (OSError, zipfile.BadZipFile):
        return False


def _digest(variable):
    values = keras.ops.convert_to_numpy(variable)
    return hashlib.sha256(np.ascontiguousarray(values)).hexdigest()


def _require_compiler():
    name = os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++")
    if sys.platform != "win32" and shutil.which(name) is None:
        raise ImportError(
            f"a C++ compiler is needed, and {name} is missing: install it, or set CXX"
        )


def _carrier(x):
    """Return a tensor in the order that compiled code expects; of a number, one of its size."""
    if isinstance(x, np.ndarray):
        return torch.from_numpy(np.ascontiguousarray(x))
    return x.contiguous() if torch.is_tensor(x) else torch.empty(x + 1, 0)


def _variables_of(function, example):
    """Return the variables that a function reads."""
    read = {}

    class Reading(keras.StatelessScope):
        def get_current_value(self, variable):
            read.setdefault(id(variable), variable)
            return super().get_current_value(variable)

    with torch.no_grad(), portable(), Reading():
        function(*example)
    return list(read.values())


def _flat(function, example, variables):
    """Return a module that holds the weights and computes the function from its leaves."""
    are_numbers = [isinstance(x, int) for x in keras.tree.flatten(example)]

    class Function(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for number, variable in enumerate(variables):
                self.register_buffer(f"weight_{number}", variable.value.detach())

        def forward(self, leaves):
            given = [
                x.shape[0] - 1 if is_number else x
                for x, is_number in zip(leaves, are_numbers, strict=True)
            ]
            mapping = list(zip(variables, self.buffers(), strict=True))
            with keras.StatelessScope(state_mapping=mapping):
                found = function(*keras.tree.pack_sequence_as(example, given))
            return [x.contiguous() for x in keras.tree.flatten(found)]

    return Function()


@functools.cache
def _environment():
    """Return what compiled code depends on beside its function."""
    sources = hashlib.sha256()
    for path in sorted(Path(__file__).parents[2].rglob("*.py")):
        sources.update(path.read_bytes())
    versions = [FORMAT, torch.version.__version__, keras.__version__, sources.hexdigest()]
    return [*versions, *sorted(processor_features()), torch.get_num_threads()]
