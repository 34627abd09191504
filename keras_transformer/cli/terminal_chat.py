"""The command that chats with a language model."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from keras_transformer.cli.common import Precision, say, searching, write_utf8
from keras_transformer.cli.folders import saved_argument
from keras_transformer.cli.reading import read_lines
from keras_transformer.config import require
from keras_transformer.data.lines import one_line
from keras_transformer.search import STREAM, Generation

HELP = "/clear forgets the chat, /exit or Ctrl-D ends it, Ctrl-C stops a reply."


@searching(Generation, STREAM)
def chat(
    folder: Annotated[Path, saved_argument("A saved chat model")],
    system: Annotated[
        str | None, typer.Option(help="Message that tells the model how to behave.")
    ] = None,
    max_new_tokens: Annotated[int, typer.Option(min=1, help="Maximum tokens of a reply.")] = 512,
    stop: Annotated[
        list[str] | None,
        typer.Option(help="End a reply before this text; may be given several times."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Random seed for sampling.  [default: a new one each time]")
    ] = None,
    precision: Precision = None,
    **search: Any,
) -> None:
    """Chat with a language model that was trained on chats.

    In a terminal, replies appear while they are generated. /clear forgets the chat, /exit or
    Ctrl-D ends it, and Ctrl-C stops a reply.

    If stdin is a file or a pipe, each of its lines is a chat: a JSON list of messages such as
    [{"role": "user", "content": "Who wrote Hamlet?"}], or an object with such "messages". One line
    is written for each reply, with line breaks replaced by spaces.

    \b
    Examples:
        keras-transformer chat saved_models/assistant --temperature 0.7
        keras-transformer chat saved_models/assistant < chats.jsonl
    """
    from keras_transformer.language.chat import Chat

    loaded = Chat.load(folder, precision)
    options = dict(stop=stop or (), seed=seed, max_new_tokens=max_new_tokens, **search)
    before = [{"role": "system", "content": system}] if system else []

    def stream(messages):
        whole = [*before, *messages] if isinstance(messages, list) else messages
        return loaded.stream(whole, **options)

    write_utf8()
    if sys.stdin.isatty():
        console = Console()
        console.print(HELP, style="dim", highlight=False)
        talk(stream, console, lambda: console.input("[bold]> [/bold]"))
    else:
        reply_to_lines(stream, read_lines(None))


def reply_to_lines(stream: Callable[[list], Iterable[str]], lines: Iterable[str]) -> None:
    """Print the reply to the chat in each line of JSON; each reply is one line.

    Args:
        stream: Function from messages to the pieces of a reply.
        lines: Lines of stdin; blank ones are skipped.

    Raises:
        ValueError: If a line is not a chat, or the model cannot reply to it; names the line.
    """
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            print(one_line("".join(stream(_messages(line)))), flush=True)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"stdin, line {number}: {error}") from error


def _messages(line):
    """Return the messages in a line of JSON."""
    try:
        messages = json.loads(line)
    except ValueError as error:
        form = '[{"role": "user", "content": "Hello"}]'
        raise ValueError(f"expected a JSON list of messages such as {form}: {error}") from error
    if isinstance(messages, dict):
        require("messages" in messages, "an object", messages, 'one with "messages"')
        return messages["messages"]
    return messages


def talk(stream: Callable[[list], Iterable[str]], console: Console, ask: Callable[[], str]) -> None:
    """Chat until the user ends it.

    If Ctrl-C stops a reply, its beginning stays in the chat. A message without a reply is removed
    (if the chat is too long for the model, or Ctrl-C came before the first word).

    Args:
        stream: Function from messages to the pieces of a reply.
        console: Where replies are shown.
        ask: Returns the next line of the user; raises EOFError or KeyboardInterrupt at the end.
    """
    messages: list[dict[str, str]] = []
    while True:
        try:
            text = ask()
        except (EOFError, KeyboardInterrupt):
            console.print()
            return
        if text.strip() == "/exit":
            return
        if text.strip() == "/clear":
            messages.clear()
            continue
        if not text.strip():
            continue
        messages.append({"role": "user", "content": text})
        reply = _shown(stream, messages, console)
        if reply:
            messages.append({"role": "assistant", "content": reply})
        else:
            messages.pop()


def _shown(stream, messages, console):
    """Show a reply as it comes; return it, or its beginning if Ctrl-C or an error ends it."""
    pieces: list[str] = []
    try:
        for piece in stream(messages):
            pieces.append(piece)
            console.out(piece, end="", highlight=False)
            console.file.flush()
    except KeyboardInterrupt:
        console.print("\n(stopped)", style="dim", highlight=False, end="")
    except ValueError as error:
        say(str(error))
    console.print()
    return "".join(pieces)
