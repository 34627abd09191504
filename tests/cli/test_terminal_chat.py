"""`keras-transformer chat`: chats in lines of JSON, and one in a terminal."""

import io
import json

import pytest
from rich.console import Console
from typer.testing import CliRunner

from keras_transformer import cli, load_pretrained
from keras_transformer.cli.terminal_chat import talk
from keras_transformer.language.chat import Chat
from tests.language.chats import chat_folder

USER = [{"role": "user", "content": "and then"}]
SHORT = ["--max-new-tokens", "6"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    source, target = (tmp_path_factory.mktemp(name) for name in ("theirs", "imported"))
    chat_folder(source, "phi-3")
    load_pretrained(source).save(target)
    return target


def run(*arguments, stdin="", status=0):
    result = CliRunner().invoke(cli.app, ["chat", *map(str, arguments)], input=stdin)
    assert result.exit_code == status, result.output
    return result


def test_lines_of_json(folder):
    chat = Chat.load(folder)
    lines = f"{json.dumps(USER)}\n\n{json.dumps({'messages': USER * 3})}\n"
    expected = [chat.reply(x, max_new_tokens=6) for x in (USER, USER * 3)]
    one_line = [text.replace("\r", " ").replace("\n", " ") for text in expected]
    assert run(folder, *SHORT, stdin=lines).stdout.split("\n") == [*one_line, ""]
    system = [{"role": "system", "content": "Who"}, *USER]
    expected = chat.reply(system, max_new_tokens=6, temperature=0.7, seed=1)
    options = ["--system", "Who", "--temperature", "0.7", "--seed", "1"]
    found = run(folder, *SHORT, *options, stdin=json.dumps(USER)).stdout
    assert found == expected.replace("\r", " ").replace("\n", " ") + "\n"


@pytest.mark.parametrize(
    "line,problem",
    [
        ("Hello", 'stdin, line 1: expected a JSON list of messages such as [{"role": "user", '),
        (
            json.dumps(USER[0]),
            'stdin, line 1: an object must be one with "messages", got {',
        ),
        (json.dumps([5]), 'stdin, line 1: messages[0] must have a "role" and a "content"'),
        (
            json.dumps([{"role": "user", "content": "a " * 99}]),
            "stdin, line 1: messages must have fewer than 96 tokens together",
        ),
    ],
)
def test_bad_lines(folder, line, problem):
    [said] = run(folder, stdin=line, status=2).stderr.splitlines()
    assert problem in said


def test_bad_folders(folder, tmp_path):
    assert "is not a saved language model" in run(tmp_path, status=2).stderr
    assert "top_p must be in (0, 1]" in run(folder, "--top-p", "2", status=2).stderr


def test_a_chat_in_a_terminal(capsys):
    """Ctrl-C stops a reply, what cannot be replied to is left out, /clear forgets."""
    seen = []

    def stream(messages):
        seen.append([x["content"] for x in messages])
        question = messages[-1]["content"]
        if question == "long":
            raise ValueError("messages must have fewer tokens")
        yield from ("[b]", question)
        if question == "stop":
            raise KeyboardInterrupt
        yield "!"

    given = iter(["one", "", "long", "stop", "/clear", "two", "/exit", "never"])
    console = Console(file=io.StringIO(), width=40)
    talk(stream, console, lambda: next(given))
    assert seen == [
        ["one"], ["one", "[b]one!", "long"], ["one", "[b]one!", "stop"], ["two"],
    ]  # fmt: skip
    shown = console.file.getvalue()
    assert "[b]one!\n" in shown and "[b]stop\n(stopped)\n" in shown and "never" not in shown
    assert "messages must have fewer tokens" in capsys.readouterr().err

    def ended():
        raise EOFError

    talk(stream, console, ended)
    assert len(seen) == 4
