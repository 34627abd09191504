"""What the training flows of tasks share: options, their help, folders, metrics."""

import inspect
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from keras_transformer.evaluation.assess import read_metrics
from keras_transformer.training.task import Count, TaskRun, task
from tests.tiny import tiny

pytestmark = pytest.mark.once("signatures and files")


@task(d_model=8, epochs=2, lora_rank=0, start_from=None)
def train(run: TaskRun, train_file: Path, words: Count = 1, cased: bool = False) -> None:
    """Train nothing.

    It tells its options.

    Args:
        train_file: What is
            read.
        words: How many.
        cased: Keep case.
    """
    run.record(dict(told=[str(train_file), words, cased, run.d_model, run.seed]), "test")
    run.record(dict(x=1), "validation", tiny("llama"))


def test_options_and_help_come_from_one_place():
    app = typer.Typer(rich_markup_mode=None)
    app.command()(train)
    shown = CliRunner().invoke(app, ["--help"]).output
    words = " ".join(shown.split())
    for text in (
        "Train nothing.", "It tells its options.", "--train", "What is read.", "--no-cased",
        "Folder of the run.", "Width of the model.", "[default: 2; x>=1]",
    ):  # fmt: skip
        assert text in words, shown
    assert "Args" not in words and "--train-file" not in words and "vocab" not in words
    names = list(inspect.signature(train).parameters)
    assert names[:4] == ["train_file", "output", "words", "cased"]
    assert names[-2:] == ["precision", "seed"]


def test_a_flow_has_its_options_and_writes_its_metrics(tmp_path):
    train(Path("a"), tmp_path, cased=True, seed=3)
    metrics = read_metrics(tmp_path)
    assert metrics["test"] == {"told": ["a", 1, True, 8, 3]}
    facts = metrics["validation"]
    assert facts.keys() == {"x", "parameters", "seconds", "backend"} and facts["seconds"] == 0
    with pytest.raises(TypeError, match="unexpected keyword argument 'vocab_size'"):
        train(Path("a"), tmp_path, vocab_size=3)
    with pytest.raises(ValueError, match="lora_rank must be 0 without --start-from: .*, got 2"):
        train(Path("a"), tmp_path, lora_rank=2)


def test_a_folder_named_by_the_options(tmp_path):
    @task(lambda given: tmp_path / given["name"], epochs=1)
    def train(run: TaskRun, name: str = "x") -> None:
        """Train.

        Args:
            name: A name.
            output: Folder of the run.  [default: NAME]
        """
        run.record({"name": name})

    for options, folder in (({}, "x"), ({"name": "y"}, "y"), ({"output": tmp_path / "z"}, "z")):
        train(**options)
        assert read_metrics(tmp_path / folder)["name"] in ("x", "y")
