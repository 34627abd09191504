"""The command that trains."""

import inspect

from keras_transformer import cli
from keras_transformer.training import translation
from keras_transformer.training.recipe import settings
from training.translation import train


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


def test_help_lists_what_set_takes(run):
    shown = "".join(run("train", "--help").stdout.split())
    assert ",".join(settings()) in shown
