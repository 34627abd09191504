"""The command line as a whole: help, wrong usage, and one line for what was wrong."""

import inspect

import pytest

from keras_transformer import cli
from keras_transformer.training import translation
from training.translation import train


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["translate", "absent"], "absent is no saved translator"),
        (["translate", "FOLDER", "--input", "absent.txt"], "absent.txt"),
        (["translate", "FOLDER", "-n", "5"], "num_hypotheses must be at most beam_size=4"),
        (["evaluate", "FOLDER"], "either --source"),
        (["evaluate", "FOLDER", "--source", "a", "--corpus", "grammar"], "either --source"),
        (["evaluate", "FOLDER", "--corpus", "a", "--reference", "b"], "--reference belongs to"),
        (["evaluate", "FOLDER", "--source", "a", "--data-folder", "b"], "--data-folder belongs"),
        (["evaluate", "FOLDER", "--corpus", "absent"], "name must be one of"),
        (
            ["evaluate", "FOLDER", "--corpus=grammar", "--test-set=x"],
            "must be one of ['test', 'varied']",
        ),
        (["evaluate", "FOLDER", "--source", "absent.tsv"], "absent.tsv"),
        (["average", "absent", "--out", "out"], "absent"),
        (["info", "absent"], "absent is no saved model"),
        (["train", "--recipe", "absent"], "absent"),
    ],
)
def test_bad_input_gets_one_line(run, failure, folder, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    arguments = [str(folder) if a == "FOLDER" else a for a in arguments]
    assert message in failure(run(*arguments, stdin="one\n", status=2))


def test_debug_shows_where_an_error_arose(run, monkeypatch):
    result = run("--debug", "info", "absent", status=1)
    assert isinstance(result.exception, ValueError)
    monkeypatch.setenv("KERAS_TRANSFORMER_DEBUG", "1")
    assert isinstance(run("info", "absent", status=1).exception, ValueError)


@pytest.mark.parametrize(
    "arguments", [[], ["absent"], ["translate"], ["translate", "x", "--beam-size", "0"]]
)
def test_wrong_usage_ends_with_2(run, arguments):
    assert "Usage:" in run(*arguments, status=2).stderr


@pytest.mark.parametrize("command", ["train", "translate", "evaluate", "export", "average", "info"])
def test_help_teaches_by_examples(run, command):
    assert f"  {command} " in run("--help").stdout
    assert f"keras-transformer {command} " in run(command, "-h").stdout


def test_train_is_the_function_of_the_script():
    assert train in [command.callback for command in cli.app.registered_commands]


def test_train_hands_its_options_on(run, monkeypatch):
    flow, calls = translation.train, []
    monkeypatch.setattr(translation, "train", lambda **options: calls.append(options))
    run("train")
    defaults = inspect.signature(flow).parameters.values()
    assert calls == [{option.name: option.default for option in defaults}]
    run("train", "--set", "epochs=2", "--set", "seed=3", "--workers", 2, "--overwrite")
    assert calls[1] == calls[0] | dict(changes=["epochs=2", "seed=3"], workers=2, overwrite=True)
