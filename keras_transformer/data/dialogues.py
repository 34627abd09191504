"""Dialogues for training an assistant: token ids, and masks of the tokens of its replies."""

from __future__ import annotations

import contextlib
import os
import reprlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from keras_transformer.data.documents import TextEncoder, json_lines
from keras_transformer.data.ragged import Ragged
from keras_transformer.data.ragged_file import RaggedFile

_UNCLEAR = (
    "the tokens of a reply cannot be told from those around it: tokens merge, or the template "
    "writes a message differently when others follow; remove white space at the ends of texts, or "
    "write each reply as a line of its own, with prompt and completion"
)


class ChatEncoder(TextEncoder, Protocol):
    """The methods of a tokenizer that dialogues need, see `TextTokenizer`."""

    added_ids: Collection[int]  # ids of special tokens and other added tokens
    special_names: Mapping[str, str]  # for each special token, the text that is encoded as it

    def with_control_tokens(self, template: str) -> ChatEncoder:
        """Return a tokenizer for chats, which treats the template's added tokens as special."""
        ...


class Template(Protocol):
    """The methods of a chat template that dialogues need, see `ChatTemplate`."""

    source: str

    def render(
        self,
        messages: Sequence[Any],
        add_generation_prompt: bool = True,
        special_names: Mapping[str, str] | None = None,
    ) -> str:
        """Return the text of a chat; raise ValueError if messages are malformed."""
        ...


@dataclass(frozen=True)
class Dialogues:
    """Encoded dialogues, with masks of their replies.

    Args:
        ids: Token ids of each dialogue.
        is_reply: For each id, whether it belongs to a reply (1) or not (0).
        too_long: Number of dialogues that were left out because of their length.
    """

    ids: Ragged
    is_reply: Ragged
    too_long: int


def encode_dialogue(
    record: Any, tokenizer: ChatEncoder, template: Template, eos_id: int
) -> tuple[list[int], np.ndarray]:
    """Return the ids of a dialogue (T,), and whether each id belongs to a reply (T,), boolean.

    To find the ids of a reply, the chat is encoded up to the beginning of the reply, and up to its
    end: the reply is the difference, including the token that ends the turn. Special tokens that
    messages spell are encoded as plain text; only the template writes special tokens.

    Args:
        record: An object with `messages`, in which all messages of the assistant are replies; or
            with `prompt` and `completion`, in which the completion is the reply. The latter are
            both lists of messages, or both texts; texts are used without the template, with EOS
            after the completion.
        tokenizer: The model's tokenizer.
        template: The model's chat template.
        eos_id: Id that ends a completion that is a text.

    Raises:
        ValueError: If the record has another form, the template rejects the messages, there is no
            reply or an empty one, or the ids of a reply cannot be separated from the others: a
            token spans a boundary, or the template writes a message differently if other messages
            follow.
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
    """Return the ids of messages, and the mask of their replies.

    The messages from the index `first` on are one reply; if it is None, each message of the
    assistant is a reply.
    """
    names = tokenizer.special_names
    whole = template.render(messages, False, names)  # also checks the form of the messages
    count = len(messages)
    if first is None:
        replies = [(i, i + 1) for i, x in enumerate(messages) if x["role"] == "assistant"]
    else:
        replies = [(first, count)] if first < count else []
    if any(first == 0 for first, _ in replies):
        raise ValueError("a reply must follow another message, got one at the beginning")
    _check_texts("".join(x["content"] for x in messages[i:end]) for i, end in replies)
    (ids,) = tokenizer.encode([whole], framed=False)
    bounds = []
    for begin, end in replies:
        text = whole if end == count else template.render(messages[:end], False, names)
        # The text after the reply: the end of the turn and, in some templates, the end of the chat.
        _, known, rest = text.rpartition(messages[end - 1]["content"].strip())
        parts = [template.render(messages[:begin], True, names), text, rest if known else ""]
        before, after, rest = tokenizer.encode(parts, framed=False)
        reply_end = _end_of_turn(after, rest, tokenizer.added_ids)
        if ids[:reply_end] != after[:reply_end]:
            raise ValueError(_UNCLEAR)
        bounds.append((before, reply_end))
    return ids, _mask(ids, bounds)


def _end_of_turn(ids, rest, added):
    """Return the index after the first added token that follows a reply; else the number of ids.

    Args:
        ids: Ids of a chat up to a reply and the text after it.
        rest: Ids of the text after the reply alone. They need not be the last of `ids`, because
            tokens may merge at the boundary; but `ids` ends with as many added tokens.
        added: Ids of special tokens and other added tokens.
    """
    count = sum(token in added for token in rest)
    places = [i for i, token in enumerate(ids) if token in added]
    return places[-count] + 1 if count else len(ids)


def _check_texts(replies):
    replies = list(replies)
    if not replies or not all(text.strip() for text in replies):
        problem = "an empty one" if replies else "none"
        raise ValueError(f"expected replies (of the assistant, or a completion), got {problem}")


def _mask(ids, replies):
    """Return the mask (T,) of the replies in `ids`.

    Args:
        ids: Ids of a dialogue.
        replies: For each reply, the ids before it, and the index after its last id.

    Raises:
        ValueError: If a reply is empty, or `ids` does not begin with the ids before it.
    """
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
    """Encode all dialogues of some files; the ids are on disk, mapped into memory.

    Args:
        paths: Files of JSON lines with one dialogue per line, see `encode_dialogue`; decompressed
            if their names end in `.gz` or `.zst`.
        tokenizer, template, eos_id: See `encode_dialogue`.
        max_length: Maximum tokens of a dialogue; longer dialogues are left out, not truncated.
        folder: Existing folder for two files, which the result reads.
        name: First part of the names of these files.

    Raises:
        FileNotFoundError: If a file does not exist.
        ValueError: If a line is malformed or its replies cannot be found (the message names file
            and line), or no dialogue is left.
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
            files[0].append(ids)
            files[1].append(mask)
    if not len(files[0]):
        problem = f"all {too_long} have more than {max_length} tokens" if too_long else "got none"
        raise ValueError(f"data must have at least one dialogue, {problem}")
    return Dialogues(files[0].read(), files[1].read(), too_long)


def _encoded(paths: Iterable[str | Path], *how: Any) -> Iterator[tuple[Sequence[int], np.ndarray]]:
    for path in paths:
        for where, record in json_lines(path):
            try:
                yield encode_dialogue(record, *how)
            except ValueError as error:
                raise ValueError(f"{where}: {error}") from error
