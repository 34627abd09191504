"""Replacing files and folders: whole or not at all."""

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import filelock
import pytest

from keras_transformer.system.files import (
    can_write,
    keep_newest,
    locked,
    read_json,
    removed,
    replacing,
    scratch,
    write_json,
    write_synced,
)


def tree(folder):
    """Every file below, with its text."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_text() for path in files}


def write_folder(folder, **files):
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)


def test_a_new_file_in_new_folders(tmp_path):
    path = tmp_path / "a" / "b" / "model.keras"
    with replacing(path) as temporary:
        assert temporary.suffix == ".keras" and not temporary.exists()
        temporary.write_text("new")
        assert not path.exists()
    assert tree(tmp_path) == {"a/b/model.keras": "new"}
    assert os.listdir(path.parent) == ["model.keras"]


def test_a_file_takes_the_place_of_the_old_one(tmp_path):
    path = tmp_path / "model.keras"
    path.write_text("old")
    with replacing(str(path)) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert tree(tmp_path) == {"model.keras": "new"}


def test_a_folder_takes_the_place_of_the_old_one(tmp_path):
    path = tmp_path / "run"
    write_folder(path, a="old", only_old="old")
    with replacing(path) as temporary:
        write_folder(temporary, a="new", b="new")
        assert tree(path) == {"a": "old", "only_old": "old"}
    assert tree(tmp_path) == {"run/a": "new", "run/b": "new"}
    assert os.listdir(tmp_path) == ["run"]


@pytest.mark.parametrize("error", [OSError("No space left on device"), KeyboardInterrupt()])
def test_an_exception_leaves_the_old_file_whole(tmp_path, error):
    path = tmp_path / "model.keras"
    path.write_text("old")
    with pytest.raises(type(error)), replacing(path) as temporary:
        temporary.write_text("half of the n")
        raise error
    assert tree(tmp_path) == {"model.keras": "old"}
    assert os.listdir(tmp_path) == ["model.keras"]


def test_an_exception_leaves_the_old_folder_whole(tmp_path):
    path = tmp_path / "run"
    write_folder(path, a="old", b="old")
    with pytest.raises(OSError), replacing(path) as temporary:
        write_folder(temporary, a="new")
        raise OSError("No space left on device")
    assert tree(tmp_path) == {"run/a": "old", "run/b": "old"}
    assert os.listdir(tmp_path) == ["run"]


def test_an_exception_leaves_no_new_folders(tmp_path):
    (tmp_path / "old").mkdir()
    with pytest.raises(OSError), replacing(tmp_path / "old" / "a" / "b" / "run") as temporary:
        write_folder(temporary, a="new")
        raise OSError("No space left on device")
    assert list(tmp_path.rglob("*")) == [tmp_path / "old"]
    with pytest.raises(OSError), replacing(tmp_path / "old" / "run"):
        raise OSError("No space left on device")
    assert os.listdir(tmp_path) == ["old"]


def test_a_body_that_writes_nothing_leaves_the_old_folder_whole(tmp_path):
    path = tmp_path / "run"
    write_folder(path, a="old")
    with pytest.raises(OSError), replacing(path):
        pass
    assert tree(tmp_path) == {"run/a": "old"}


def test_a_move_that_fails_leaves_the_old_folder_whole(tmp_path, monkeypatch):
    path, move = tmp_path / "run", os.replace
    write_folder(path, a="old")

    def fail_for_the_new_one(source, target):
        if str(target) == str(path) and (source / "a").read_text() == "new":
            raise OSError("Input/output error")
        move(source, target)

    with pytest.raises(OSError), replacing(path) as temporary:
        write_folder(temporary, a="new")
        monkeypatch.setattr(os, "replace", fail_for_the_new_one)
    assert tree(tmp_path) == {"run/a": "old"}


def test_json_and_back(tmp_path):
    value = {"bleu": 41.02, "language": "Deutsch: ä ö ü", "steps": [1, 2], "none": None}
    write_json(tmp_path / "metrics.json", value)
    assert read_json(tmp_path / "metrics.json") == value
    text = (tmp_path / "metrics.json").read_text("utf-8")
    assert "ä ö ü" in text and text.endswith("}\n") and json.loads(text) == value


def test_a_synced_file_and_back(tmp_path):
    for data in (b"one", b"other"):
        write_synced(tmp_path / "a", data)
        assert (tmp_path / "a").read_bytes() == data and len(list(tmp_path.iterdir())) == 1


def test_json_that_cannot_be_written_leaves_the_old_file(tmp_path):
    write_json(tmp_path / "metrics.json", {"bleu": 1})
    with pytest.raises(TypeError):
        write_json(tmp_path / "metrics.json", {"bleu": object()})
    assert read_json(tmp_path / "metrics.json") == {"bleu": 1}
    assert os.listdir(tmp_path) == ["metrics.json"]


@pytest.mark.parametrize("text", [b'{"bleu": ', b"\xff\xfe{", b"[" * 200_000])
def test_json_that_cannot_be_read_names_the_file(tmp_path, text):
    (tmp_path / "metrics.json").write_bytes(text)
    with pytest.raises(ValueError, match=r"metrics\.json is not valid JSON"):
        read_json(tmp_path / "metrics.json")


# Ends by a kill while it writes "run" of the folder it is given, in one way or another.
KILLED = """
import os, pathlib, signal, sys
from keras_transformer.system.files import locked, replacing, scratch
folder = pathlib.Path(sys.argv[1])
def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[2] == "locked":
    with locked(folder):
        die()
with replacing(folder / "run") as temporary:
    temporary.mkdir()
    (temporary / "a").write_text("new")
    if sys.argv[2] == "between":
        move = os.replace
        def once(source, target):
            move(source, target)
            die()
        os.replace = once
    else:
        with scratch(folder / "saving"):
            die()
"""


def killed(folder, how):
    done = subprocess.run([sys.executable, "-c", KILLED, str(folder), how], capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr


def test_what_a_killed_process_left_is_removed_and_what_a_live_one_writes_is_not(tmp_path):
    killed(tmp_path, "inside")
    write_folder(tmp_path / ".run.k3_x9q0a.partial", a="left by an older version")
    write_folder(tmp_path / ".saving.k3_x9q0a", a="left by an older version")
    write_folder(tmp_path / ".run.and.another.partial", a="a stranger's")
    assert len(os.listdir(tmp_path)) == 5
    with scratch(tmp_path / "run") as live:
        (live / "a").write_text("of this process")
        with scratch(tmp_path / "saving") as saving, replacing(tmp_path / "run") as temporary:
            write_folder(temporary, a="new")
        names = {".run.and.another.partial", live.name, "run"}
        assert {*os.listdir(tmp_path)} == names and not saving.exists()
        assert (live / "a").read_text() == "of this process"
    assert {*os.listdir(tmp_path)} == {".run.and.another.partial", "run"}


def test_a_kill_between_the_two_moves_of_a_folder_loses_neither(tmp_path):
    write_folder(tmp_path / "run", a="old")
    killed(tmp_path, "between")
    assert not (tmp_path / "run").exists()
    with pytest.raises(OSError), replacing(tmp_path / "run"):
        raise OSError("and the next one fails")
    assert tree(tmp_path) == {"run/a": "new"}


def test_a_folder_is_of_one_process_at_a_time(tmp_path):
    run = tmp_path / "a" / "run"
    said = pytest.raises(ValueError, match=rf"run is in use .*process {os.getpid()}\b")
    with locked(run), said, locked(run):
        pass
    assert not run.parent.exists()  # it was made for nothing
    killed(run, "locked")
    with locked(run):
        (run / "a").write_text("new")
        write_folder(run / "checkpoints", a="old")
        (run / "link").symlink_to(tmp_path)
        removed(*(run / name for name in ("a", "checkpoints", "link", "none")))
        assert not tree(run).keys() - {".lock"} and len(os.listdir(run)) == 1
        with pytest.raises(ValueError, match="in use"), locked(run):
            pass
        (run / "a").write_text("new")
    assert tree(tmp_path) == {"a/run/a": "new"}


def test_a_process_left_nothing_that_a_run_does_not_remove(tmp_path):
    killed(tmp_path, "inside")
    (tmp_path / "checkpoints").mkdir()
    killed(tmp_path / "checkpoints", "inside")
    with locked(tmp_path):
        assert {*os.listdir(tmp_path)} == {".lock", "checkpoints"}
        assert os.listdir(tmp_path / "checkpoints") == []


def test_a_file_system_without_locks_is_written_to_all_the_same(tmp_path, monkeypatch):
    def acquire(*_, **__):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(filelock.FileLock, "acquire", acquire)
    write_folder(tmp_path / ".run.k3_x9q0a.partial", a="of whom nobody knows")
    with locked(tmp_path), replacing(tmp_path / "run") as temporary:
        write_folder(temporary, a="new")
    assert tree(tmp_path) == {
        "run/a": "new",
        ".run.k3_x9q0a.partial/a": "of whom nobody knows",
    }


class RustError(Exception):
    pass


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        RustError("Error while serializing: I/O error: No space left on device (os error 28)"),
        RuntimeError("Can't write data (errno = 28, error message = 'No space left on device')"),
    ],
)
def test_a_full_disk_is_named_with_what_could_not_be_written(tmp_path, error):
    path = tmp_path / "epoch-0003"
    write_folder(path, a="old")
    message = r"(No space|quota).*: .*epoch-0003 could not be written; its old content is intact"
    with pytest.raises(OSError, match=message) as found, replacing(path) as temporary:
        temporary.mkdir()
        with replacing(temporary / "weights"):
            raise error
    assert ".partial" not in str(found.value)
    assert tree(tmp_path) == {"epoch-0003/a": "old"}


@pytest.mark.skipif(os.name != "posix", reason="POSIX modes")
def test_modes_are_the_umasks(tmp_path):
    before = os.umask(0o027)
    try:
        with replacing(tmp_path / "new" / "run") as temporary:
            write_folder(temporary, a="like tempfile's", b="a program")
            (temporary / "a").chmod(0o600)
            (temporary / "b").chmod(0o755)
            (temporary / "folder").mkdir(0o700)
    finally:
        os.umask(before)
    run = tmp_path / "new" / "run"
    modes = {x.name: x.stat().st_mode & 0o777 for x in (run, *run.iterdir())}
    assert modes == {"run": 0o750, "a": 0o640, "b": 0o755, "folder": 0o750}


def test_any_name_can_be_replaced(tmp_path):
    for name in ("old", "old.old", ".lock"):
        for text in ("1", "2"):
            with replacing(tmp_path / name) as temporary:
                write_folder(temporary, a=text)
        assert tree(tmp_path / name) == {"a": "2"}


def test_whether_a_folder_can_be_written_to(tmp_path):
    assert can_write(tmp_path / "a" / "b") and os.listdir(tmp_path / "a" / "b") == []
    assert not can_write(Path(os.devnull) / "a")
    (tmp_path / "file").touch()
    assert not can_write(tmp_path / "file")


def test_a_cache_keeps_its_newest_files(tmp_path):
    paths = [tmp_path / f"{number}.pt2" for number in range(4)]
    for number, path in enumerate(paths):
        path.write_bytes(b"x" * 10)
        os.utime(path, (number, number))
    keep_newest(paths, 40)
    assert all(path.exists() for path in paths)
    with filelock.FileLock(tmp_path / "0.lock"):  # a process uses it
        keep_newest([*paths, tmp_path / "gone.pt2"], 20)
    assert [path.exists() for path in paths] == [True, False, True, True]
    keep_newest(paths, 5)
    assert [path.exists() for path in paths] == [False, False, False, True]
