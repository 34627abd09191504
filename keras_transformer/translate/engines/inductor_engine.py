"""The engine "inductor": the search of the engine "keras", compiled to C++ by PyTorch."""

from __future__ import annotations

import functools
import logging
import tempfile
import threading
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_transformer.backend import packages
from keras_transformer.config import require
from keras_transformer.models import EncoderDecoder
from keras_transformer.running.runner import Runner
from keras_transformer.system.files import cache_folder, can_write
from keras_transformer.text.lexical_shortlist import Shortlist
from keras_transformer.translate.engines.inductor_compiler import compile_elsewhere, compiled_search
from keras_transformer.translate.engines.keras_engine import KerasEngine

NAME = "inductor"
_PATIENCE = 60.0  # maximum seconds to wait for other processes that load the compiled search

log = logging.getLogger("keras_transformer.engine")


class InductorEngine(KerasEngine):
    """An engine that compiles the search with PyTorch, for the CPU.

    The first search is compiled with its options, for any number and length of texts. If no earlier
    process has done so, a child process compiles it in the background. Until it is compiled, and if
    that fails, the search runs as in `KerasEngine`, with the same results. Sampling, scores, and
    searches with other options, a constraint or a shortlist always run as in `KerasEngine`; if the
    first search had no prefixes, so do searches with prefixes, and conversely. The
    compiled code has its own copies of weights that it packs. Many texts are translated by one
    thread per core.

    Args:
        model: The model, in float32. Its weights must not change afterwards.
        shortlist: See `KerasEngine`.

    Raises:
        ValueError: If the backend is not PyTorch, the device is not the CPU, or the precision is
            not float32.
        ImportError: If there is no C++ compiler.
    """

    def __init__(self, model: EncoderDecoder, shortlist: Shortlist | None = None):
        super().__init__(model, shortlist)
        precision = model.quantization or model.compute_dtype
        require(precision == "float32", "precision", precision, f'float32 for engine="{NAME}"')
        folder = cache_folder(NAME)
        if not can_write(folder):
            self._temporary = tempfile.TemporaryDirectory()  # removed with this object
            folder = Path(self._temporary.name)
        self._runner: _Ahead = _Ahead(model, folder)

    def wait(self) -> None:
        """Wait until the first search is compiled, or its compilation has failed."""
        self._runner.wait()


class _Ahead(Runner):
    """A `Runner` whose first search runs in compiled code as soon as it is compiled."""

    def __init__(self, model: EncoderDecoder, folder: Path):
        super().__init__()
        self._packages, self._folder = packages(model, folder), folder
        self._choosing = threading.Lock()
        self._first: tuple[Hashable, bool] | None = None  # the search, and whether it has a prefix
        self._find: Callable | None = None  # the compiled search
        self._thread: threading.Thread | None = None

    def wait(self) -> None:
        """Wait until nothing is compiled in the background."""
        with self._choosing:
            thread = self._thread
        if thread is not None:
            thread.join()

    def workers(self, key: Hashable) -> int:
        is_compiled = self._find is not None and self._first is not None and self._first[0] == key
        return self._packages.workers if is_compiled else super().workers(key)

    def search(
        self, model: keras.Model, key: Any, begin: Callable, arguments: Any, varying: Any = ()
    ) -> list[np.ndarray]:
        source, _, prefix, *others = arguments
        kind, example = (key, prefix is not None), arguments[:3]
        if source.shape[1] > 1 and all(x is None for x in others):
            with self._choosing:
                if self._first is None:
                    self._first = kind
                    self._begin(model, key[0], example)
            if self._find is not None and kind == self._first:
                return self._find(*example)
        return super().search(model, key, begin, arguments, varying)

    def _begin(self, model, search, example):
        """Load the compiled search, or begin to compile it in the background."""
        self._find = compiled_search(self._packages.kept, model, search, example)
        if self._find is None:
            log.info("engine %s: compiling in the background; until then, engine keras", NAME)
            arguments = model, search, example
            self._thread = threading.Thread(target=self._compile, args=arguments, daemon=True)
            self._thread.start()

    def _compile(self, model, search, example):
        kept = functools.partial(self._packages.kept, timeout=_PATIENCE)
        try:
            compile_elsewhere(model, search, example, self._folder)
            self._find = compiled_search(kept, model, search, example)
            if self._find is None:
                raise ValueError("the compiled search is not in the cache")
            log.info("engine %s: compiled", NAME)
        except Exception as error:  # the compiler and its process fail in many ways
            log.warning("engine keras instead of %s: %s", NAME, error)
