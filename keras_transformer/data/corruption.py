"""Span corruption, T5's pretraining task (Raffel et al. 2020, sections 3.1.4 and 3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from keras_transformer.config import require


@dataclass(frozen=True)
class SpanCorruption:
    """Takes spans out of a text: the source has a sentinel for each, the target has the spans.

    "Thank you for inviting me to your party last week" becomes "Thank you <X> me to your party <Y>
    week" and "<X> for inviting <Y> last". The number of spans is fixed by the length, and their
    places and lengths are drawn, all ways to cut alike.

    Args:
        sentinel_ids: as many as spans there may be, in their order.
        eos_id: ends source and target.
        rate: share of the tokens that are taken out, in (0, 1).
        mean_length: of a span, at least 1.

    Call arguments:
        ids: of a text, two or more, without EOS.
        generator: of the random numbers.

    Returns:
        The ids of source and target.

    Raises:
        ValueError: on a value out of range, or a text too short or too long.
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
        """Source and target, as the class says."""
        if len(ids) < 2:
            raise ValueError(f"ids must be two or more, got {len(ids)}")
        taken = min(max(round(len(ids) * self.rate), 1), len(ids) - 1)
        spans = min(max(round(taken / self.mean_length), 1), len(ids) - taken)
        if spans > len(self.sentinel_ids):
            raise ValueError(
                f"sentinel_ids must be {spans} for a text of {len(ids)} tokens, got "
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
    """Texts of one length without some of their spans, for teacher forcing.

    Args:
        windows_BL: ids of the texts. Since the length says how many spans there are, sources are
            of one length and so are targets: nothing is padding.
        corruption: takes the spans out.
        generator: of the random numbers.
        bos_id: begins the decoder's input.

    Returns:
        `source_ids` (B, S) and `target_ids` (B, T), the labels shifted right by one; and these, (B,
        T), all int32.
    """
    pairs = [corruption(ids, generator) for ids in np.asarray(windows_BL).tolist()]
    source_BS, labels_BT = (np.array(side, "int32") for side in zip(*pairs, strict=True))
    target_BT = np.roll(labels_BT, 1, axis=1)
    target_BT[:, 0] = bos_id
    return {"source_ids": source_BS, "target_ids": target_BT}, labels_BT


def _parts(total, count, generator):
    """`count` whole numbers of at least 1 whose sum is `total`, all such equally likely."""
    cuts = np.sort(generator.choice(total - 1, count - 1, replace=False)) + 1
    return np.diff([0, *cuts, total]).tolist()
