"""Replacing files and folders: whole or not at all."""

import json
import os

import pytest

from keras_transformer.files import read_json, replacing, write_json


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


def test_json_that_cannot_be_written_leaves_the_old_file(tmp_path):
    write_json(tmp_path / "metrics.json", {"bleu": 1})
    with pytest.raises(TypeError):
        write_json(tmp_path / "metrics.json", {"bleu": object()})
    assert read_json(tmp_path / "metrics.json") == {"bleu": 1}
    assert os.listdir(tmp_path) == ["metrics.json"]


def test_broken_json_names_the_file(tmp_path):
    (tmp_path / "metrics.json").write_text('{"bleu": ')
    with pytest.raises(ValueError, match=r"metrics\.json is not valid JSON"):
        read_json(tmp_path / "metrics.json")
