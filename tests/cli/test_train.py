"""The command that trains: translators, and with `--task` models of other tasks."""

import inspect
import random
import sys

import pytest

from keras_transformer import cli
from keras_transformer.cli.train import TASKS, train
from keras_transformer.saved.kinds import KINDS
from keras_transformer.training import translation
from keras_transformer.training.recipe import settings
from tests.training.made_up import WORDS

TINY = "--d-model 16 --num-layers 1 --num-heads 2 --vocab-size 60 --epochs 1".split()


def test_train_is_the_function_of_the_script():
    from training.translation import train

    assert train in [command.callback for command in cli.app.registered_commands]


def test_train_hands_its_options_on(run, monkeypatch):
    flow, calls = translation.train, []
    monkeypatch.setattr(translation, "train", lambda **options: calls.append(options))
    run("train")
    defaults = inspect.signature(flow).parameters.values()
    assert calls == [{option.name: option.default for option in defaults}]
    run("train", "--set", "epochs=2", "--set", "seed=3", "--workers", 2, "--overwrite")
    assert calls[1] == calls[0] | dict(changes=["epochs=2", "seed=3"], workers=2, overwrite=True)
    run("train", "--task", "translate", "--workers", 2)
    assert calls[2] == calls[0] | dict(workers=2)


def test_help_lists_what_set_takes(run):
    shown = "".join(run("train", "--help").stdout.split())
    assert ",".join(settings()) in shown


@pytest.mark.once("options")
def test_each_task_has_its_own_help(run):
    for task in TASKS:
        shown = run("train", f"--task={task}", "--help").stdout
        assert f"train --task {task}" in shown and "--output" in shown and "--recipe" not in shown
    commands = {kind.command for kind in KINDS} - {"translate", "embed", "rank", None}
    assert commands <= {*TASKS}


@pytest.mark.once("options")
def test_unknown_tasks_and_missing_data(run, failure, tmp_path):
    for arguments, value in ((["--task", "sort"], "'sort'"), (["--task"], "None")):
        line = failure(run("train", *arguments, status=2))
        assert line.startswith("keras-transformer: --task must be one of translate, answer, ")
        assert line.endswith(f", got {value}")
    said = run("train", "--task", "tag", "--output", tmp_path / "run", status=2).stderr
    assert "Missing option '--train'" in said
    with pytest.raises(ValueError, match="task must be translate, got 'tag'"):
        train(task="tag")


def test_a_wheel_trains_a_task(run, tmp_path, monkeypatch):
    """Without the scripts of the repository, which are not in the wheel."""
    monkeypatch.setitem(sys.modules, "training", None)
    generator, lines = random.Random(0), ["sentence\tlabel"]
    for _ in range(80):
        words, label = generator.choices(WORDS, k=4), generator.randrange(2)
        lines.append(f"{' '.join(words)} {('bad', 'good')[label]}\t{label}")
    (tmp_path / "texts.tsv").write_text("\n".join(lines))
    parts = ("--train", "--validation", "--test")
    files = [x for part in parts for x in (part, tmp_path / "texts.tsv")]
    output = tmp_path / "run"
    done = run("train", "--task", "classify", "--output", output, *files, *TINY)
    assert done.stdout.splitlines()[-1].endswith(f"; saved to {output}")
    assert run("classify", output, stdin="ba good\n").stdout[0] in "01"
