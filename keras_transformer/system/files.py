"""Write files and folders so that a killed process or a full disk leaves the old ones intact."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from filelock import FileLock

from keras_transformer.system.failures import full_disk
from keras_transformer.system.git_lfs import refuse_pointer
from keras_transformer.system.locks import acquired, owned

LOCK = ".lock"
MOST_CACHED = 1 << 30  # maximum bytes of a cache of compiled programs
# Names of the folders that `scratch` makes, and that older versions made with `tempfile`.
_SCRATCH = re.compile(r"\.(?P<name>.+)\.[a-z0-9_]{8}\.partial|\.saving\.[a-z0-9_]{8}")


def cache_folder(name: str) -> Path:
    """Return the path of the user's cache folder `name`, which may not exist."""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return caches / "keras_transformer" / name


def can_write(folder: Path) -> bool:
    """Return whether files can be written to a folder; it is made if it is missing."""
    try:
        folder.mkdir(0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def keep_newest(files: Iterable[Path], most: int) -> None:
    """Remove the oldest files of a cache until the rest has at most `most` bytes.

    The newest file is always kept, and so are files whose lock (the file with the suffix `.lock`)
    is held.
    """
    facts = []
    for path in files:
        with contextlib.suppress(FileNotFoundError):  # another process has removed it
            facts.append((path.stat().st_mtime_ns, path.stat().st_size, path))
    sizes = itertools.accumulate(size for _, size, _ in sorted(facts, reverse=True))
    for (_, _, path), size in list(zip(sorted(facts, reverse=True), sizes, strict=True))[1:]:
        if size > most and (lock := acquired(path.with_suffix(LOCK))) is not None:
            removed(path)
            lock.release()


def check_free(path: str | os.PathLike, overwrite: bool) -> None:
    """Raise FileExistsError if `path` exists and `overwrite` is False."""
    if Path(path).exists() and not overwrite:
        ways = "choose another, or replace it (--overwrite; overwrite=True in Python)"
        raise FileExistsError(f"{path} exists: {ways}")


@contextlib.contextmanager
def replacing(path: str | os.PathLike, *, lose_others: bool = True) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success, move it to `path`.

    The body writes a file or a folder at the temporary path. If it raises, the temporary path and
    the parent folders created for it are removed, and `path` keeps its old content. The temporary
    path has the name of `path`: some writers depend on its suffix.

    Args:
        path: The file or folder to replace.
        lose_others: Whether to delete files of the old folder that the new folder lacks.

    Raises:
        FileExistsError: If the new folder lacks files of the old one and `lose_others` is False.
        OSError: If the disk is full; the message names `path`.
    """
    path = Path(path)
    with _made(path.parent), scratch(path) as room:
        temporary, old = room / path.name, _old(room, path.name)
        yield temporary
        if temporary.exists():
            _open_to_others(temporary, room.stat().st_mode)
        if not lose_others:
            _check_others(path, temporary)
        if path.is_dir() and temporary.exists():
            # A folder cannot be replaced in one step: move the old one away first.
            os.replace(path, old)
            try:
                os.replace(temporary, path)
            except BaseException:
                os.replace(old, path)
                raise
        else:
            os.replace(temporary, path)


@contextlib.contextmanager
def updating(folder: str | os.PathLike, name: str, gone: Collection[str] = ()) -> Iterator[Path]:
    """Yield an empty folder; at the end, its entries replace those of `folder`, all or none.

    Other entries of `folder` are kept. If the process is killed while it moves the entries,
    `remove_stale` moves the rest: call that function before reading the folder.

    Args:
        folder: The folder, which exists.
        name: Name for the scratch folder and for errors, such as that of the most important entry.
        gone: Names of entries to remove from `folder`, unless the body writes them anew.

    Raises:
        OSError: If the disk is full; the message names the entry.
    """
    folder = Path(folder)
    with scratch(folder / name) as room:
        new = room / name
        new.mkdir()
        yield new
        _open_to_others(new, room.stat().st_mode)
        lost = [entry for entry in gone if not (new / entry).exists()]
        _gone(room, name).write_text(json.dumps(lost), "utf-8")
        os.replace(new, _ready(room, name))
        _move_all(folder, room, name)


def _move_all(folder, room, name):
    """Move the entries that `updating` prepared into `folder`, and remove those it lists as gone.

    After a kill, the same call finishes the rest.
    """
    ready = _ready(room, name)
    for entry in sorted(os.listdir(ready)):
        if (folder / entry).is_dir():
            shutil.rmtree(folder / entry)
        os.replace(ready / entry, folder / entry)
    removed(*(folder / entry for entry in json.loads(_gone(room, name).read_text("utf-8"))))
    ready.rmdir()


@contextlib.contextmanager
def scratch(path: str | os.PathLike) -> Iterator[Path]:
    """Yield an empty folder beside `path` to prepare its content in, and remove it at the end.

    Scratch folders of killed processes are removed first. Each process holds a lock inside its
    scratch folder; the operating system releases the lock when the process ends.

    Raises:
        OSError: If the disk is full; the message names `path`.
    """
    path, lock = Path(path), None
    remove_stale(path.parent, path.name)
    try:
        while lock is None:  # another process may remove the folder as stale before it is locked
            room = path.parent / f".{path.name}.{secrets.token_hex(4)}.partial"
            room.mkdir()
            with contextlib.suppress(FileNotFoundError):
                lock = acquired(room / f"{path.name}{LOCK}")
        yield room
    except Exception as error:
        if (number := full_disk(error)) is None:
            raise
        is_ready = _ready(room, path.name).exists()
        state = "the next use completes it" if is_ready else "its old content is intact"
        raise OSError(
            number, f"{os.strerror(number)}: {path} could not be written; {state}"
        ) from error
    finally:
        if lock is not None:
            lock.release()
        if not _is_needed(room, path):
            shutil.rmtree(room, ignore_errors=True)


def _is_needed(room, path):
    """Return whether a scratch folder holds content that could not be moved to its place."""
    lost = _old(room, path.name).exists() and not path.exists()
    return lost or _ready(room, path.name).exists()


def remove_stale(folder: str | os.PathLike, name: str | None = None) -> None:
    """Remove scratch folders of killed processes, after moving complete content to its place.

    Args:
        folder: The folder; nothing happens if it does not exist.
        name: Only scratch folders for the entry of this name; None: all.
    """
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for match in filter(None, map(_SCRATCH.fullmatch, names)):
        target, room = match["name"] or "saving", Path(folder, match.string)
        if name not in (None, target):
            continue
        # OSError: it belongs to another user, for example, or another process removed it first.
        with contextlib.suppress(OSError):
            lock = acquired(room / f"{target}{LOCK}")
            if not isinstance(lock, FileLock):
                continue
            try:
                # The process was killed between moves: what it wrote is complete.
                if _ready(room, target).exists():
                    _move_all(Path(folder), room, target)
                elif _old(room, target).exists() and not Path(folder, target).exists():
                    os.replace(room / target, Path(folder, target))
            finally:
                lock.release()
            shutil.rmtree(room, ignore_errors=True)


def complete(folder: str | os.PathLike) -> None:
    """Complete the moves, of a folder or of its entries, that a killed process left unfinished.

    Call this before reading the folder.

    Raises:
        ValueError: If a move cannot be completed, because the folder is not writable.
    """
    folder = Path(folder)
    if not folder.exists():
        remove_stale(folder.parent, folder.name)
    remove_stale(folder)
    if folder.is_dir() and not os.access(folder, os.W_OK):
        for match in filter(None, map(_SCRATCH.fullmatch, os.listdir(folder))):
            if match["name"] and _ready(folder / match.string, match["name"]).exists():
                raise ValueError(
                    f"{folder} holds a model whose saving was stopped: load it once as a user who "
                    "can write there, which completes it"
                )


@contextlib.contextmanager
def locked(folder: str | os.PathLike) -> Iterator[None]:
    """Hold an exclusive lock on a folder, and remove scratch folders of killed processes.

    These are removed from the folder and from the folders directly inside it. A missing folder is
    made; if it is empty at the end, it is removed.

    Raises:
        ValueError: If another process holds the lock.
    """
    folder = Path(folder)
    with _made(folder), owned(folder / LOCK, f"{folder}"):
        for place in (folder, *filter(Path.is_dir, folder.iterdir())):
            remove_stale(place)
        yield


def removed(*paths: str | os.PathLike) -> None:
    """Remove these files and folders; ignore those that do not exist."""
    for path in map(Path, paths):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def _made(folder: Path) -> Iterator[None]:
    """Make a folder and its missing parents; at the end, remove the new ones that are empty."""
    made = [x for x in (folder, *folder.parents) if not x.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # it is not empty
            for x in made:
                x.rmdir()


def _check_others(path, temporary):
    for other in sorted(path.rglob("*")):
        name = other.relative_to(path)
        if not Path(temporary, name).exists():
            raise FileExistsError(
                f"{path} holds {name}, which would be lost: move it, or choose another folder"
            )


def _old(room, name):
    return room / f"{name}.old"


def _ready(room, name):
    """Return the folder with the entries that `updating` moves; it exists after all are written."""
    return room / f"{name}.ready"


def _gone(room, name):
    return room / f"{name}.gone"


def _open_to_others(path, folder_mode):
    """Give files with owner-only modes, as `tempfile` makes them, the modes of other new files."""
    if os.name != "posix":
        return
    for x in (path, *path.rglob("*")):
        if not x.is_symlink():
            usual = folder_mode & (0o777 if x.is_dir() else 0o666)
            mode = x.stat().st_mode & 0o7777
            if mode | usual != mode:
                x.chmod(mode | usual)


def write_json(path: str | os.PathLike, value: Any) -> None:
    """Write `value` as indented JSON."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", "utf-8")


def write_synced(path: str | os.PathLike, data: bytes) -> None:
    """Write a file and sync it to the disk, so that it is complete even after a power failure."""
    path = Path(path)
    with replacing(path) as temporary, temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    if os.name == "posix":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def read_json(path: str | os.PathLike) -> Any:
    """Read a JSON file.

    Raises:
        ValueError: If the file is not valid JSON, or a Git LFS pointer; the message names it.
    """
    refuse_pointer(path)
    try:
        return json.loads(Path(path).read_text("utf-8"))
    except (ValueError, RecursionError) as error:  # ValueError: bad JSON or bad UTF-8
        raise ValueError(f"{path} is not valid JSON: {error}") from error
