"""The runtime of a page: found in a folder, in a package, fetched by npm, and checked."""

import hashlib
import io
import subprocess
import tarfile
from unittest import mock

import pytest

from keras_transformer.export import web_runtime
from keras_transformer.export.web_runtime import FILES, LICENCES, VERSION, runtime_files

pytestmark = pytest.mark.once("reads files")
CONTENT = {name: name.encode() for name in FILES}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Let small files be the package."""
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in CONTENT.items()}
    monkeypatch.setattr(web_runtime, "FILES", hashes)


def packed(path, files):
    with tarfile.open(path, "w:gz") as package:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"package/dist/{name}")
            entry.size = len(content)
            package.addfile(entry, io.BytesIO(content))
    return path


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "dist").mkdir()
    for name, content in CONTENT.items():
        (tmp_path / "dist" / name).write_bytes(content)
    return tmp_path


def test_a_folder_and_a_package(folder, tmp_path):
    files = runtime_files(folder)
    assert {name: files[name] for name in CONTENT} == CONTENT
    assert b"MIT" in files["LICENSE"] and set(files) == {*FILES, *LICENCES}
    assert runtime_files(packed(tmp_path / "package.tgz", CONTENT)) == files


def test_npm(tmp_path):
    def npm(command, cwd, **_):
        assert command[1:] == ["pack", "--silent", f"onnxruntime-web@{VERSION}"]
        packed(cwd / "package.tgz", CONTENT)
        return subprocess.CompletedProcess(command, 0)

    with (
        mock.patch("shutil.which", return_value="/bin/npm"),
        mock.patch.object(subprocess, "run", npm),
    ):
        assert set(runtime_files()) == {*FILES, *LICENCES}


def test_bad_input(folder, tmp_path):
    with (
        mock.patch("shutil.which", return_value=None),
        pytest.raises(RuntimeError, match="npm, which is not installed. Or give the package"),
    ):
        runtime_files()
    failed = subprocess.CompletedProcess([], 1, stderr="no network")
    with (
        mock.patch("shutil.which", return_value="/bin/npm"),
        mock.patch.object(subprocess, "run", return_value=failed),
        pytest.raises(
            RuntimeError, match="could not fetch .*: no network\nWithout a network, give"
        ),
    ):
        runtime_files()
    with pytest.raises(ValueError, match="runtime must be a file or a folder, got '.*nowhere'"):
        runtime_files(tmp_path / "nowhere")
    (tmp_path / "text").write_text("no package")
    with pytest.raises(ValueError, match="text must be the file of `npm pack onnxruntime-web@"):
        runtime_files(tmp_path / "text")
    module, binary = FILES
    with pytest.raises(ValueError, match="must be the file of `npm pack"):
        runtime_files(packed(tmp_path / "half.tgz", {module: CONTENT[module]}))
    (folder / "dist" / binary).write_bytes(b"another version")
    message = f"dist/{binary} of the runtime .* must be that of onnxruntime-web {VERSION}, with"
    with pytest.raises(ValueError, match=message):
        runtime_files(folder)
    (folder / "dist" / binary).unlink()
    with pytest.raises(ValueError, match="got no such file"):
        runtime_files(folder)
