"""The process that renders chat templates: requests as lines on stdin, answers as lines on stdout.

This module only renders; `chat_template.py` reads and saves templates, and starts this process.

A template comes with a model, and its author may be hostile. Jinja's sandbox prevents access to
Python's objects. A separate process is a protection against endless loops and results that fill the
memory: it ends itself after `SECONDS`, and the operating system limits its memory.

The file imports only the standard library and jinja2, and is run by its path: importing the package
would take longer than everything else that the process does.
"""

from __future__ import annotations

import contextlib
import datetime
import faulthandler
import functools
import json
import os
import signal
import sys
from typing import Any, BinaryIO

import jinja2
import jinja2.ext
from jinja2 import nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

SECONDS = 10  # maximum time of a rendering
MEGABYTES = 1024  # maximum address space of the process
CHARACTERS = 10_000_000  # maximum length of a rendered text


class TemplateRefusal(jinja2.TemplateError):
    """Raised by a template itself, with `raise_exception`."""


class GenerationTag(jinja2.ext.Extension):
    """The tag `{% generation %}`, which some chat templates put around replies.

    It has no effect on the rendered text.
    """

    tags = {"generation"}  # noqa: RUF012 - as in Jinja's own extensions

    def parse(self, parser: Any) -> nodes.Node:
        """Parse `{% generation %}` and its body into a scope with the nodes of the body."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=line)


@functools.cache
def environment() -> ImmutableSandboxedEnvironment:
    """Return the Jinja environment, with the options and functions that `transformers` provides."""
    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[GenerationTag, jinja2.ext.loopcontrols]
    )
    made.filters["tojson"] = _to_json
    made.globals["raise_exception"] = _raise_exception
    made.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    return made


def _raise_exception(message):
    raise TemplateRefusal(message)


def _to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    """Return a value as JSON; unlike Jinja's own filter, without escaping HTML."""
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


@functools.lru_cache(maxsize=8)
def _compiled(source):
    return environment().from_string(source)


def answer(source: str, values: dict[str, Any]) -> dict[str, str]:
    """Render a chat template; return {"text": text}, or {"error": message} if it fails.

    Args:
        source: The source of the template.
        values: Its variables, such as `messages`.
    """
    try:
        text = _compiled(source).render(**values)
    except TemplateRefusal as error:
        return {"error": f"the chat template rejects the messages: {error}"}
    except jinja2.TemplateSyntaxError as error:
        return {"error": f"the chat template is not valid, line {error.lineno}: {error.message}"}
    except jinja2.sandbox.SecurityError as error:
        return {"error": f"the chat template reaches outside its sandbox: {error}"}
    except MemoryError:
        return {"error": f"the chat template needs more than {MEGABYTES} MB of memory"}
    except Exception as error:  # a template can raise any error
        return {"error": f"the chat template fails: {type(error).__name__}: {error!s:.300}"}
    if len(text) > CHARACTERS:
        return {"error": f"the chat template renders to more than {CHARACTERS:,} characters"}
    return {"text": text}


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until the stream ends; if one takes more than `SECONDS`, end the process.

    Args:
        requests: Stream of lines of JSON, each with the arguments of `answer`.
        answers: Stream that gets a line of JSON per request, the result of `answer`.
    """
    with open(os.devnull, "w") as nowhere:
        for line in requests:
            faulthandler.dump_traceback_later(SECONDS, exit=True, file=nowhere)
            rendered = answer(**json.loads(line))
            faulthandler.cancel_dump_traceback_later()
            answers.write(json.dumps(rendered).encode() + b"\n")
            answers.flush()


def main() -> None:
    """Limit this process's memory, and render the chat templates that the parent process sends."""
    # Ctrl-C reaches all processes of a terminal; the parent ends this one itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(ImportError, OSError, ValueError):  # unsupported on some systems
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEGABYTES << 20, MEGABYTES << 20))
    serve(sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
