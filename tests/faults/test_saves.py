"""A save that is killed, or that the disk or a permission ends, leaves the old state or the new."""

import errno
import os
import shutil
from functools import partial

import pytest

from keras_transformer import export
from tests.faults.faults import (
    ALL,
    BROKEN,
    COUNTS,
    REFUSED,
    changes_of,
    failing,
    in_child,
    limited,
    signalled,
    some,
)
from tests.faults.saves import NAMES, content_of, saves, tree

pytestmark = pytest.mark.once("files: no backend writes them")
FEW = 2  # of the moments of each fault


@pytest.fixture(scope="module")
def kinds(translator, tmp_path_factory):
    return saves(translator, tmp_path_factory.mktemp("saves"))


@pytest.fixture(scope="module")
def places(kinds, tmp_path_factory):
    """`places(name)`: folders with the old and the new state, and their values; made once."""
    made = {}

    def of(name):
        if name not in made:
            root, kind = tmp_path_factory.mktemp("states"), kinds[name]
            for state, save in (("old", kind.old), ("new", kind.new)):
                (root / state).mkdir()
                kind.old(root / state)
                save(root / state)
            values = [kind.state(root / state) for state in ("old", "new")]
            assert values[0] != values[1]
            made[name] = root, values
        return made[name]

    return of


@pytest.fixture
def suffer(kinds, places, tmp_path):
    """`suffer(name, kind, fault)`: a new save over the old one with a fault, and its outcome."""

    def run(name, kind, fault, again=ALL):
        root, (old, new) = places(name)
        folder = tmp_path / "folder"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(root / "old", folder)
        status, message = in_child(fault(lambda: kinds[name].new(folder)))
        assert status != BROKEN, message
        if status == REFUSED:
            assert "\n" not in message and "/" in message, message  # it names a file
        is_old = tree(folder) == tree(root / "old")  # then nothing need be loaded
        found = old if is_old else kinds[name].state(folder)
        assert found in (old, new), (name, kind, status, message)
        assert status != 0 or found == new
        assert not [x for x in folder.rglob("*") if x.name.endswith((".old", ".ready"))]
        if again:
            kinds[name].new(folder)  # removes what was left
            assert kinds[name].state(folder) == new
            assert not [x for x in folder.rglob("*") if x.name.endswith(".partial")]
        COUNTS[kind, "old" if found == old else "new"] += 1
        return status

    return run


def moments(places, kinds, name, tmp_path):
    root, _ = places(name)
    folder = tmp_path / "counted"
    shutil.copytree(root / "old", folder)
    return changes_of(lambda: kinds[name].new(folder))


@pytest.mark.parametrize("name", NAMES)
def test_kills_and_errors_at_each_change(name, suffer, places, kinds, tmp_path):
    count = moments(places, kinds, name, tmp_path)
    for number in some(range(count), FEW):
        fault = partial(signalled, number=number)
        assert suffer(name, "kill at a change", fault, again=ALL or number == count - 1) == -9
    for code, kind in ((errno.ENOSPC, "full disk"), (errno.EACCES, "no permission")):
        for number in some(range(count), 2):
            suffer(name, f"{kind} at a change", partial(failing, number=number, code=code))


@pytest.mark.parametrize("name", [x for x in NAMES if ALL or not x.startswith("export")])
def test_kills_and_errors_at_bytes(name, suffer, places):
    root, _ = places(name)
    largest = max(x.stat().st_size for x in (root / "new").rglob("*") if x.is_file())
    sizes = [1, *range(512, largest, 1024 if ALL else 4096)]
    for size in some(sizes, 2):
        suffer(name, "kill at a byte", partial(limited, size=size, kill=True))
        suffer(name, "full disk at a byte", partial(limited, size=size, kill=False))


def test_a_reader_that_cannot_write_refuses_what_it_cannot_complete(
    kinds, places, tmp_path, monkeypatch
):
    name, refused = "translator, same tokenizer", 0
    root, (_, new) = places(name)
    for number in reversed(range(moments(places, kinds, name, tmp_path))):
        if refused == 3 and not ALL:
            break
        folder = tmp_path / str(number)
        shutil.copytree(root / "old", folder)
        in_child(signalled(lambda folder=folder: kinds[name].new(folder), number))
        if not list(folder.glob(".*/*.ready")):
            continue
        monkeypatch.setattr(os, "access", lambda *_: False)
        status, message = in_child(failing(lambda f=folder: kinds[name].state(f), 0, errno.EROFS))
        monkeypatch.undo()
        assert status == REFUSED and "whose saving was stopped" in message
        assert kinds[name].state(folder) == new
        refused += 1
    assert refused > 2
    COUNTS["stopped save, read-only folder", "refused"] += refused
    status, message = in_child(failing(lambda: kinds[name].state(root / "new") == new, 0))
    assert (status, message) == (0, "True")  # a reader changes nothing


@pytest.mark.skipif(not ALL, reason="takes minutes: each export starts a process")
@pytest.mark.parametrize("to", [export.onnx, export.saved_model])
def test_a_full_disk_in_the_process_of_an_export(to, translator, tmp_path):
    translator.save(tmp_path / "model")
    out = tmp_path / "exported"
    kept = to(tmp_path / "model", out)
    before = tree(kept)
    largest = max(len(content_of(x)) for x in kept.rglob("*") if x.is_file())
    for size in (1, 5000, largest - 1):
        work = partial(to, tmp_path / "model", out, overwrite=True)
        status, message = in_child(limited(work, size, kill=False), seconds=600)
        assert status == REFUSED and "\n" not in message and str(out) in message, message
        assert tree(kept) == before
        COUNTS["full disk in an export", "old"] += 1
