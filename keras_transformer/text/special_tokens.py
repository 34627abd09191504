"""Special tokens of a `tokenizer.json`, and texts that spell them."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Collection, Mapping
from typing import Any

# Nobody can guess it, so that no text contains the names and marks that are made of it. It has no
# letters, whose case a template or a tokenizer may change.
_SECRET = f"{secrets.randbelow(10**20):020}"
_MARK = f"\ue000{_SECRET}\ue000"


def renamed(content: bytes, control: Collection[str] = ()) -> tuple[bytes, dict[str, str]]:
    """Give the special tokens of a `tokenizer.json` secret names.

    Under these names a text that spells a special token is no match, and is spelled out. The
    option `encode_special_tokens` of the library `tokenizers` does the same, but for all tokens at
    once, and not where the model finds the piece itself, as XLM-RoBERTa's finds "</s>".

    Args:
        content: Contents of the file.
        control: Other added tokens that are treated like special ones.

    Returns:
        The contents with other names, and the new name of each special token. All ids remain.
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
    vocabulary = model.get("vocab")
    if isinstance(vocabulary, list):
        model["vocab"] = [[names.get(piece, piece), score] for piece, score in vocabulary]
    elif vocabulary is not None:
        model["vocab"] = {names.get(piece, piece): i for piece, i in vocabulary.items()}
    if model.get("unk_token") in names:
        model["unk_token"] = names[model["unk_token"]]
    if merges := model.get("merges"):
        pairs = (x.split(" ") if isinstance(x, str) else x for x in merges)
        both = zip(merges, pairs, strict=True)
        model["merges"] = [x for x, pair in both if names.keys().isdisjoint((*pair, "".join(pair)))]


def pattern_of(tokens: Collection[str]) -> re.Pattern[str]:
    """Return the regular expression of some tokens; of two at the same place, the longer one."""
    longest = sorted(filter(None, tokens), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest)) if longest else r"(?!)")


def replaced(text: str, names: Mapping[str, str]) -> str:
    """Return a text with the names of the tokens that it spells."""
    return pattern_of(names).sub(lambda found: names[found[0]], text) if names else text


class Quotation:
    """Special tokens that the messages of a chat spell, as marks while a template is rendered.

    So the tokens that the template writes can be told from those that a message spells.

    Args:
        names: Names of the special tokens in the rendered text, see `renamed`.
    """

    def __init__(self, names: Mapping[str, str]):
        self.names = names
        self.marks = {token: f"{_MARK}{i}{_MARK}" for i, token in enumerate(names)}

    def quoted(self, value: Any) -> Any:
        """Return a message, or a part of it, with marks for the special tokens in its texts."""
        if isinstance(value, str):
            return replaced(value, self.marks)
        if isinstance(value, Mapping):
            return {self.quoted(name): self.quoted(part) for name, part in value.items()}
        if isinstance(value, list | tuple):
            return [self.quoted(part) for part in value]
        return value

    def unquoted(self, text: str) -> str:
        """Return a rendered text with the names of the template's tokens, and without marks."""
        tokens = {mark: token for token, mark in self.marks.items()}
        return replaced(replaced(text, self.names), tokens)
