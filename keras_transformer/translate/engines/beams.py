"""The results of our beam search (`decoding.beam`), derived from the beams of CTranslate2's search.

Both searches keep the same beams: at each step the best unfinished extensions; extensions among the
best that reach EOS are set aside as finished. The searches differ in when they end and in how they
score. CTranslate2 returns a beam's sum of log-probabilities when the beam finishes, or when the
maximum length is reached. So if CTranslate2 searches up to some length without ending early, it
returns all beams that finished within this length, and the unfinished beams at this length. From
these follows where our search ends, or up to which length CTranslate2 must search next.
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
        ids: Ids of its tokens, prefix and EOS included.
        total: Sum of the tokens' log-probabilities.
        ended: Whether the last token is EOS.
    """

    ids: tuple[int, ...]
    total: float
    ended: bool


def penalty(length: int, search: Search) -> float:
    """Return the divisor of a text's score, see `decoding.rules.length_penalty_factor`."""
    base = (5 + length) / 6 if search.scoring == "wu" else length
    return base**search.length_penalty


class BeamEnd:
    """The end of our beam search for one text: its length and its hypotheses.

    Use: let CTranslate2 search up to the length `next`, pass its beams to `add`, and repeat until
    `found` is not None or `hidden` is set.

    Args:
        search: Options of the search, with a beam of 2 or more.
        limit: Maximum tokens of the translation; with `forced_eos` the last one must be EOS.
        length: The length of the first search of CTranslate2, at least 1.

    Attributes:
        last: The greatest length to search: `limit - 1` with `forced_eos`, else `limit`.
        next: The length to search next. At `last`, `add` also needs the argument `forced`.
        found: The hypotheses of our search, best first; None: not known yet.
        hidden: Whether CTranslate2's beams do not suffice to find the hypotheses.
    """

    def __init__(self, search: Search, limit: int, length: int):
        self.search, self.limit = search, limit
        self.last = limit - 1 if search.forced_eos else limit
        self.next = max(1, min(length, self.last))
        self.found: list[Beam] | None = None
        self.hidden = False
        self._wanted = search.num_hypotheses or search.beam_size
        self._last = 0  # the greatest length searched so far
        self._ended: list[Beam] = []  # beams that finished within that length
        # Lower and upper bounds of the total of the best unfinished beam, by length.
        self._floor: dict[int, float] = {}
        self._roof: dict[int, float] = {}

    def add(self, paths: Sequence[Beam], forced: Iterable[Beam] = ()) -> None:
        """Add the results of CTranslate2's search up to the length `next`.

        Args:
            paths: All beams that finished, and the unfinished beams at that length.
            forced: Only at `last`: the unfinished beams again; with `forced_eos`, each ends in EOS.
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
        """Return the lowest total of the beams that end at a length; -infinity if none does.

        If CTranslate2 returns no unfinished beam at this length, this total bounds them. It is
        taken from `_ended`, with which it will be compared: sums of the same tokens differ between
        searches by rounding.
        """
        return min((x.total for x in self._ended if len(x.ids) == length), default=-math.inf)

    def _hides(self, beam):
        """Return whether a missing beam, with at most the total `beam`, may be among the best."""
        if any(t < self.limit and self._holds(t, roof) for t, roof in self._roof.items()):
            return False
        best = self._best(self.limit)
        bound = beam / penalty(self.limit, self.search)
        return len(best) < self._wanted or self._score(best[self._wanted - 1]) <= bound

    def _decide(self):
        """Set `found` if the end of our search is certain, else `next`.

        It compares the first length at which our search may end, by the lower bounds of unfinished
        beams, with the first at which it must end, by the upper bounds.
        """
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
        """Return whether our search ends at length t if its best unfinished beam has this total."""
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
