"""Kinds of folders: each object refuses those of the others, and says what takes them."""

import json
import re
from pathlib import Path

import pytest
import typer

import keras_transformer
from keras_transformer import cli
from keras_transformer.models import BERT
from keras_transformer.models.task_heads import HEADS
from keras_transformer.saved.folder import load_with_tokenizer
from keras_transformer.saved.kinds import KINDS, TRANSLATION, kinds_of

pytestmark = pytest.mark.once("files and texts: no tensor is read")


def config_of(kind):
    if kind.heads or kind.any_head:
        labels = ["x"] if kind.one_label else ["x", "y"]
        model = {"head": (*kind.heads, "pooled")[0], "labels": labels, "problem_type": kind.problem}
        return {"task": "pretrained", "model": model}
    return ({"task": kind.task} if kind.task != TRANSLATION else {}) | {"model": {}}


def write(folder, config):
    """A folder whose weights and tokenizer nobody can read."""
    folder.mkdir()
    for name in ("model.keras", "tokenizer.json"):
        (folder / name).touch()
    (folder / "config.json").write_text(json.dumps({"format": 2, "tokenizer": "x"} | config))
    return folder


def test_objects_and_commands_exist():
    commands = typer.main.get_command(cli.app).commands
    for kind in KINDS:
        assert kind.loader in keras_transformer.__all__
        assert kind.command is None or kind.command in commands
        assert set(kind.heads) <= set(HEADS)
        assert kinds_of(config_of(kind))[0] == kind
    assert len({kind.what for kind in KINDS}) == len(KINDS)


def test_the_docs_name_what_takes_the_folder_of_each_script():
    root = Path(__file__).parents[2]
    table = [x for x in (root / "docs/tasks.md").read_text().splitlines() if x.startswith("| ")]
    for kind in KINDS:
        assert any(f"[`{kind.loader}`]" in row and f"`{kind.command or ''}" in row for row in table)
    scripts = {path.stem for path in (root / "training").glob("[a-z]*.py")}
    named = {name for row in table for name in re.findall(r"`training\.(\w+)", row)}
    assert named >= scripts - {"demo", "tatoeba"}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.loader)
def test_each_object_refuses_other_folders(kind, tmp_path):
    load = getattr(keras_transformer, kind.loader).load
    for number, other in enumerate(KINDS):
        folder = write(tmp_path / str(number), config_of(other))
        with pytest.raises(ValueError) as found:
            load(folder)
        told = str(found.value)
        if kind in kinds_of(config_of(other)):  # it is accepted, and its files are broken
            assert ": use " not in told
            continue
        article = "an" if other.what.startswith("image") else "a"
        said = f"{folder} is not a saved {kind.what} but {article} {other.what}: use {other.loader}"
        command = f" and the command {other.command}" if other.command else ""
        assert told == said + command


def test_a_folder_that_no_object_takes(tmp_path):
    folder = write(tmp_path / "later", {"task": "telepathy", "model": {}})
    with pytest.raises(ValueError, match="not a saved translator but a model of task 'telepathy'"):
        keras_transformer.Translator.load(folder)


def test_a_pretrained_model_without_a_head(tmp_path):
    """A bare ViT, as older versions saved it."""
    folder = write(tmp_path / "vit", {"task": "pretrained", "model": {"num_classes": 0}})
    with pytest.raises(ValueError, match="image classifier but a pretrained model without a head"):
        keras_transformer.ImageClassifier.load(folder)


def test_a_name_that_is_no_kind_takes_any_folder(tmp_path):
    folder = write(tmp_path / "x", config_of(KINDS[1]))
    with pytest.raises(ValueError, match="tokenizer.json cannot be read"):
        load_with_tokenizer(folder, "encoder", BERT)
