"""Exports of SavedModels: versions, failures and bad options."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import keras
import pytest

from keras_transformer.export import saved_model
from tests.export.translators import save_translator

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("tensorflow_text") is None, reason="tensorflow_text is not installed"
)


@pytest.fixture(scope="module")
def folder(randomize, tmp_path_factory):
    """A saved translator."""
    return save_translator(randomize, tmp_path_factory.mktemp("plain"), shared=False)


def test_version_is_not_overwritten_unless_asked(folder, tmp_path, monkeypatch):
    path = tmp_path / "name" / "3"
    path.mkdir(parents=True)
    (path / "old").touch()
    with pytest.raises(FileExistsError, match="overwrite=True"):
        saved_model(folder, tmp_path / "name", version=3)
    assert os.listdir(path) == ["old"]

    def export(module, task, backend):
        Path(task["path"]).mkdir()
        Path(task["path"], "new").touch()

    monkeypatch.setattr(implementation(), "run_elsewhere", export)
    with pytest.raises(FileExistsError, match="3 holds old, which would be lost"):
        saved_model(folder, tmp_path / "name", version=3, overwrite=True)
    assert os.listdir(path) == ["old"]
    os.rename(path / "old", path / "new")
    saved_model(folder, tmp_path / "name", version=3, overwrite=True)
    assert os.listdir(path) == ["new"]


def test_failure_is_readable_and_leaves_the_old_version(folder, tmp_path, monkeypatch):
    path = tmp_path / "name" / "1"
    path.mkdir(parents=True)
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'MemoryError: too large' >&2\nexit 3\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(RuntimeError, match=r"(?s)status 3.*MemoryError: too large"):
        saved_model(folder, tmp_path / "name", overwrite=True)
    assert os.listdir(tmp_path / "name") == ["1"]


def test_refuses_a_folder_without_translator(tmp_path):
    with pytest.raises(ValueError, match=r"is not a saved translator: it has no config\.json"):
        saved_model(tmp_path, tmp_path / "name")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("version", [0, -1, 1.5, True, "1", None])
def test_refuses_a_bad_version(folder, tmp_path, version):
    with pytest.raises(ValueError, match="version must be a whole number of at least 1"):
        saved_model(folder, tmp_path / "name", version=version)


@pytest.mark.parametrize(
    "option",
    [dict(beam_size=0), dict(length_penalty=-1.0), dict(max_extra_length=0), dict(protect=True)],
)
def test_refuses_a_bad_option(folder, tmp_path, option):
    (name,) = option
    with pytest.raises(ValueError, match=f"{name} must be"):
        saved_model(folder, tmp_path / "name", **option)


@pytest.mark.parametrize("missing", ["tensorflow", "tensorflow_text"])
def test_names_the_extra_to_install(folder, tmp_path, monkeypatch, missing):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == missing else find_spec(name)
    )
    with pytest.raises(ImportError, match='needs the extra "tensorflow"'):
        saved_model(folder, tmp_path / "name")


def test_importing_export_leaves_tensorflow_alone():
    backend = keras.backend.backend()
    if backend == "tensorflow":
        backend = "jax" if importlib.util.find_spec("jax") else "torch"
    code = "import keras_transformer.export, sys; print('tensorflow' in sys.modules)"
    process = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "KERAS_BACKEND": backend},
        capture_output=True,
        text=True,
    )
    assert process.stdout.split() == ["False"], process.stderr


def implementation():
    """Return the module: as an attribute of its package, the name is the function."""
    return sys.modules["keras_transformer.export.saved_model"]
