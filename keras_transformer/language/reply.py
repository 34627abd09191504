"""A reply of a language model that runs in a slot: its prompt, options, and tokens so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from keras_transformer.language.prompts import forbidden
from keras_transformer.search import Generation

_DRAWS = {"temperature": "float32", "top_k": "int32", "top_p": "float32", "min_p": "float32"}


@dataclass(frozen=True)
class Event:
    """The next token of a reply.

    Attributes:
        id: Id of the reply, from `Slots.join`.
        token: The token; if `end` is "stop", one that ends a reply and is no part of it.
        log_prob: Its log-probability, before any penalty or temperature.
        top: The most probable tokens and their log-probabilities, as many as asked for.
        end: None while the reply runs; "stop" at a token that ends it; "length" at its last token
            if it has reached its maximum length.
        reused: Number of tokens of the prompt that another sequence had read before.
    """

    id: int
    token: int
    log_prob: float
    top: tuple[tuple[int, float], ...]
    end: str | None
    reused: int


@dataclass(eq=False)
class Row:
    """A row of the caches: the tokens whose keys and values it has, and who uses it."""

    ids: list[int] = field(default_factory=list)
    reply: Reply | None = None  # the one that has the row
    used: int = -1  # the turn in which it was used last


@dataclass(eq=False)
class Reply:
    """A reply that has joined and has not ended.

    Args:
        id: Its id.
        prompt: Token ids of its prompt, at least one.
        search: Its options.
        most: Maximum number of tokens.
        ends: Tokens that end it.
        top: Number of most probable tokens in its events.
        uniforms: Random numbers, one for each token; None: it takes the most probable tokens.
        seen: Which tokens have occurred (V,), for a repetition penalty; None: there is none.
    """

    id: int
    prompt: list[int]
    search: Generation
    most: int
    ends: frozenset[int]
    top: int
    uniforms: np.ndarray | None = None
    seen: np.ndarray | None = None
    row: Row | None = None  # None until its prompt begins to be read
    reused: int = 0  # tokens of the prompt that another sequence had read
    made: int = 0  # tokens of the reply
    last: int = -1

    @property
    def next_token(self) -> int:
        """The token that the next step reads."""
        return self.last if self.made else self.prompt[-1]

    @property
    def ids(self) -> list[int]:
        """The tokens that have been read, and the one that the next step reads."""
        return [*(self.row.ids if self.row else self.prompt[:-1]), self.next_token]

    def take(self, token: int) -> str | None:
        """Add a token; return why the reply ends, or None."""
        self.made, self.last = self.made + 1, token
        if token in self.ends:
            return "stop"
        if self.seen is not None:
            self.seen[token] = True
        return "length" if self.made == self.most else None


def choices(replies: Sequence[Reply], vocab_size: int) -> dict[str, np.ndarray]:
    """Return the arguments of `next_tokens` that these replies need."""
    choice = {}
    never = [forbidden(x.search, x.ids, x.made) for x in replies]
    if any(never):
        choice["forbidden"] = np.zeros((len(replies), vocab_size), bool)
        for row, ids in enumerate(never):
            choice["forbidden"][row, ids] = True
    if any(x.uniforms is not None for x in replies):
        draws = [0.0 if x.uniforms is None else x.uniforms[x.made] for x in replies]
        choice["uniform"] = np.array(draws, "float32")
        for name, dtype in _DRAWS.items():
            values = [getattr(x.search, name) or 0 for x in replies]
            choice[name] = np.array(values, dtype)
    if any(x.seen is not None for x in replies):
        none = np.zeros_like(next(x.seen for x in replies if x.seen is not None))
        choice["seen"] = np.stack([none if x.seen is None else x.seen for x in replies])
        penalties = [x.search.repetition_penalty for x in replies]
        choice["repetition_penalty"] = np.array(penalties, "float32")
    if any(x.made < x.search.min_new_tokens for x in replies):
        choice["too_early"] = np.array([x.made < x.search.min_new_tokens for x in replies])
    return choice


def common(one: Sequence[object], other: Sequence[object]) -> int:
    """Return the length of the common prefix of two sequences."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (x, y) in pairs if x != y), min(len(one), len(other)))
