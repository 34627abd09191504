"""Files of a folder are replaced together, also if that fails in the middle."""

import os

import pytest

from keras_transformer.system.files import complete, updating
from tests.system.test_files import tree, write_folder

pytestmark = pytest.mark.once("files: no tensor is read")


def test_the_files_of_a_folder_are_replaced_together(tmp_path, monkeypatch):
    run, move = tmp_path / "run", os.replace
    write_folder(run, a="old", b="old", lost="old", kept="old")

    def update(failing):
        with updating(run, "b", gone=["lost", "b"]) as new:
            for name in "ab":
                (new / name).write_text("new")
            monkeypatch.setattr(os, "replace", failing)

    def fail(source, target):
        raise OSError("Input/output error")

    def fail_after_one(source, target):
        if target == run / "b":
            fail(source, target)
        move(source, target)

    before = tree(run)
    with pytest.raises(OSError):
        update(fail)
    monkeypatch.setattr(os, "replace", move)
    assert tree(run) == before
    with pytest.raises(OSError):
        update(fail_after_one)
    monkeypatch.setattr(os, "replace", move)
    complete(run)
    assert tree(tmp_path) == {"run/a": "new", "run/b": "new", "run/kept": "old"}
    assert sorted(os.listdir(run)) == ["a", "b", "kept"]
