"""The command line as a whole: help and wrong usage."""

import pytest
import typer

from keras_transformer import cli


@pytest.mark.parametrize(
    "arguments", [[], ["absent"], ["translate"], ["translate", "x", "--beam-size", "0"]]
)
def test_wrong_usage_ends_with_2(run, arguments):
    assert "Usage:" in run(*arguments, status=2).stderr


@pytest.mark.parametrize("command", ["train", "translate", "evaluate", "export", "average", "info"])
def test_help_teaches_by_examples(run, command):
    assert f"  {command} " in run("--help").stdout
    assert f"keras-transformer {command} " in run(command, "-h").stdout


def test_help_shows_no_markup(run):
    """`\\b` in a docstring keeps a paragraph's lines; in a raw docstring it would be shown."""
    for name, command in typer.main.get_command(cli.app).commands.items():
        assert r"\b" not in (command.help or ""), name
