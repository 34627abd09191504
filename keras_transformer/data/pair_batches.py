"""`TokenBatches`: sentence pairs as batches of a token budget, the input of `fit`.

Pairs of similar length share a batch, and each batch has one of a few fixed shapes. So there is
little padding, and few shapes are compiled. With packing, several pairs share a row: all batches
have the same shape, and almost no padding. A batch depends only on seed and step: training can
resume at any step, and any number of processes can make batches ahead of time.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from keras_transformer.config import require
from keras_transformer.data.alignments import NONE, align_tokens, in_rows
from keras_transformer.data.buckets import Buckets
from keras_transformer.data.encoded import PairTokenizer, encode_pairs
from keras_transformer.data.packing import Packing
from keras_transformer.data.prefetching import Stream, for_keras
from keras_transformer.data.ragged import Ragged
from keras_transformer.data.visits import Visits


class TokenBatches:
    """Sentence pairs in batches of a token budget and of a few fixed shapes.

    A batch is `(inputs, labels)` for teacher forcing, int32 and padded with `pad_id`:

    - `inputs["source_ids"]` (rows, S): the source, ending in EOS;
    - `inputs["target_ids"]` (rows, T): BOS and the target without its last token;
    - `labels` (rows, T): the target, ending in EOS.

    Pairs are sorted into buckets by their longer side; the boundaries of the buckets minimize
    padding and the number of batches for this corpus. Each pair occurs once per epoch; rows of
    padding fill the last batch of a bucket. Vaswani et al. 2017 also batch by approximate length,
    with about 25,000 tokens per side (section 5.1).

    With `packed_length`, a row holds several pairs, concatenated on each side, and `inputs` has
    two more arrays, from which a model builds masks that keep the pairs apart:

    - `inputs["source_segments"]` (rows, S) and `inputs["target_segments"]` (rows, T): the number
      of the pair within its row, from 1; 0 for padding.

    All rows of a side have one length; the side with fewer tokens has proportionally shorter rows.
    The combinations of lengths that share a row are computed once; each epoch shuffles the pairs of
    equal lengths, and the rows.

    With `visits`, pairs occur several times in an epoch, or only in some epochs: see `Visits`.

    With `sampling`, texts are segmented anew in each epoch (Provilkov et al. 2020, "BPE-Dropout";
    Kudo 2018, "Subword Regularization"). This makes them longer: the growth is estimated from a
    sample of texts. If the texts of a row do not fit into it, the first ones, as many as necessary,
    get their segmentation without sampling in that epoch.

    With `aligned`, `inputs["alignment"]` (rows, T) has, for each label, the index in `source_ids`
    of the token that it translates, found by `align_tokens`; -1 for labels without such a token,
    and for padding.

    Args:
        pairs: (source, target) texts; any iterable, read once.
        tokenizer: A tokenizer with `pad_id`, `bos_id`, `eos_id`, and with `encode_source(texts,
            sampling=0.0, seed=None)` and `encode_target`, which return a list of ids per text,
            ending in EOS and without BOS.
        tokens_per_batch: Maximum tokens per side of a batch, padding included: rows times the
            longer of S and T. At least `max_length`.
        num_buckets: Maximum number of shapes. More shapes mean less padding and more compilations.
            Packed rows have one.
        max_length: Maximum tokens per side of a pair, EOS included; longer pairs are left out and
            counted in `dropped`. Without packing, also the maximum of S and T.
        packed_length: Length of rows that several pairs share, from `max_length` to
            `tokens_per_batch`; None: one pair per row. Longer rows have less padding, but cost
            more attention, which is computed over whole rows.
        sampling: Strength of subword sampling, in [0, 1), passed to the tokenizer; 0: none.
        aligned: Whether to align the tokens of each pair; not with `sampling`.
        visits: Mean number of times that each pair occurs in an epoch; None: once.
        shuffle: Whether each epoch has its own order. False (for validation): all epochs have the
            same order.
        seed: Seed of order and sampling, at least 0.
        divisible_by: The number of rows of a batch is padded to a multiple of this, so that devices
            can share them; a batch may then exceed `tokens_per_batch`. The pairs of a batch do not
            depend on it.

    Attributes:
        shapes: (rows, S, T) of each bucket, shortest first, rows of padding included.
        dropped: Number of pairs longer than `max_length`.
        num_tokens: Target tokens per epoch: the number of labels that are not padding.
        num_source_tokens: Source tokens per epoch.
        padding: Fraction of padding in an epoch, source and target together. This and the two
            numbers above refer to texts without sampling.

    Raises:
        ValueError: If an argument is out of range, there are no pairs, or all are too long.
        TypeError: If a pair is not two texts.
    """

    def __init__(
        self,
        pairs: Iterable[tuple[str, str]],
        tokenizer: PairTokenizer,
        *,
        tokens_per_batch: int = 4096,
        num_buckets: int = 6,
        max_length: int = 256,
        packed_length: int | None = None,
        sampling: float = 0.0,
        aligned: bool = False,
        visits: Sequence[float] | np.ndarray | None = None,
        shuffle: bool = True,
        seed: int = 0,
        divisible_by: int = 1,
    ):
        _check_integer("max_length", max_length, 1)
        _check_integer("num_buckets", num_buckets, 1)
        _check_integer("seed", seed, 0)
        _check_integer("tokens_per_batch", tokens_per_batch, 1)
        _check_integer("divisible_by", divisible_by, 1)
        if tokens_per_batch < max_length:
            raise ValueError(
                "tokens_per_batch must be at least the length of the longest sentence, "
                f"max_length={max_length} tokens; got {tokens_per_batch}"
            )
        if packed_length is not None:
            _check_integer("packed_length", packed_length, 1)
            if not max_length <= packed_length <= tokens_per_batch:
                raise ValueError(
                    f"packed_length must be from max_length={max_length} to "
                    f"tokens_per_batch={tokens_per_batch}, got {packed_length}"
                )
        require(0 <= sampling < 1, "sampling", sampling, "in [0, 1)")
        require(not (aligned and sampling), "sampling", sampling, "0 with aligned tokens")
        self.tokenizer = tokenizer
        self.sampling = sampling
        self.shuffle = shuffle
        self.seed = seed
        self._sides, kept = encode_pairs(pairs, tokenizer, max_length, sampling)
        self.dropped = int(len(kept) - kept.sum())
        self._links = None
        if aligned:
            sources, targets = (list(side.ids) for side in self._sides)
            self._links = Ragged.pack(align_tokens(sources, targets))
        lengths = [side.ids.lengths for side in self._sides]
        self._visits = None
        if visits is not None:
            accepted = f"a number for each of the {len(kept)} pairs"
            require(len(visits) == len(kept), "visits", f"{len(visits)} numbers", accepted)
            self._visits = Visits(np.asarray(visits)[kept], lengths)
            lengths = [side_lengths[self._visits.plain] for side_lengths in lengths]
        planned = [side.planned_lengths(seed) for side in self._sides]
        self._packed = packed_length is not None
        self._rows: Packing | Buckets
        if packed_length is not None:
            self._rows = Packing(lengths, planned, packed_length, tokens_per_batch)
        else:
            rooms = [
                np.clip(np.ceil(room(side_lengths)).astype(np.int64), side_lengths, max_length)
                for room, side_lengths in zip(planned, lengths, strict=True)
            ]
            self._rows = Buckets(rooms[0], rooms[1], tokens_per_batch, num_buckets, max_length)
        self.shapes = tuple(
            (-(-rows // divisible_by) * divisible_by, S, T) for rows, S, T in self._rows.shapes
        )
        self._batches = [  # for each batch of an epoch: its bucket, and its first row in the bucket
            (bucket, start)
            for bucket, (rows, _, _) in enumerate(self._rows.shapes)
            for start in range(0, self._rows.counts[bucket], rows)
        ]
        self._plans: dict[int, tuple[list[Ragged], np.ndarray]] = {}
        self.num_source_tokens, self.num_tokens = (int(x.sum()) for x in lengths)
        cells = sum(rows * (S + T) for rows, S, T in (self.shapes[b] for b, _ in self._batches))
        self.padding = 1 - (self.num_source_tokens + self.num_tokens) / cells

    def __len__(self) -> int:
        """Return the number of batches per epoch; all epochs have the same number."""
        return len(self._batches)

    def batch(
        self, step: int, part: tuple[int, int] = (0, 1)
    ) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Return the batch of a step: inputs and labels.

        Args:
            step: Number of the step; steps count from 0 over all epochs.
            part: Rows to return: (index, count) is part `index`, from 0, of `count` equal parts.
                (0, 1): all rows.

        Raises:
            ValueError: If `step` is below 0, or the rows cannot be divided into `count` parts.
        """
        _check_integer("step", step, 0)
        epoch, number = divmod(step, len(self))
        rows_of, order = self._plan(epoch)
        bucket, start = self._batches[order[number]]
        rows, S, T = self.shapes[bucket]
        pairs = rows_of[bucket].part(start, start + self._rows.shapes[bucket][0])
        part_rows = self._own_rows(rows, part)
        if not (self._sides[0].sampling or self._sides[1].sampling):
            pairs = pairs.part(part_rows.start, part_rows.stop)
            rows, part_rows = part_rows.stop - part_rows.start, slice(None)
        sources, targets = (
            self._sides[side].visit(pairs, (S, T)[side], (self.seed, step, side)) for side in (0, 1)
        )

        def cells(ids, length, pad_id=self.tokenizer.pad_id):
            return ids.joined(pairs.starts).padded(rows, length, pad_id)[part_rows]

        inputs = {
            "source_ids": cells(sources, S),
            "target_ids": cells(targets.shifted(self.tokenizer.bos_id), T),
        }
        if self._packed:
            numbers = np.arange(1, len(sources) + 1) - np.repeat(pairs.starts[:-1], pairs.lengths)
            for name, ids, length in (("source", sources, S), ("target", targets, T)):
                segments = Ragged(np.repeat(numbers, ids.lengths), ids.starts)
                inputs[f"{name}_segments"] = cells(segments, length, 0)
        if self._links is not None:
            links = self._links.take(pairs.values)
            inputs["alignment"] = cells(in_rows(links, sources, pairs.starts), T, NONE)
        return inputs, cells(targets, T)

    def stream(
        self,
        first_step: int = 0,
        steps: int | None = None,
        num_workers: int = 0,
        part: tuple[int, int] = (0, 1),
    ) -> Stream:
        """Return the batches from a step on as NumPy arrays, prefetched.

        Args:
            first_step: First step, from 0; to resume, the number of steps already done.
            steps: Number of batches; None: without end, one epoch after another.
            num_workers: Number of processes that make the batches; 0: a thread of this process
                makes them. The batches do not depend on this number. Errors in a worker are raised
                in this process.
            part: Rows of each batch, see `batch`.

        Returns:
            A `grain.IterDataset`.
        """
        _check_integer("first_step", first_step, 0)
        _check_integer("num_workers", num_workers, 0)
        if steps is not None:
            _check_integer("steps", steps, 1)
        for rows, _, _ in self.shapes:
            self._own_rows(rows, part)
        return Stream(functools.partial(self.batch, part=part), first_step, steps, num_workers)

    def dataset(
        self,
        first_step: int = 0,
        steps: int | None = None,
        num_workers: int = 0,
        part: tuple[int, int] = (0, 1),
    ) -> Any:
        """Return the batches in the form that `fit` and `evaluate` accept on this backend.

        JAX and PyTorch accept the `stream` itself, TensorFlow a `tf.data.Dataset`. Both have no end
        unless `steps` is given: use `fit(..., steps_per_epoch=len(batches))`.

        Args:
            first_step, steps, num_workers, part: See `stream`.
        """
        return for_keras(self.stream(first_step, steps, num_workers, part))

    def __getstate__(self):
        return {**self.__dict__, "_plans": {}}

    def _own_rows(self, rows, part):
        index, count = part
        if not (0 <= index < count and rows % count == 0):
            raise ValueError(
                f"part must be (index, count) with a count that divides {rows} rows, got {part}"
            )
        return slice(index * rows // count, (index + 1) * rows // count)

    def _plan(self, epoch):
        """Return, for an epoch, the pairs of each row of each bucket, and the order of batches."""
        epoch = epoch if self.shuffle else 0
        plans = self._plans
        if epoch not in plans:
            generator = np.random.default_rng([self.seed, epoch]) if self.shuffle else None
            rows = self._rows.shuffled(generator)
            order = generator.permutation(len(self)) if generator else np.arange(len(self))
            if self._visits:
                pairs = self._visits.shuffled(generator) if generator else self._visits.plain
                rows = [Ragged(pairs[x.values], x.starts) for x in rows]
            plan = rows, order
            # The plan of the previous epoch is kept: some threads may still need it.
            self._plans = plans = {**dict(list(plans.items())[-1:]), epoch: plan}
        return plans[epoch]


def _check_integer(name, value, least):
    try:
        if operator.index(value) >= least:
            return
    except TypeError:
        pass
    raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
