"""The end of our beam search, found from what CTranslate2's beam search shows of itself.

Both searches keep the same beams: at each step the best unfinished extensions, while those that
reach EOS among the best are set aside. They differ in when a text is done and in how it is scored.
CTranslate2 shows a beam's sum of log-probabilities when the beam finishes, or when the maximum
length is reached. So a search of CTranslate2 that never ends early, up to some length, shows all
that finished up to there, and the beams at that length; from that follows where our search ends,
or which length must be looked at next.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from keras_transformer.search import Search


@dataclass(frozen=True)
class Beam:
    """A beam of CTranslate2.

    Args:
        ids: Its tokens, with those of the prefix and with EOS.
        total: Sum of the tokens' log-probabilities.
        ended: Whether the last token is EOS.
    """

    ids: tuple[int, ...]
    total: float
    ended: bool


def penalty(length: int, search: Search) -> float:
    """Return the divisor of a text's score, see `decoding.rules.length_penalty_factor`."""
    base = length if search.scoring == "transformers" else (5 + length) / 6
    return base**search.length_penalty


class BeamEnd:
    """Where our beam search of a text ends, and with what.

    Use: let CTranslate2 search up to the length `next`, pass what it shows to `add`, and repeat
    until `found` is not None or `hidden` is set.

    Args:
        search: Options of the search, with a beam of 2 or more.
        limit: Maximum tokens of the text; with `forced_eos` the last one must be EOS.
        length: The length to look at first, 1 or more.

    Attributes:
        last: The greatest length to look at, `limit - 1` with `forced_eos`, else `limit`.
        next: The length to look at next. At `last`, `add` needs what becomes of the beams there.
        found: The hypotheses of our search, best first; None: not known yet.
        hidden: Whether CTranslate2 does not show enough to know them.
    """

    def __init__(self, search: Search, limit: int, length: int):
        self.search, self.limit = search, limit
        self.last = limit - 1 if search.forced_eos else limit
        self.next = max(1, min(length, self.last))
        self.found: list[Beam] | None = None
        self.hidden = False
        self._wanted = search.num_hypotheses or search.beam_size
        self._last = 0  # the greatest length looked at
        self._ended: list[Beam] = []  # those that finished up to there
        self._floor: dict[int, float] = {}  # of the best beam at a length: at least this much,
        self._roof: dict[int, float] = {}  # and at most this much

    def add(self, paths: Sequence[Beam], forced: Iterable[Beam] = ()) -> None:
        """Take what CTranslate2 showed up to the length `next`.

        Args:
            paths: All that finished, and the beams at that length.
            forced: At `last`: the beams at that length, with `forced_eos` each with EOS.
        """
        length = self.next
        ended = sorted((x for x in paths if x.ended), key=lambda x: (len(x.ids), -x.total))
        beams = [x.total for x in paths if not x.ended]
        for t in range(1, length + 1):
            later = [x.total for x in ended if len(x.ids) > t] + beams
            self._floor[t] = max(self._floor.get(t, -math.inf), *later, -math.inf)
        if length > self._last:
            self._last, self._ended = length, ended
        self._roof[length] = max(beams, default=self._worst_of(length))
        if length == self.last:
            self._ended = self._ended + sorted(forced, key=lambda x: -x.total)
            self._roof[self.limit] = -math.inf
        self._ended.sort(key=lambda x: -self._score(x))  # equal scores keep their order
        if length == self.last and len(beams) < self.search.beam_size:
            self.hidden = self._hides(self._roof[length])
        if not self.hidden:
            self._decide()

    def _worst_of(self, length):
        """Return the total of the worst that ends at a length: if all the best do, beams are below.

        It is not that of the last look: sums of the same tokens differ by rounding.
        """
        return min((x.total for x in self._ended if len(x.ids) == length), default=-math.inf)

    def _hides(self, beam):
        """Return whether a beam that is not shown, of at most this total, may be among the best."""
        if any(t < self.limit and self._holds(t, roof) for t, roof in self._roof.items()):
            return False
        best = self._best(self.limit)
        bound = beam / penalty(self.limit, self.search)
        return len(best) < self._wanted or self._score(best[self._wanted - 1]) <= bound

    def _decide(self):
        """Find the first length at which our search may end, and one at which it does."""
        first = None
        for t in (*range(1, self._last + 1), self.limit):
            if t in self._roof and self._holds(t, self._roof[t]):
                first = first or t
                best = self._best(first)[: self._wanted]
                if best == self._best(t)[: self._wanted]:
                    self.found = best
                else:
                    self.next = first
                return
            if t in self._floor and t not in self._roof and self._holds(t, self._floor[t]):
                first = first or t
        self.next = min(self.last, self._last + max(8, self._last // 2))

    def _holds(self, t, beam):
        """Return whether our search ends at length t if this is the total of its best beam."""
        if t == self.limit:
            return True
        best, search = self._best(t), self.search
        decisive = -1 if search.scoring == "transformers" else 0
        is_full = len(best) == search.beam_size
        if is_full and search.early_stopping:
            return True
        if is_full and self._score(best[decisive]) >= beam / penalty(t, search):
            return True
        reachable = beam / penalty(self.limit, search)
        return len(best) >= self._wanted and self._score(best[self._wanted - 1]) >= reachable

    def _best(self, t):
        return [x for x in self._ended if len(x.ids) <= t][: self.search.beam_size]

    def _score(self, path):
        return path.total / penalty(len(path.ids), self.search)
