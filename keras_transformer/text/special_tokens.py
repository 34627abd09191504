"""Protection against texts that spell special tokens, by secret names of these tokens."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Collection, Mapping
from typing import Any

# A random number, so that no text contains the names and marks made from it. It has no letters
# because a template or a tokenizer may change their case.
_SECRET = f"{secrets.randbelow(10**20):020}"
_MARK = f"\ue000{_SECRET}\ue000"


def renamed(content: bytes, control: Collection[str] = ()) -> tuple[bytes, dict[str, str]]:
    """Give the special tokens of a `tokenizer.json` secret names.

    A text that spells a special token by its old name is then encoded as plain text. The option
    `encode_special_tokens` of the library `tokenizers` does so only for all tokens at once, and
    fails if the model itself finds the piece, as XLM-RoBERTa's model finds "</s>".

    Args:
        content: Contents of the `tokenizer.json`.
        control: Further added tokens to rename, which the file does not call special.

    Returns:
        The contents with the new names, and the new name of each token by its old name. All ids
        are unchanged.
    """
    spec = json.loads(content)
    added = spec.get("added_tokens") or []
    tokens = [x["content"] for x in added if x.get("special") or x["content"] in control]
    names = {token: f"<|{_SECRET}:{i}|>" for i, token in enumerate(dict.fromkeys(tokens))}
    for token in added:
        token["content"] = names.get(token["content"], token["content"])
    _rename(spec["model"], names)
    return json.dumps(spec, ensure_ascii=False).encode(), names


def _rename(model: dict[str, Any], names: Mapping[str, str]) -> None:
    """Rename pieces in the model of a `tokenizer.json`; leave out merges that contain them."""
    vocabulary = model.get("vocab")
    if isinstance(vocabulary, list):
        model["vocab"] = [[names.get(piece, piece), score] for piece, score in vocabulary]
    elif vocabulary is not None:
        model["vocab"] = {names.get(piece, piece): i for piece, i in vocabulary.items()}
    if model.get("unk_token") in names:
        model["unk_token"] = names[model["unk_token"]]
    if merges := model.get("merges"):
        pairs = (x.split(" ") if isinstance(x, str) else x for x in merges)
        split_merges = zip(merges, pairs, strict=True)
        model["merges"] = [
            x for x, pair in split_merges if names.keys().isdisjoint((*pair, "".join(pair)))
        ]


def pattern_of(tokens: Collection[str]) -> re.Pattern[str]:
    """Return a regular expression that matches any of the tokens, the longest one at each place."""
    longest = sorted(filter(None, tokens), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest)) if longest else r"(?!)")


def replaced(text: str, names: Mapping[str, str]) -> str:
    """Return a text in which each token that is a key of `names` is replaced by its name."""
    return pattern_of(names).sub(lambda match: names[match[0]], text) if names else text


class Quotation:
    """Marks that replace special tokens in the messages of a chat while a template is rendered.

    So special tokens that the template writes are distinguished from those in messages.

    Args:
        names: Names of the special tokens in the rendered text, see `renamed`.
    """

    def __init__(self, names: Mapping[str, str]):
        self.names = names
        self.marks = {token: f"{_MARK}{i}{_MARK}" for i, token in enumerate(names)}

    def quoted(self, value: Any) -> Any:
        """Return a message, or a part of it, with special tokens in its texts replaced by marks."""
        if isinstance(value, str):
            return replaced(value, self.marks)
        if isinstance(value, Mapping):
            return {self.quoted(name): self.quoted(part) for name, part in value.items()}
        if isinstance(value, list | tuple):
            return [self.quoted(part) for part in value]
        return value

    def unquoted(self, text: str) -> str:
        """Return a rendered text: the template's tokens become names, marks become tokens again."""
        tokens = {mark: token for token, mark in self.marks.items()}
        return replaced(replaced(text, self.names), tokens)
