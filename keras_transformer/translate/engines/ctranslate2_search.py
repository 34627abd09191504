"""Our searches for the rows of a batch, asked of CTranslate2."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from keras_transformer.running.runner import search_batches
from keras_transformer.search import Search
from keras_transformer.text.tokenizer import round_up
from keras_transformer.translate.engines.beams import Beam, BeamEnd

NEVER = -1e9  # CTranslate2 gives this total or less to beams that are none
PLAIN = 1e-9  # a length penalty so small that CTranslate2's scores are the totals
MARGIN = 2  # tokens after the usual end of a translation in which its rivals end, too
STEP = 4  # lengths to look at are multiples of it, so that similar texts share batches


@dataclass(eq=False)
class Row:
    """A text to translate.

    Args:
        source: Its tokens.
        prefix: Ids of the tokens that its translation must begin with.
        limit: Maximum tokens of the translation, the prefix and EOS included.
        start: Sum of the log-probabilities of the prefix.
        found: Its hypotheses, best first; None: CTranslate2 does not show enough to know them.
    """

    source: list[str]
    prefix: tuple[int, ...]
    limit: int
    start: float = 0.0
    found: list[Beam] | None = None


class Asked(Protocol):
    """Options that a search passes to the engine, see `CTranslate2Engine`."""

    config: Any

    def beams(
        self, rows: Sequence[Row], beam_size: int, length: int, **options: Any
    ) -> list[list[Beam]]:
        """Return what CTranslate2 finds for each row within a length."""
        ...

    def log_probabilities(
        self, rows: Sequence[Row], targets: Sequence[Sequence[int]], tokens_per_batch: int
    ) -> list[list[float]]:
        """Return the log-probability of each token of a target, and last of EOS."""
        ...


def shares(lengths: Sequence[int], tokens_per_batch: int) -> Iterator[list[int]]:
    """Yield the indices of batches of a token budget, the longest texts first."""
    longest = max(lengths, default=0)
    for chosen, _, _ in search_batches(lengths, tokens_per_batch, longest):
        yield chosen


class RowSearch:
    """A search for rows; it fills in `found` of each row that it can decide.

    Args:
        engine: The engine.
        search: Options of the search.
        tokens_per_batch: Maximum source tokens per batch, padding included.
        growth: Tokens of a translation for each one of its source, of most texts. A wrong value
            costs time only.
    """

    def __init__(self, engine: Asked, search: Search, tokens_per_batch: int, growth: float):
        self.engine, self.search, self.tokens_per_batch = engine, search, tokens_per_batch
        self.growth = growth
        self._costs_nothing = search.scoring == "transformers"  # a token that is forced

    def run(self, rows: Sequence[Row]) -> None:
        """Search for all rows."""
        begun = [row for row in rows if row.prefix]
        self._begin(begun)
        if self.search.beam_size == 1:
            self._greedy(rows)
            return
        # The beams need a free step after the prefix, and one before the EOS at the limit.
        rows = [row for row in rows if row.limit > len(row.prefix) + 1]
        expanded = self._expanded([row for row in rows if row.prefix])
        rows = [row for row in rows if not row.prefix or row in expanded]
        if self.search.length_penalty == 0 and self.search.num_hypotheses == 1:
            self._best_sums(rows)
        self._ends([row for row in rows if row.found is None])

    def _batches(self, rows):
        """Yield batches of rows; only such with a prefix, or only such without."""
        for has_prefix in (False, True):
            some = [row for row in rows if bool(row.prefix) == has_prefix]
            for chosen in shares([len(row.source) for row in some], self.tokens_per_batch):
                yield [some[i] for i in chosen]

    def _begin(self, rows):
        """Find the log-probability of each row's prefix, which CTranslate2 leaves out."""
        if rows and not self._costs_nothing:
            logs = self._logs(rows, [row.prefix for row in rows])
            for row, one in zip(rows, logs, strict=True):
                row.start = sum(one[:-1])

    def _logs(self, rows, targets):
        return self.engine.log_probabilities(rows, targets, self.tokens_per_batch)

    def _greedy(self, rows):
        cut = []
        for batch in self._batches(rows):
            longest = max(1, max(row.limit for row in batch) - self.search.forced_eos)
            found = self.engine.beams(batch, 1, longest, length_penalty=0)
            for row, (beam,) in zip(batch, found, strict=True):
                most = row.limit - self.search.forced_eos
                if beam.ended and len(beam.ids) <= most:
                    row.found = [replace(beam, total=beam.total + row.start)]
                else:
                    cut.append((row, beam.ids[:most]))
        logs = self._logs([row for row, _ in cut], [ids for _, ids in cut])
        for (row, ids), one in zip(cut, logs, strict=True):
            begin = len(row.prefix) if self._costs_nothing else 0
            if not self.search.forced_eos:
                row.found = [Beam(tuple(ids), sum(one[begin:-1]), False)]
                continue
            total = sum(one[begin:-1] if self._costs_nothing else one)
            row.found = [self._closed(row, ids, total)]

    def _expanded(self, rows):
        """Return the rows in which EOS is not among the beams right after the prefix.

        CTranslate2 drops it there, and a beam with it.
        """
        kept = []
        for length in sorted({len(row.prefix) for row in rows}):
            for batch in self._batches([row for row in rows if len(row.prefix) == length]):
                for row, beams in zip(batch, self._shown(batch, length + 1), strict=True):
                    if len(beams) == self.search.beam_size:
                        kept.append(row)
        return kept

    def _best_sums(self, rows):
        """Find the best sum of log-probabilities, for which CTranslate2's own end is right.

        It ends when the best beam finishes: none that finishes later can have a higher sum.
        """
        for batch in self._batches(rows):
            shortest = min(row.limit for row in batch) - 1
            if shortest > max(len(row.prefix) for row in batch):
                options = dict(length_penalty=0, num_hypotheses=1)
                found = self.engine.beams(batch, self.search.beam_size, shortest, **options)
                for row, (beam,) in zip(batch, found, strict=True):
                    if beam.ended:
                        row.found = [replace(beam, total=beam.total + row.start)]

    def _ends(self, rows):
        """Find the end of our search for each row, see `beams`."""
        ends = {row: BeamEnd(self.search, row.limit, self._guess(row)) for row in rows}
        while ends:
            for length in sorted({end.next for end in ends.values()}):
                some = [row for row, end in ends.items() if end.next == length]
                for batch in self._batches(some):
                    self._look(batch, [ends[row] for row in batch], length)
            for row in [row for row, end in ends.items() if end.found or end.hidden]:
                row.found = ends.pop(row).found

    def _look(self, rows, ends, length):
        """Look at the beams of rows at a length."""
        shown = self._shown(rows, length)
        last = [
            (row, end, beam)
            for row, end, beams in zip(rows, ends, shown, strict=True)
            for beam in beams
            if length == end.last and not beam.ended
        ]
        logs = [[0.0]] * len(last)
        if self.search.forced_eos and not self._costs_nothing:
            logs = self._logs([row for row, *_ in last], [beam.ids for *_, beam in last])
        forced = {end: [] for end in ends}
        for (row, end, beam), one in zip(last, logs, strict=True):
            closed = self._closed(row, beam.ids, beam.total + one[-1])
            forced[end].append(closed if self.search.forced_eos else beam)
        for end, beams in zip(ends, shown, strict=True):
            end.add(beams, forced[end])

    def _shown(self, rows, length):
        """Return all that finishes up to a length, and the beams there, with their totals."""
        options = dict(
            length_penalty=PLAIN,  # other than 0, so that the search does not end early
            patience=length + 1,  # nor when `patience * beam_size` hypotheses have finished
            num_hypotheses=self.search.beam_size * (length + 1),
        )
        found = self.engine.beams(rows, self.search.beam_size, length, **options)
        return [
            [replace(x, total=x.total + row.start) for x in beams if x.total > NEVER]
            for row, beams in zip(rows, found, strict=True)
        ]

    def _guess(self, row):
        """Return a length at which most translations of such a source have ended."""
        length = len(row.prefix) + round(self.growth * len(row.source)) + MARGIN
        return round_up(length, STEP)

    def _closed(self, row, ids, total):
        return Beam((*ids, self.engine.config.eos_ids[0]), total, True)
