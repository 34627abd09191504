"""Span corruption, T5's pretraining task (Raffel et al. 2020, sections 3.1.4 and 3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from keras_transformer.config import require


@dataclass(frozen=True)
class SpanCorruption:
    """Span corruption: sentinels replace spans of a text, and the target is the removed spans.

    "Thank you for inviting me to your party last week" becomes "Thank you <X> me to your party <Y>"
    and "<X> for inviting <Y> last week". The number of tokens to remove and that of spans follow
    from the length of the text. The positions are random: all divisions in which the text begins
    with a kept token and ends with a removed span are equally likely.

    Args:
        sentinel_ids: Ids of the sentinels in order, at least as many as a text has spans.
        eos_id: Id that ends source and target.
        rate: Fraction of the tokens to remove, in (0, 1); at least one is removed.
        mean_length: Mean length of a span in tokens, at least 1.

    Call arguments:
        ids: Token ids of a text, two or more, without EOS.
        generator: Random number generator.

    Returns:
        The source ids and the target ids.

    Raises:
        ValueError: If a value is out of range, a text has fewer than two tokens, or it has more
            spans than there are sentinels.
    """

    sentinel_ids: tuple[int, ...]
    eos_id: int = 1
    rate: float = 0.15
    mean_length: float = 3.0

    def __post_init__(self):
        require(0 < self.rate < 1, "rate", self.rate, "in (0, 1)")
        require(self.mean_length >= 1, "mean_length", self.mean_length, "at least 1")
        require(len(self.sentinel_ids) > 0, "sentinel_ids", self.sentinel_ids, "one or more")

    def __call__(
        self, ids: Sequence[int], generator: np.random.Generator
    ) -> tuple[list[int], list[int]]:
        """Return the source ids and the target ids of a text, see the class."""
        if len(ids) < 2:
            raise ValueError(f"ids must hold two tokens or more, got {len(ids)}")
        taken = min(max(round(len(ids) * self.rate), 1), len(ids) - 1)
        spans = min(max(round(taken / self.mean_length), 1), len(ids) - taken)
        if spans > len(self.sentinel_ids):
            raise ValueError(
                f"sentinel_ids must hold at least {spans} for a text of {len(ids)} tokens, got "
                f"{len(self.sentinel_ids)}"
            )
        source, target, place = [], [], 0
        kept_lengths = _parts(len(ids) - taken, spans, generator)
        taken_lengths = _parts(taken, spans, generator)
        for kept, gone, sentinel in zip(
            kept_lengths, taken_lengths, self.sentinel_ids, strict=False
        ):
            source += [*ids[place : place + kept], sentinel]
            target += [sentinel, *ids[place + kept : place + kept + gone]]
            place += kept + gone
        return [*source, self.eos_id], [*target, self.eos_id]


def corrupted(
    windows_BL: np.ndarray, corruption: SpanCorruption, generator: np.random.Generator, bos_id: int
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Apply span corruption to texts of equal length; return a batch for teacher forcing.

    Args:
        windows_BL: Token ids of B texts of length L. The number of spans depends on L only, so all
            sources have the same length, as have all targets, and nothing is padded.
        corruption: The span corruption to apply to each text.
        generator: Random number generator.
        bos_id: First id of the decoder's input.

    Returns:
        The inputs: `source_ids` (B, S), and `target_ids` (B, T), the labels shifted right by one;
        and the labels (B, T). All are int32.
    """
    pairs = [corruption(ids, generator) for ids in np.asarray(windows_BL).tolist()]
    source_BS, labels_BT = (np.array(side, "int32") for side in zip(*pairs, strict=True))
    target_BT = np.roll(labels_BT, 1, axis=1)
    target_BT[:, 0] = bos_id
    return {"source_ids": source_BS, "target_ids": target_BT}, labels_BT


def _parts(total, count, generator):
    """Return `count` integers of at least 1 that sum to `total`, drawn uniformly."""
    cuts = np.sort(generator.choice(total - 1, count - 1, replace=False)) + 1
    return np.diff([0, *cuts, total]).tolist()
