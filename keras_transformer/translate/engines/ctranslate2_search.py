"""Greedy and beam search with CTranslate2 that return the hypotheses of `KerasEngine`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from keras_transformer.running.batches import search_batches
from keras_transformer.search import Search
from keras_transformer.text.tokenizer import round_up
from keras_transformer.translate.engines.beams import Beam, BeamEnd

NEVER = -1e9  # CTranslate2 gives this total or less to beams that do not exist
PLAIN = 1e-9  # a length penalty so small that CTranslate2's scores are the totals
MARGIN = 2  # tokens beyond the expected length: competing beams usually end within them
STEP = 4  # first lengths of searches are multiples of 4, so that similar texts share batches


@dataclass(eq=False)
class Row:
    """A text to translate, and its hypotheses once they are found.

    Args:
        source: Tokens of the source, as strings.
        prefix: Ids of the tokens that the translation must begin with.
        limit: Maximum tokens of the translation, prefix and EOS included.
        start: Sum of the log-probabilities of the prefix.
        found: Hypotheses, best first. None before the search, and after it if CTranslate2's beams
            do not suffice to find them.
    """

    source: list[str]
    prefix: tuple[int, ...]
    limit: int
    start: float = 0.0
    found: list[Beam] | None = None


class Asked(Protocol):
    """The methods of `CTranslate2Engine` that a `RowSearch` calls."""

    config: Any

    def beams(
        self, rows: Sequence[Row], beam_size: int, length: int, **options: Any
    ) -> list[list[Beam]]:
        """Return CTranslate2's beams of each row up to a length; see `CTranslate2Engine.beams`."""
        ...

    def log_probabilities(
        self, rows: Sequence[Row], targets: Sequence[Sequence[int]], tokens_per_batch: int
    ) -> list[list[float]]:
        """Return log-probabilities of targets; see `CTranslate2Engine.log_probabilities`."""
        ...


def shares(lengths: Sequence[int], tokens_per_batch: int) -> Iterator[list[int]]:
    """Yield the indices of the texts of each batch, the longest texts first.

    Args:
        lengths: Number of tokens of each text.
        tokens_per_batch: Maximum tokens per batch, padding included.
    """
    longest = max(lengths, default=0)
    for chosen, _, _ in search_batches(lengths, tokens_per_batch, longest, few_shapes=False):
        yield chosen


class RowSearch:
    """A search for rows, which sets `found` of each row if it can derive the hypotheses.

    Args:
        engine: Computes beams and log-probabilities.
        search: Options of the search.
        tokens_per_batch: Maximum source tokens per batch, padding included.
        growth: Expected target tokens per source token, enough for most texts. A wrong value only
            costs time.
    """

    def __init__(self, engine: Asked, search: Search, tokens_per_batch: int, growth: float):
        self.engine, self.search, self.tokens_per_batch = engine, search, tokens_per_batch
        self.growth = growth
        self._costs_nothing = search.scoring == "transformers"  # forced tokens have probability 1

    def run(self, rows: Sequence[Row]) -> None:
        """Search for all rows; set `found` of those whose hypotheses can be derived."""
        with_prefix = [row for row in rows if row.prefix]
        self._begin(with_prefix)
        if self.search.beam_size == 1:
            self._greedy(rows)
            return
        if self.search.scoring == "marian":  # Marian's beam shrinks, CTranslate2's does not
            return
        # A beam search needs a free step between the prefix and the EOS at the limit.
        rows = [row for row in rows if row.limit > len(row.prefix) + 1]
        expanded = self._expanded([row for row in rows if row.prefix])
        rows = [row for row in rows if not row.prefix or row in expanded]
        if self.search.length_penalty == 0 and self.search.num_hypotheses == 1:
            self._best_sums(rows)
        self._ends([row for row in rows if row.found is None])

    def _batches(self, rows):
        """Yield batches of rows: in each batch all rows have a prefix, or none has."""
        for has_prefix in (False, True):
            some = [row for row in rows if bool(row.prefix) == has_prefix]
            for chosen in shares([len(row.source) for row in some], self.tokens_per_batch):
                yield [some[i] for i in chosen]

    def _begin(self, rows):
        """Set `start`, the log-probability of each prefix, which CTranslate2's totals lack."""
        if rows and not self._costs_nothing:
            logs = self._logs(rows, [row.prefix for row in rows])
            for row, row_logs in zip(rows, logs, strict=True):
                row.start = sum(row_logs[:-1])

    def _logs(self, rows, targets):
        return self.engine.log_probabilities(rows, targets, self.tokens_per_batch)

    def _greedy(self, rows):
        """Set `found` of each row by greedy search; translations are cut at their limit."""
        cut = []
        for batch in self._batches(rows):
            longest = max(1, max(row.limit for row in batch) - self.search.forced_eos)
            beams = self.engine.beams(batch, 1, longest, length_penalty=0)
            for row, (beam,) in zip(batch, beams, strict=True):
                most = row.limit - self.search.forced_eos
                if beam.ended and len(beam.ids) <= most:
                    row.found = [replace(beam, total=beam.total + row.start)]
                else:
                    cut.append((row, beam.ids[:most]))
        logs = self._logs([row for row, _ in cut], [ids for _, ids in cut])
        for (row, ids), row_logs in zip(cut, logs, strict=True):
            begin = len(row.prefix) if self._costs_nothing else 0
            if not self.search.forced_eos:
                row.found = [Beam(tuple(ids), sum(row_logs[begin:-1]), False)]
                continue
            total = sum(row_logs[begin:-1] if self._costs_nothing else row_logs)
            row.found = [self._closed(row, ids, total)]

    def _expanded(self, rows):
        """Return the rows in which EOS is not among the best tokens right after the prefix.

        In the other rows, CTranslate2 drops that EOS, so it has one beam fewer than our search.
        """
        kept = []
        for length in sorted({len(row.prefix) for row in rows}):
            for batch in self._batches([row for row in rows if len(row.prefix) == length]):
                for row, beams in zip(batch, self._shown(batch, length + 1), strict=True):
                    if len(beams) == self.search.beam_size:
                        kept.append(row)
        return kept

    def _best_sums(self, rows):
        """Find the hypothesis with the best sum of log-probabilities (`length_penalty=0`).

        CTranslate2's own search suffices: it ends when the best beam finishes, and no beam that
        finishes later can have a higher sum.
        """
        for batch in self._batches(rows):
            shortest = min(row.limit for row in batch) - 1
            if shortest > max(len(row.prefix) for row in batch):
                beams = self.engine.beams(
                    batch, self.search.beam_size, shortest, length_penalty=0, num_hypotheses=1
                )
                for row, (beam,) in zip(batch, beams, strict=True):
                    if beam.ended:
                        row.found = [replace(beam, total=beam.total + row.start)]

    def _ends(self, rows):
        """Find the hypotheses of our beam search for each row, see the module `beams`."""
        ends = {row: BeamEnd(self.search, row.limit, self._guess(row)) for row in rows}
        while ends:
            for length in sorted({end.next for end in ends.values()}):
                some = [row for row, end in ends.items() if end.next == length]
                for batch in self._batches(some):
                    self._look(batch, [ends[row] for row in batch], length)
            for row in [row for row, end in ends.items() if end.found or end.hidden]:
                row.found = ends.pop(row).found

    def _look(self, rows, ends, length):
        """Let CTranslate2 search rows up to a length, and add the beams to each row's `BeamEnd`."""
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
        forced: dict[BeamEnd, list[Beam]] = {end: [] for end in ends}
        for (row, end, beam), row_logs in zip(last, logs, strict=True):
            closed = self._closed(row, beam.ids, beam.total + row_logs[-1])
            forced[end].append(closed if self.search.forced_eos else beam)
        for end, beams in zip(ends, shown, strict=True):
            end.add(beams, forced[end])

    def _shown(self, rows, length):
        """Return the beams that finish up to a length, and the unfinished ones at this length."""
        options = dict(
            length_penalty=PLAIN,  # with 0, the search would end early
            patience=length + 1,  # it ends when `patience * beam_size` hypotheses have finished
            num_hypotheses=self.search.beam_size * (length + 1),
        )
        results = self.engine.beams(rows, self.search.beam_size, length, **options)
        return [
            [replace(x, total=x.total + row.start) for x in beams if x.total > NEVER]
            for row, beams in zip(rows, results, strict=True)
        ]

    def _guess(self, row):
        """Return a length within which most translations of a source of this length end."""
        length = len(row.prefix) + round(self.growth * len(row.source)) + MARGIN
        return round_up(length, STEP)

    def _closed(self, row, ids, total):
        return Beam((*ids, self.engine.config.eos_ids[0]), total, True)
