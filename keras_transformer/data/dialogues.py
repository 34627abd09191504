"""Dialogues to train an assistant on: token ids, with a mask of the replies."""

from __future__ import annotations

import contextlib
import os
import reprlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from keras_transformer.data.documents import Encoder, json_lines
from keras_transformer.data.ragged import Ragged
from keras_transformer.data.ragged_file import RaggedFile

_UNCLEAR = (
    "the tokens of a reply cannot be told from those around it: tokens merge, or the template "
    "writes a message differently when others follow; remove white space at the ends of texts, or "
    "write each reply as a line of its own, with prompt and completion"
)


class ChatEncoder(Encoder, Protocol):
    """The part of a tokenizer that dialogues need."""

    added_ids: Collection[int]  # ids of special tokens and the like
    special_names: Mapping[str, str]  # texts that are encoded as special tokens

    def with_control_tokens(self, template: str) -> ChatEncoder:
        """Return a tokenizer in which the tokens of a template are like special ones."""
        ...


class Template(Protocol):
    """The part of a chat template that dialogues need."""

    source: str

    def render(
        self,
        messages: Sequence[Any],
        add_generation_prompt: bool = True,
        special_names: Mapping[str, str] | None = None,
    ) -> str:
        """Return the text of messages; raise ValueError if they are malformed."""
        ...


@dataclass(frozen=True)
class Dialogues:
    """Encoded dialogues.

    Args:
        ids: Token ids of each dialogue.
        is_reply: For each id, whether it belongs to a reply (1) or not (0).
        too_long: Number of dialogues that were left out.
    """

    ids: Ragged
    is_reply: Ragged
    too_long: int


def encode_dialogue(
    record: Any, tokenizer: ChatEncoder, template: Template, eos_id: int
) -> tuple[list[int], np.ndarray]:
    """Return the ids of a dialogue and which of them belong to replies (bool).

    The ids of replies are found by the difference of token prefixes: those that a chat has after a
    reply and did not have where the reply begins, up to the token that ends the turn. Text that
    spells a special token does not become this token: only the template writes special tokens.

    Args:
        record: An object with `messages`, all of whose assistant messages are replies; or with
            `prompt` and `completion`, where the completion is the reply. These are lists of
            messages, or texts, which are used as they are, with EOS after the completion.
        tokenizer: The model's tokenizer.
        template: The model's chat template.
        eos_id: Id that ends a completion that is a text.

    Raises:
        ValueError: If the record has another form, the template rejects the messages, or the ids of
            a reply cannot be told from those around it: tokens merge, or the template writes
            earlier messages differently when others follow.
    """
    if isinstance(record, Mapping) and "messages" in record:
        return _masked(record["messages"], None, tokenizer, template)
    if not isinstance(record, Mapping) or not {"prompt", "completion"} <= record.keys():
        raise ValueError(
            f'expected an object with "messages", or "prompt" and "completion", got '
            f"{reprlib.repr(record)}"
        )
    prompt, completion = record["prompt"], record["completion"]
    if isinstance(prompt, str) and isinstance(completion, str):
        _check_texts([completion])
        (before,), (ids,) = (tokenizer.encode([x]) for x in (prompt, prompt + completion))
        ids = [*ids, eos_id]
        return ids, _mask(ids, [(before, len(ids))])
    if not isinstance(prompt, list) or not isinstance(completion, list):
        raise ValueError("prompt and completion must both be texts, or both lists of messages")
    return _masked(prompt + completion, len(prompt), tokenizer, template)


def _masked(messages, first, tokenizer, template):
    """Return the ids of messages and the mask of their replies.

    The replies are the messages from `first` on; if that is None, those of the assistant.
    """
    names = tokenizer.special_names
    whole = template.render(messages, False, names)  # it checks the form of the messages
    count = len(messages)
    if first is None:
        replies = [(i, i + 1) for i, x in enumerate(messages) if x["role"] == "assistant"]
    else:
        replies = [(first, count)] if first < count else []
    if any(first == 0 for first, _ in replies):
        raise ValueError("a reply must follow another message, got one at the beginning")
    _check_texts("".join(x["content"] for x in messages[i:end]) for i, end in replies)
    (ids,) = tokenizer.encode([whole], framed=False)
    found = []
    for begin, end in replies:
        text = whole if end == count else template.render(messages[:end], False, names)
        # What follows the reply there: the end of the turn, and sometimes of the text.
        _, known, rest = text.rpartition(messages[end - 1]["content"].strip())
        parts = [template.render(messages[:begin], True, names), text, rest if known else ""]
        before, after, rest = tokenizer.encode(parts, framed=False)
        reply_end = _end_of_turn(after, rest, tokenizer.added_ids)
        if ids[:reply_end] != after[:reply_end]:
            raise ValueError(_UNCLEAR)
        found.append((before, reply_end))
    return ids, _mask(ids, found)


def _end_of_turn(ids, rest, added):
    """Return the place after the token that ends a turn: the first special one of the `rest`.

    Args:
        ids: A text up to the end of a reply, with what follows it.
        rest: What follows it. Tokens may merge where it begins, so it is not looked for in `ids`.
        added: Ids of special tokens.
    """
    count = sum(one in added for one in rest)
    places = [i for i, one in enumerate(ids) if one in added]
    return places[-count] + 1 if count else len(ids)


def _check_texts(replies):
    replies = list(replies)
    if not replies or not all(text.strip() for text in replies):
        found = "an empty one" if replies else "none"
        raise ValueError(f"expected replies (of the assistant, or a completion), got {found}")


def _mask(ids, replies):
    """Return the mask of replies, given by the ids of what precedes each, and by its end."""
    mask = np.zeros(len(ids), bool)
    for before, end in replies:
        if end <= len(before):
            raise ValueError("expected replies with tokens, got none: the template leaves one out")
        if ids[: len(before)] != before:
            raise ValueError(_UNCLEAR)
        mask[len(before) : end] = True
    return mask


def encode_dialogues(
    paths: Iterable[str | Path],
    tokenizer: ChatEncoder,
    template: Template,
    eos_id: int,
    max_length: int,
    folder: str | os.PathLike,
    name: str = "dialogues",
) -> Dialogues:
    """Write the ids of all dialogues of some files to disk.

    Args:
        paths: Files of JSON lines, a dialogue per line as in `encode_dialogue`; may be `.gz`.
        tokenizer, template, eos_id: See `encode_dialogue`.
        max_length: Most tokens of a dialogue; longer ones are left out, never cut.
        folder: Existing folder for two files, which the result reads.
        name: Beginning of their names.

    Raises:
        FileNotFoundError: If a file does not exist.
        ValueError: If a line is malformed or its replies cannot be found, which names file and
            line; or if no dialogue is left.
    """
    files = [RaggedFile(Path(folder, f"{name}.{part}"), dtype)
             for part, dtype in (("ids", "int32"), ("replies", "uint8"))]  # fmt: skip
    too_long, tokenizer = 0, tokenizer.with_control_tokens(template.source)
    with contextlib.ExitStack() as stack:
        for file in files:
            stack.enter_context(file)
        for ids, mask in _encoded(paths, tokenizer, template, eos_id):
            if len(ids) > max_length:
                too_long += 1
                continue
            for file, values in zip(files, (ids, mask), strict=True):
                file.append(values)
    if not len(files[0]):
        problem = f"all {too_long} have more than {max_length} tokens" if too_long else "got none"
        raise ValueError(f"data must have at least one dialogue, {problem}")
    return Dialogues(*(file.read() for file in files), too_long)


def _encoded(paths: Iterable[str | Path], *how: Any) -> Iterator[tuple[Sequence[int], np.ndarray]]:
    for path in paths:
        for where, record in json_lines(path):
            try:
                yield encode_dialogue(record, *how)
            except ValueError as error:
                raise ValueError(f"{where}: {error}") from error
