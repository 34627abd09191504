"""The runtime of an exported page: files of the npm package onnxruntime-web, and their licence."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from keras_transformer.system.extras import missing

PACKAGE, VERSION = "onnxruntime-web", "1.30.0"
MODULE, BINARY = "ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm"
# SHA-256 of the files in `dist/`: the smallest build, one thread, WebAssembly with SIMD.
FILES = {
    MODULE: "11e64bd8ffe11bd1a2a2f0d6275fdfbbba7262f0b76b99b53d228a8a22ef3d90",
    BINARY: "3398c10d07d229bd91b364548e130e0e51a8e5704b88c7c083ebbeb78842dee2",
}
LICENCES = "LICENSE", "ThirdPartyNotices.txt"
_OTHERWISE = (
    f"give the package with --runtime (runtime= in Python): the file of `npm pack "
    f"{PACKAGE}@{VERSION}` on another machine, or a folder node_modules/{PACKAGE}"
)


def runtime_files(source: str | os.PathLike | None = None) -> dict[str, bytes]:
    """Return the files of the runtime, and their licences, by name.

    The npm package has no text of its licence, so the texts come from the Python package of the
    same project.

    Args:
        source: The package: a folder, or the file that `npm pack` writes. None: `npm pack` fetches
            it.

    Raises:
        ImportError: If the Python package `onnxruntime` is missing.
        ValueError: If `source` does not exist or is not the package, or a file of it is missing or
            not that of the version `VERSION`.
        RuntimeError: If npm is missing or fails.
    """
    licences = _licences()
    if source is None:
        with tempfile.TemporaryDirectory() as folder:
            files = _unpacked(_fetched(Path(folder)))
    elif (path := Path(source)).is_dir():
        files = {x.name: x.read_bytes() for x in (path / "dist").glob("*") if x.name in FILES}
    elif path.is_file():
        files = _unpacked(path)
    else:
        raise ValueError(
            f"runtime must be a file or a folder, got {str(path)!r}: it does not exist"
        )
    for name, expected in FILES.items():
        actual = hashlib.sha256(files[name]).hexdigest() if name in files else "no such file"
        if actual != expected:
            raise ValueError(
                f"dist/{name} of the runtime {source or PACKAGE} must be that of {PACKAGE} "
                f"{VERSION}, with the SHA-256 {expected}, got {actual}"
            )
    return files | licences


def _fetched(folder):
    """Let npm write the package into a folder, and return its path."""
    if (npm := shutil.which("npm")) is None:
        raise RuntimeError(f"exporting a page needs npm, which is not installed. Or {_OTHERWISE}")
    command = [npm, "pack", "--silent", f"{PACKAGE}@{VERSION}"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace")
    if done.returncode:
        raise RuntimeError(
            f"npm could not fetch {PACKAGE} {VERSION}: {done.stderr.strip()[-500:]}\n"
            f"Without a network, {_OTHERWISE}"
        )
    return next(folder.glob("*.tgz"))


def _unpacked(path):
    """Return the needed files of a package that `npm pack` wrote, by name."""
    try:
        with tarfile.open(path) as package:
            members = [(name, package.extractfile(f"package/dist/{name}")) for name in FILES]
            return {name: member.read() for name, member in members if member}
    except (KeyError, tarfile.TarError) as error:
        raise ValueError(f"{path} must be the file of `npm pack {PACKAGE}@{VERSION}`") from error


def _licences():
    spec = importlib.util.find_spec("onnxruntime")
    if spec is None or not spec.submodule_search_locations:
        raise missing("exporting a page", "torch", "onnx")
    folder = Path(next(iter(spec.submodule_search_locations)))
    return {name: (folder / name).read_bytes() for name in LICENCES}
