"""A checkpoint is imported once, again when its files change, and never by halves."""

import os

import pytest

from keras_transformer import Translator, import_cache, load_pretrained
from keras_transformer.export import hugging_face
from keras_transformer.import_cache import imported
from keras_transformer.saved.contents import import_command, is_hub_name
from tests.small_translator import SHORT, TEXTS, made_tokenizer, make

pytestmark = pytest.mark.once("files and texts: no tensor differs")


@pytest.fixture(scope="module")
def translator():
    return make(made_tokenizer())


@pytest.fixture
def checkpoint(translator, tmp_path, monkeypatch):
    """The folder of a checkpoint in Hugging Face's layout, and an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    translator.save(tmp_path / "saved")
    return hugging_face(tmp_path / "saved", tmp_path / "opus-mt")


def test_a_checkpoint_is_imported_once_and_again_when_it_changes(checkpoint, tmp_path):
    said = []
    place = imported(checkpoint, said.append)
    assert place.name == "opus-mt" and place.is_relative_to(tmp_path / "cache")
    assert said == [f"importing {checkpoint} into {place}"]
    expected = load_pretrained(checkpoint).translate(TEXTS, **SHORT)
    assert Translator.load(place).translate(TEXTS, **SHORT) == expected
    (checkpoint / "optimizer.pt").touch()  # of a training that goes on: no file of the model
    assert imported(os.path.relpath(checkpoint), said.append) == place and len(said) == 1
    os.utime(checkpoint / "model.safetensors", (1, 1))
    other = imported(checkpoint, said.append)
    assert other != place and other.is_dir() and not place.exists() and len(said) == 2


def test_a_failure_leaves_nothing_to_load(checkpoint, tmp_path, monkeypatch):
    with monkeypatch.context() as patched, pytest.raises(OSError, match="no space"):
        patched.setattr(Translator, "save", lambda self, folder: full(folder))
        imported(checkpoint, print)
    assert not any((tmp_path / "cache").rglob("*.json"))
    assert imported(checkpoint, print).is_dir()


def full(folder):
    folder.mkdir()
    (folder / "config.json").touch()
    raise OSError("no space")


def test_a_cache_that_cannot_be_written_to(checkpoint, tmp_path, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(import_cache, "waiting", refuse)
    message = "cannot be written to .Permission denied.: run `keras-transformer import .*opus-mt "
    with pytest.raises(ValueError, match=message):
        imported(checkpoint, print)


def test_a_name_of_the_hub(checkpoint, monkeypatch):
    from_hub = lambda name, allow_patterns: str(checkpoint)  # noqa: E731
    monkeypatch.setattr("huggingface_hub.snapshot_download", from_hub)
    assert imported("somebody/english-german", print).name == "english-german"


def test_without_a_network_the_command_is_named(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    message = "run `keras-transformer import nobody/nothing saved_models/nothing` where the hub"
    with pytest.raises(ConnectionError, match=message):
        imported("nobody/nothing", print)


def test_names_of_the_hub_and_commands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "saved_models").mkdir()
    assert is_hub_name("gpt2") and is_hub_name("Helsinki-NLP/opus-mt-en-de")
    for other in ("saved_models", "saved_models/typo", "/gpt2", "a/b/c", "a b", "", tmp_path / "x"):
        assert not is_hub_name(other), other
    expected = "keras-transformer import 'a b' 'saved_models/a b'"
    assert import_command("a b") == expected
