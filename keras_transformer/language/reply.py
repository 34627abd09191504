"""State of a reply that runs in `Slots`: its prompt, options and tokens so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from keras_transformer.search import Generation

_DRAWS = {name: "int32" if name == "top_k" else "float32" for name in Generation.names(draws=True)}


@dataclass(frozen=True)
class Event:
    """The next token of a reply.

    Attributes:
        id: Id of the reply, from `Slots.join`.
        token: Id of the token. If `end` is "stop", it ends the reply and is not part of it.
        log_prob: Its log-probability, before any penalty or temperature.
        top: The most probable tokens and their log-probabilities, best first: as many as `join`
            was asked for.
        end: None while the reply continues; "stop" for an end token; "length" for the last token
            of a reply at its maximum length.
        reused: Number of tokens of the prompt whose keys and values were cached already.
    """

    id: int
    token: int
    log_prob: float
    top: tuple[tuple[int, float], ...]
    end: str | None
    reused: int


@dataclass(eq=False)
class CacheRow:
    """A row of the caches: the tokens whose keys and values it holds, and the reply that uses it.

    Args:
        ids: Ids of the cached tokens.
        reply: The reply that uses the row; None: the row is free.
        used: Number of the turn in which it was last used; -1: never.
    """

    ids: list[int] = field(default_factory=list)
    reply: Reply | None = None
    used: int = -1


@dataclass(eq=False)
class Reply:
    """A reply that has joined `Slots` and has not ended.

    Args:
        id: Number of the reply, from `Slots.join`.
        prompt: Token ids of its prompt, at least one.
        search: Its search options.
        most: Maximum number of tokens.
        ends: Ids of the tokens that end it.
        top: Number of most probable tokens in its events.
        uniforms: Random numbers in [0, 1), one per token; None: no sampling, the most probable
            token is taken.
        seen: Whether each token has occurred (V,), for the repetition penalty; None: no penalty.
        row: Its row of the caches; None until the prompt begins to be read.
        reused: Number of tokens of the prompt whose keys and values were cached already.
        made: Number of tokens of the reply so far.
        last: The last of these tokens; -1: none yet.
    """

    id: int
    prompt: list[int]
    search: Generation
    most: int
    ends: frozenset[int]
    top: int
    uniforms: np.ndarray | None = None
    seen: np.ndarray | None = None
    row: CacheRow | None = None
    reused: int = 0
    made: int = 0
    last: int = -1

    @property
    def next_token(self) -> int:
        """The input of the model's next step: the last token of the reply, or of the prompt."""
        return self.last if self.made else self.prompt[-1]

    @property
    def ids(self) -> list[int]:
        """Token ids of the prompt and of the reply so far; the last one is `next_token`."""
        return [*(self.row.ids if self.row else self.prompt[:-1]), self.next_token]

    def take(self, token: int) -> str | None:
        """Add a token; return "stop" or "length" if it ends the reply, see `Event.end`, or None."""
        self.made, self.last = self.made + 1, token
        if token in self.ends:
            return "stop"
        if self.seen is not None:
            self.seen[token] = True
        return "length" if self.made == self.most else None


def forbidden(search: Generation, ids: Sequence[int], made: int) -> list[int]:
    """Return the tokens that must not follow `ids`: suppressed ones, and ends of repeated n-grams.

    Args:
        search: Options of the search: suppressed tokens, and `no_repeat_ngram_size`.
        ids: Token ids of the prompt and the new tokens so far.
        made: Number of new tokens so far.
    """
    forbidden_ids = [*search.suppress_tokens, *(() if made else search.begin_suppress_tokens)]
    if size := search.no_repeat_ngram_size:
        last = list(ids[len(ids) - size + 1 :])
        for i in range(len(ids) - size + 1):
            if list(ids[i : i + size - 1]) == last:
                forbidden_ids.append(ids[i + size - 1])
    return forbidden_ids


def choices(replies: Sequence[Reply], vocab_size: int) -> dict[str, np.ndarray]:
    """Return the options of replies as arrays, one row per reply: arguments of `next_tokens`.

    Arguments that no reply needs are left out.
    """
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


def common(first: Sequence[object], second: Sequence[object]) -> int:
    """Return the length of the common prefix of two sequences."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((i for i, (x, y) in pairs if x != y), min(len(first), len(second)))
