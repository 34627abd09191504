"""Chat templates, Jinja programs in Hugging Face's folders that turn messages into a prompt."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keras_transformer.config import require
from keras_transformer.system.child import Child, ChildEndedError
from keras_transformer.system.extras import missing
from keras_transformer.system.files import read_json, replacing, write_json
from keras_transformer.text.special_tokens import Quotation

Message = Mapping[str, Any]

FILE, OPTIONS, TOKENS = "chat_template.jinja", "tokenizer_config.json", "special_tokens_map.json"
SECONDS = 10  # a copy of `chat_rendering.SECONDS`: importing that module needs jinja2

# OpenAI's ChatML. Unlike most templates of this name, it checks the order of the roles.
CHATML = """\
{%- for message in messages %}
    {%- set turn = loop.index0 - (messages[0].role == 'system') %}
    {%- if turn >= 0 and message.role != ('assistant' if turn % 2 else 'user') %}
        {{- raise_exception('roles must be user, assistant, user and so on, after at most one '
            ~ 'system message, got ' ~ message.role ~ ' in message ' ~ loop.index) }}
    {%- endif %}
    {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""
NAMED = {"chatml": (CHATML, ("<|im_start|>", "<|im_end|>"))}


@dataclass(frozen=True)
class ChatTemplate:
    """A chat template, as in Hugging Face's folders.

    ```python
    template = ChatTemplate.named("chatml")
    template.render([{"role": "user", "content": "Who are you?"}])
    ```

    A template is a program of the model's author. It runs in Jinja's sandbox, in a separate process
    limited to 10 s and 1 GB (the latter not on every operating system). It gets the same variables
    as in `transformers`: `messages`, `add_generation_prompt` and the special tokens; `tools` and
    `documents` are None.

    If `render` gets the `special_names` of a tokenizer, special tokens that a message spells are
    encoded as plain text, so that no user can write the end of a turn. `transformers` would encode
    them as special tokens.

    Args:
        source: The text of the template.
        special_tokens: Texts of special tokens by name, such as `bos_token`.
    """

    source: str
    special_tokens: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def named(cls, name: str) -> ChatTemplate:
        """Return a built-in template, for models trained here: "chatml".

        Raises:
            ValueError: If there is no such template.
        """
        require(name in NAMED, "name", name, f"one of {sorted(NAMED)}")
        return cls(NAMED[name][0])

    @classmethod
    def read(cls, folder: str | os.PathLike) -> ChatTemplate | None:
        """Read the template of a folder, saved here or in Hugging Face's layout.

        Args:
            folder: Folder with `chat_template.jinja`; or with a `tokenizer_config.json` whose
                `chat_template` is a text, or a list of named templates with one named "default".

        Returns:
            The template; None if the folder has none.

        Raises:
            ValueError: If a file is broken, or a list of templates has none named "default".
        """
        folder = Path(folder)
        options, tokens = (
            read_json(folder / name) if (folder / name).is_file() else {}
            for name in (OPTIONS, TOKENS)
        )
        for name, content in {OPTIONS: options, TOKENS: tokens}.items():
            require(isinstance(content, dict), str(folder / name), content, "an object")
        if (folder / FILE).is_file():
            try:
                source = (folder / FILE).read_text("utf-8")
            except UnicodeDecodeError as error:
                raise ValueError(f"{folder / FILE} is not valid UTF-8: {error}") from error
        else:
            source = _default(options.get("chat_template"), folder / OPTIONS)
        return None if source is None else cls(source, _texts(tokens) | _texts(options))

    def save(self, folder: str | os.PathLike) -> None:
        """Write `chat_template.jinja`, and the special tokens into `tokenizer_config.json`.

        `transformers` reads both. Other fields of an existing `tokenizer_config.json` are kept.
        """
        folder = Path(folder)
        with replacing(folder / FILE) as temporary:
            temporary.write_text(self.source, "utf-8")
        if self.special_tokens:
            options = read_json(folder / OPTIONS) if (folder / OPTIONS).is_file() else {}
            write_json(folder / OPTIONS, options | dict(self.special_tokens))

    def render(
        self,
        messages: Sequence[Message],
        add_generation_prompt: bool = True,
        special_names: Mapping[str, str] | None = None,
    ) -> str:
        """Return the text of a chat; the tokenizer must not add BOS or EOS to it.

        Args:
            messages: Dicts with `role` ("system", "user", "assistant" or another that the template
                accepts) and `content`, a text. Other fields are passed to the template.
            add_generation_prompt: Whether the text ends with the tokens that begin a reply.
            special_names: `TextTokenizer.special_names` of the tokenizer that will encode the
                text: these names replace special tokens that the template writes, but not those
                that messages spell. None: no replacement.

        Raises:
            ImportError: If jinja2 is not installed.
            ValueError: If there are no messages, one is malformed, or the template rejects them,
                fails, reaches outside its sandbox, or needs too much time or memory.
        """
        messages = checked_messages(messages)
        quotation = Quotation(special_names or {})
        values = {
            "messages": quotation.quoted(messages),
            "add_generation_prompt": add_generation_prompt,
        }
        values |= {"tools": None, "documents": None, **self.special_tokens}
        return quotation.unquoted(_rendered({"source": self.source, "values": values}))

    def after_reply(self, special_names: Mapping[str, str] | None = None) -> str:
        """Return the text that the template writes after a reply.

        With ChatML, it is "<|im_end|>" and a line break.

        Args:
            special_names: See `render`.
        """
        asked = {"role": "user", "content": "question"}
        reply = {"role": "assistant", "content": "answer"}
        return self.render([asked, reply], False, special_names).rpartition("answer")[2]


def checked_messages(messages: Sequence[Message], name: str = "messages") -> list[dict[str, Any]]:
    """Return the messages as a list of dicts.

    Args:
        messages: The messages.
        name: Name of the argument in error messages.

    Raises:
        ValueError: If they are not one or more dicts with the texts `role` and `content`.
    """
    is_list = isinstance(messages, Sequence) and not isinstance(messages, str | bytes)
    if not is_list or not messages:
        raise ValueError(f"{name} must be a list of at least one message, got {messages!r:.80}")
    for i, message in enumerate(messages):
        has_texts = isinstance(message, Mapping) and all(
            isinstance(message.get(part), str) for part in ("role", "content")
        )
        if not has_texts or not message["role"]:
            raise ValueError(
                f'{name}[{i}] must have a "role" and a "content", both texts, got {message!r:.80}'
            )
    return [dict(message) for message in messages]


def _default(value, where):
    """Return the template in the field `chat_template`: a text, or a list with one named "default".

    Return None if the field is missing or null.
    """
    if isinstance(value, list):
        try:
            named = {entry["name"]: entry["template"] for entry in value}
        except (KeyError, TypeError) as error:
            raise ValueError(
                f"chat_template in {where} must be a text, or a list of names and templates"
            ) from error
        require("default" in named, f"chat_template in {where}", [*named], "one named default")
        value = named["default"]
    accepted = "a text, or a list of names and templates"
    require(value is None or isinstance(value, str), f"chat_template in {where}", value, accepted)
    return value


def _texts(options):
    """Return the texts of the special tokens in a file, by name.

    In the file, a token is a text, or an object with a `content`.
    """
    tokens = {name: x for name, x in options.items() if name.endswith("_token")}
    tokens = {name: x.get("content") if isinstance(x, dict) else x for name, x in tokens.items()}
    return {name: x for name, x in tokens.items() if isinstance(x, str)}


class _Renderer:
    """The process that renders templates: started on first use, one request at a time."""

    def __init__(self):
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._owner = 0

    def __call__(self, request: dict[str, Any]) -> str:
        try:
            json.dumps(request, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValueError(f"messages must hold plain values, as JSON does: {error}") from error
        with self._lock:
            child = self._running()
            try:
                child.send(request)
                answer = child.receive()
            # Also after Ctrl-C: else the next request would read the answer to this one.
            except BaseException as error:
                child.stop()
                if isinstance(error, ChildEndedError):
                    problem = f"the chat template did not finish within {SECONDS} s"
                    raise ValueError(problem) from error
                raise
        if "error" in answer:
            raise ValueError(answer["error"])
        return answer["text"]

    def _running(self):
        """Return the process that renders; start one if none runs."""
        # A forked process must not share the pipes of its parent.
        if self._child is None or self._owner != os.getpid() or not self._child.is_alive():
            if importlib.util.find_spec("jinja2") is None:
                raise missing("a chat template", "chat")
            script = os.fspath(Path(__file__).with_name("chat_rendering.py"))
            self._child = Child([sys.executable, "-P", script])
            self._owner = os.getpid()
        return self._child


_rendered = _Renderer()
