"""Runs into a folder: the lock, signals, errors in one line, a warmup that fits."""

import importlib
import inspect
import os
import signal
import sys
import threading
import warnings
from pathlib import Path
from typing import Annotated

import pytest
import typer

from keras_transformer.backend import precision as precision_module
from keras_transformer.system.files import locked, write_json
from keras_transformer.training import preparation, runs, translation
from keras_transformer.training.runs import main, run_into, schedule_for

Output = Annotated[Path, typer.Option()]
SCRIPTS = sorted(path.stem for path in (Path(__file__).parents[2] / "training").glob("[a-z]*.py"))
SCRIPTS.remove("demo")  # it reads a run
SCRIPTS.remove("tatoeba")  # two runs of `translation`


@pytest.fixture
def called(monkeypatch, capsys):
    """`called(train, *arguments)`: exit status and what it said, as a script from a shell."""

    def call(train, *arguments):
        monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
        monkeypatch.setattr(sys, "argv", ["script", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main(train)
        return ended.value.code, capsys.readouterr().err

    return call


@pytest.fixture
def handled():
    """`handled(number)`: Python's own handler of a signal, which a shell's background ignores."""
    before = {}

    def use(number):
        before[number] = signal.signal(number, signal.default_int_handler)

    yield use
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_script_refuses_a_folder_that_is_in_use(name, tmp_path):
    train = importlib.import_module(f"training.{name}").train
    needed = [x.name for x in inspect.signature(train).parameters.values() if x.default is x.empty]
    arguments = dict.fromkeys(needed, tmp_path / "absent") | {"output": tmp_path}
    with locked(tmp_path), pytest.raises(ValueError, match="is in use by another run .*process"):
        train(**arguments)
    source = inspect.getsource(importlib.import_module(f"training.{name}"))
    assert "main(" in source and "typer.run" not in source


@pytest.mark.parametrize("name", sorted({*SCRIPTS} - {"translation"}))
def test_scripts_that_train_in_one_process_refuse_several(name, tmp_path, monkeypatch):
    train = importlib.import_module(f"training.{name}").train
    needed = [x.name for x in inspect.signature(train).parameters.values() if x.default is x.empty]
    for variable, value in dict(RANK=1, WORLD_SIZE=2, MASTER_ADDR="a").items():
        monkeypatch.setenv(variable, str(value))
    with pytest.raises(NotImplementedError, match="this task trains in one process, got 2 "):
        train(**dict.fromkeys(needed, tmp_path / "absent") | {"output": tmp_path / "run"})
    assert not (tmp_path / "run").exists()


def test_the_others_see_that_a_run_fails(tmp_path, monkeypatch):
    ended = []
    monkeypatch.setattr(runs, "leave", lambda: ended.append(True))

    @run_into(joins=True)
    def train(output: Path) -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        train(tmp_path)
    assert ended == [True]


def test_options_errors_and_warnings_are_those_of_a_command(tmp_path, called, monkeypatch):
    @run_into()
    def train(
        files: Annotated[list[Path], typer.Option("--train")],
        output: Output,
        epochs: Annotated[int, typer.Option(min=1)] = 1,
    ) -> None:
        """Trains."""
        warnings.warn("beware,\n  beware", stacklevel=1)
        raise ValueError(f"epochs must be\n  fewer, got {epochs}, {len(files)} files")

    options = ["--train", "a", "--train", "b", "--output", tmp_path / "run"]
    said = "warning: beware, beware\nerror: epochs must be fewer, got 3, 2 files\n"
    assert called(train, *options, "--epochs", 3) == (2, said)
    assert not (tmp_path / "run").exists()  # nothing was written there
    status, said = called(train, *options, "--epochs", 0)
    assert status == 2 and "--epochs" in said and "Traceback" not in said
    assert called(train, "--help")[0] == 0
    for arguments, variable in (["--debug"], "0"), ([], "1"):
        monkeypatch.setenv("KERAS_TRANSFORMER_DEBUG", variable)
        monkeypatch.setattr(sys, "argv", ["script", *map(str, options), *arguments])
        with pytest.raises(ValueError, match="got 1, 2 files"):
            main(train)


@pytest.mark.parametrize("name, status", [("SIGTERM", 143), ("SIGINT", 130)])
def test_a_signal_ends_a_run_with_a_line_and_a_status(tmp_path, called, handled, name, status):
    handled(signal.SIGINT)
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)

    @run_into(lambda given: tmp_path / given["folder"])
    def train(
        folder: str = "run", output: Path | None = None, epochs: int = 0, overwrite: bool = False
    ) -> None:
        for epoch in range(epochs):
            state = {"run": {}, "history": [{}] * (epoch + 1)}
            write_json(output / "checkpoints" / f"epoch-000{epoch + 1}" / "state.json", state)
        if epochs == 3:
            state |= {"step": 17, "seconds": 1.0}
            write_json(output / "checkpoints" / "unfinished" / "state.json", state)
        os.kill(os.getpid(), getattr(signal, name))

    by, folder = {"SIGTERM": "SIGTERM", "SIGINT": "Ctrl-C"}[name], tmp_path / "run"
    at, resumes = "the training state at", "from which the same command resumes"
    runs = [
        (0, f"nothing is saved in {folder}: the same command starts over"),
        (2, f"{folder} holds {at} the end of epoch 2, {resumes}"),
        (3, f"{folder} holds {at} step 17 of epoch 4, {resumes}"),
    ]
    for epochs, said in runs if name == "SIGTERM" else runs[2:]:
        found = called(train, "--epochs", epochs)
        assert found == (status, f"stopped by {by}; {said}\n")
    _, said = called(train, "--epochs", 2, "--overwrite")
    assert said.endswith("from which the same command without --overwrite resumes\n")
    assert before == (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT))
    with locked(folder):  # it is free again
        assert not (folder / "checkpoints" / "epoch-0004").exists()


def test_signals_are_left_alone_that_are_ignored_or_in_another_thread(tmp_path, monkeypatch):
    seen = []

    @run_into()
    def train(output: Path) -> None:
        seen.append((signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)))

    usual = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=train, args=[tmp_path])
    thread.start()
    thread.join()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as under nohup
    try:
        train(tmp_path)
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen[0] == usual
    assert seen[1][0] not in usual and seen[1][1] == signal.SIG_IGN


def test_a_precision_that_the_machine_lacks_falls_back(tmp_path, called, monkeypatch):
    monkeypatch.setattr(precision_module, "is_fast", lambda dtype: False)

    @run_into()
    def train(output: Output, precision: str = "float32") -> None:
        raise ValueError(f"it was {precision}")

    _, said = called(train, "--output", tmp_path, "--precision", "mixed_bfloat16")
    assert said == (
        "warning: precision is float32 in place of mixed_bfloat16: this machine is slower in "
        "bfloat16; KERAS_TRANSFORMER_PRECISION=strict insists\nerror: it was float32\n"
    )


def test_a_warmup_that_does_not_fit_becomes_a_tenth_of_the_run(capsys):
    for warmup, total, expected in ((60, 61, (60, 61)), (60, 60, (6, 60)), (60, 4, (1, 4))):
        schedule = schedule_for(0.01, warmup, total)
        assert (schedule.warmup_steps, schedule.total_steps) == expected
    assert (schedule_for(0.01, 60, 1).warmup_steps, schedule.total_steps) == (1, 4)
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "warmup_steps is 6, not 60: the run has 60 steps" and len(said) == 3
    with pytest.raises(ValueError, match="warmup_steps must be positive, got 0"):
        schedule_for(0.01, 0, 5)


def test_a_recipe_falls_back_before_its_run_is_compared_with_an_older_one(tmp_path, monkeypatch):
    monkeypatch.setattr(precision_module, "is_fast", lambda dtype: False)
    seen = []

    def corpus(options, *_):
        seen.append(options.precision)
        raise ValueError("there is none")

    monkeypatch.setattr(preparation, "_corpus", corpus)
    with pytest.warns(match="float32 in place of mixed_bfloat16"), pytest.raises(ValueError):
        translation.train("base", tmp_path / "run")
    assert seen == ["float32"]
