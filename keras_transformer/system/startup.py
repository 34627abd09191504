"""Start-up before Keras is imported: choose a backend, silence logs.

This module imports only the standard library.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

from keras_transformer.system.extras import pip_install
from keras_transformer.system.memory import reuse_memory

BACKENDS = ("tensorflow", "jax", "torch")
AS_KERAS_WRITES = {  # the configuration file that Keras 3.15 writes at its first import
    "backend": "tensorflow",
    "floatx": "float32",
    "epsilon": 1e-07,
    "image_data_format": "channels_last",
    "nnx_enabled": False,
}
# PyPI has another project with the name of our command, keras-transformer. Its module has the name
# keras_transformer, too.
OTHER_PROJECT = "github.com/CyberZHG/keras-transformer"


def prepare() -> None:
    """Prepare the process for Keras; called once, when the package is imported.

    A command-line process also keeps freed memory, lets idle threads sleep, and loads Keras and
    TensorFlow without their optional dependencies.

    Raises:
        ImportError: If no backend or not the requested one is installed, or if the other project
            named `keras-transformer` is installed.
        ValueError: If KERAS_BACKEND or Keras's configuration file names an unknown backend, or the
            file has JSON that is not an object.
        SystemExit: Instead of these errors in a command-line process, after one line on stderr.
    """
    try:
        refuse_other_project()
        if "keras" not in sys.modules:
            choose_backend()
    except (ImportError, ValueError) as error:
        if _is_command_line():
            _say(str(error))
            raise SystemExit(2) from None
        raise
    if _is_command_line():
        reuse_memory(of_any_size=True)
        _let_threads_sleep()
        sys.meta_path.insert(0, WithoutExtras())
    # TensorFlow's C++ code logs an error on machines without a GPU.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # PyTorch on a CPU: use large pages for large tensors. With small pages, mapping the memory of
    # the logits (tokens x vocabulary) at each step costs more time than computing them.
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
    if "tensorflow" not in sys.modules and PathFinder in sys.meta_path:
        sys.meta_path.insert(sys.meta_path.index(PathFinder), QuietTensorFlow())


def _let_threads_sleep() -> None:
    """Let idle threads of PyTorch spin only briefly, then sleep. Call before PyTorch is loaded.

    GNU's OpenMP spins for some milliseconds. Beside other work, its spinning threads keep cores
    busy, and a training step takes twice the processor time.
    """
    if not {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & os.environ.keys():
        os.environ["GOMP_SPINCOUNT"] = "10000"


def refuse_other_project() -> None:
    """Raise ImportError if the other project is installed: both use the folder keras_transformer.

    This reads folder names, which takes less than 1 ms; `importlib.metadata` would take 30 ms.
    """
    for folder in sys.path:
        with contextlib.suppress(OSError):
            for name in os.listdir(folder or "."):
                if name.startswith("keras_transformer-") and _is_other_project(folder, name):
                    raise ImportError(
                        f"another project named keras-transformer is installed in {folder}; it has "
                        "a module keras_transformer too, so the files of both are mixed: "
                        "pip uninstall keras-transformer transformer-for-keras, then install this "
                        "project again"
                    )


def _is_other_project(folder: str, name: str) -> bool:
    files = [Path(folder, name, file) for file in ("METADATA", "PKG-INFO")]
    return any(x.is_file() and OTHER_PROJECT in x.read_text("utf-8", "replace") for x in files)


def choose_backend() -> None:
    """Set KERAS_BACKEND, unless it is set or Keras's configuration names an installed backend.

    Keras uses the backend in KERAS_BACKEND, else the one in its configuration file, else
    TensorFlow. At its first import Keras writes that file with "tensorflow", whatever is installed.
    A line on stderr therefore names the chosen backend if that file does not exist yet, or if a
    user wrote it and it names a backend that is not installed.

    Raises:
        ImportError: If no backend or not the requested one is installed.
        ValueError: If the requested backend is unknown, or Keras's configuration file has JSON that
            is not an object.
    """
    installed = [name for name in BACKENDS if importlib.util.find_spec(name)]
    if not installed:
        commands = ", or ".join(map(pip_install, BACKENDS))
        raise ImportError(f"keras_transformer needs TensorFlow, JAX or PyTorch: {commands}")
    if asked := os.environ.get("KERAS_BACKEND"):
        _check("KERAS_BACKEND", asked)
        if asked not in installed:
            raise ImportError(
                f"KERAS_BACKEND is {asked!r}, which is not installed: {pip_install(asked)}, "
                f"or choose one of {installed}"
            )
        return
    path = _keras_configuration()
    try:
        values, first = json.loads(path.read_text("utf-8")), False
    except (OSError, ValueError):  # missing, or not JSON: Keras uses its defaults
        values, first = {}, not path.exists()
    if not isinstance(values, dict):
        raise ValueError(f"{path} must hold a JSON object, got {values!r}")
    configured = values.get("backend")
    if configured is not None:
        _check(f'"backend" in {path}', configured)
    if configured not in installed:
        os.environ["KERAS_BACKEND"] = installed[0]  # child processes then print no second line
        if first:
            _say(f"the backend is {installed[0]}; set KERAS_BACKEND to choose another")
        elif configured and not values.items() <= AS_KERAS_WRITES.items():
            _say(
                f"{path} chooses {configured}, which is not installed: using {installed[0]} "
                f"(set KERAS_BACKEND={installed[0]} to hide this message)"
            )


def _check(name: str, backend: object) -> None:
    if backend not in BACKENDS:
        raise ValueError(f"{name} must be one of {sorted(BACKENDS)}, got {backend!r}")


def _keras_configuration() -> Path:
    """Return the path of Keras's configuration file, by the rules of Keras 3.15."""
    home = os.path.expanduser("~")
    home = home if os.access(home, os.W_OK) else "/tmp"
    return Path(os.environ.get("KERAS_HOME", f"{home}/.keras")).expanduser() / "keras.json"


def _is_command_line() -> bool:
    """Return whether this process runs our command, or a module of this project with `-m`."""
    program, arguments = sys.argv[0] if sys.argv else "", sys.orig_argv
    if "-m" in arguments[:-1]:
        *packages, module = arguments[arguments.index("-m") + 1].split(".")
        # `program` is "-m" while Python is still looking for the module, and its file afterwards.
        is_ours = [*packages, module][0] in ("keras_transformer", "training", "benchmarks")
        if is_ours and (program == "-m" or Path(program).stem in (module, "__main__")):
            return True
    return Path(program).stem == "keras-transformer"


def _say(message: str) -> None:
    print(f"keras-transformer: {message}", file=sys.stderr, flush=True)


class WithoutExtras:
    """An import finder that hides packages that Keras and TensorFlow import, but do not need.

    Keras 3.15 imports scikit-learn, pandas and matplotlib where they are installed, for wrappers,
    data frames and plots that no command uses. They take a third of the processor time of
    `import keras` under JAX. One of Keras's callbacks imports JAX, which takes a sixth of that time
    under the other backends. TensorFlow 2.21 imports Keras, with the backend of KERAS_BACKEND, for
    optimizers in SavedModels, and JAX for a converter. Both take more than half of the processor
    time of a translation with a SavedModel. After these imports, the hidden packages can be
    imported as usual.
    """

    HIDDEN = {  # noqa: RUF012 (a constant)
        "keras": ("sklearn", "pandas", "matplotlib"),
        "keras.src.callbacks.orbax_checkpoint": ("jax",),
        "tensorflow": ("keras", "jax"),
    }

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec that `PathFinder` finds for a hidden module.

        Loading the module then fails. It still has a spec, because PyTorch and TensorFlow check
        whether it has one.
        """
        importers = [x for x, hidden in self.HIDDEN.items() if name in hidden and _is_importing(x)]
        spec = PathFinder.find_spec(name, path, target) if importers else None

        def refuse(module):
            raise ModuleNotFoundError(f"{name} is not loaded by {importers[0]}", name=name)

        if spec and spec.loader:
            spec.loader.exec_module = refuse  # type: ignore[method-assign]  # of this one object
        return spec


def _is_importing(name: str) -> bool:
    spec = getattr(sys.modules.get(name), "__spec__", None)
    return bool(getattr(spec, "_initializing", False))


class QuietTensorFlow:
    """An import finder that hides the log lines that TF_CPP_MIN_LOG_LEVEL should hide.

    TensorFlow 2.21 logs some lines while its libraries load, before it reads that variable.
    During the import, stderr is therefore redirected to a file; the remaining lines are written to
    stderr afterwards.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec that `PathFinder` finds for TensorFlow, with a quiet loader."""
        spec = PathFinder.find_spec(name, path, target) if name == "tensorflow" else None
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def quietly(module):
            with _filtered_stderr():
                execute(module)

        spec.loader.exec_module = quietly  # type: ignore[method-assign]  # of this one object
        return spec


@contextlib.contextmanager
def _filtered_stderr():
    """Redirect stderr to a file in the context; then write the lines that are not hidden."""
    level = os.environ.get("TF_CPP_MIN_LOG_LEVEL", "0")
    hidden = "IWE"[: int(level) if level.isdigit() else 0]
    try:
        stderr = os.dup(2) if hidden else None
    except OSError:  # stderr is closed
        stderr = None
    if stderr is None:
        yield
        return
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
            file.seek(0)
            os.write(2, without_log_lines(file.read(), hidden))


def without_log_lines(text: bytes, hidden: str) -> bytes:
    """Return the text without lines that Abseil logged at a hidden level.

    Args:
        text: Bytes that were written to stderr.
        hidden: Letters of the hidden levels: any of I, W and E.
    """
    heading = rb"WARNING: All log messages before absl::InitializeLog\(\) .*"
    logged = rb"[%s]\d{4} [\d:.]+ +\d+ \S+:\d+\] .*" % hidden.encode()
    return re.sub(rb"(?m)^(?:%s|%s)(?:\n|\Z)" % (heading, logged), b"", text)
