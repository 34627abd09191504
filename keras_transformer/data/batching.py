"""Batches of sentence pairs by a token budget: `TokenBatches` turns texts into what `fit` takes.

Pairs of similar length share a batch, and a batch has one of a few fixed shapes, so that little
is padding and a compiler meets each shape once. A batch is a function of (seed, step) alone:
training resumes at any step, and any number of processes may make the batches ahead of time.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from keras_transformer.data.ragged import Ragged
from keras_transformer.data.streaming import Stream, for_keras

_MULTIPLE = 4  # lengths are rounded up to it
_CHUNK = 8192  # pairs encoded at a time
_PROBES = 1000  # texts sampled to learn how much longer subword sampling makes them


class _Tokenizer(Protocol):
    pad_id: int
    bos_id: int
    eos_id: int

    def encode_source(self, texts, *, sampling=0.0, seed=None) -> list[list[int]]: ...

    def encode_target(self, texts, *, sampling=0.0, seed=None) -> list[list[int]]: ...


class TokenBatches:
    """Sentence pairs in batches of a token budget and of a few fixed shapes.

    A batch is `(inputs, labels)` for teacher forcing, int32 and padded with `pad_id`:

    - `inputs["source_ids"]` (rows, S): the source, ending in EOS;
    - `inputs["target_ids"]` (rows, T): BOS and the target without its last token;
    - `labels` (rows, T): the target, ending in EOS.

    Pairs are put in buckets by the longer of their sides, with the boundaries that cost the least
    for this corpus. Every pair is in an epoch once; rows of padding fill the last batch of a
    bucket. The paper batches by approximate length too, about 25,000 tokens a side (section 5.1).

    With `sampling`, texts are segmented anew at each visit (Provilkov et al. 2020, "BPE-Dropout";
    Kudo 2018, "Subword Regularization"). That makes them longer: how much is measured on some of
    them, and the few that outgrow their bucket keep their plain segmentation in that visit.

    Args:
        pairs: (source, target) texts; an iterator will do, it is read once.
        tokenizer: has `pad_id`, `bos_id`, `eos_id`, and `encode_source(texts, sampling=0.0,
            seed=None)` and `encode_target` alike, which give a list of ids for each text, ending
            in EOS and without BOS.
        tokens_per_batch: the most cells that a side of a batch may have, padding included: rows
            times the longer of S and T. At least `max_length`.
        num_buckets: the most shapes there may be. More means less padding and more compilations.
        max_length: the longest that either side may be, in tokens with EOS, and the longest
            shape; longer pairs are left out and counted in `dropped`.
        sampling: the strength of subword sampling, given to the tokenizer, in [0, 1); 0 for none.
        shuffle: whether each epoch has an order of its own. False, for validation, gives all
            epochs the same one.
        seed: of order and sampling, a whole number from 0.

    Attributes:
        shapes: (rows, S, T) of each bucket, the shortest first.
        dropped: how many pairs were longer than `max_length`.
        num_tokens: target tokens of an epoch, which are the labels that count.
        num_source_tokens: source tokens of an epoch.
        padding: the share of padding in the cells of an epoch, source and target together. This
            and the two numbers before it are those of the plain segmentation.

    Raises:
        ValueError: an argument outside its range, no pairs, or all of them too long.
        TypeError: a pair that is not two texts.
    """

    def __init__(
        self,
        pairs: Iterable[tuple[str, str]],
        tokenizer: _Tokenizer,
        *,
        tokens_per_batch: int = 4096,
        num_buckets: int = 6,
        max_length: int = 256,
        sampling: float = 0.0,
        shuffle: bool = True,
        seed: int = 0,
    ):
        _check_integer("max_length", max_length, 1)
        _check_integer("num_buckets", num_buckets, 1)
        _check_integer("seed", seed, 0)
        _check_integer("tokens_per_batch", tokens_per_batch, 1)
        if tokens_per_batch < max_length:
            raise ValueError(
                "tokens_per_batch must have room for the longest sentence that is allowed, "
                f"max_length={max_length} tokens; got {tokens_per_batch}"
            )
        if not 0 <= sampling < 1:
            raise ValueError(f"sampling must be in [0, 1), got {sampling}")
        self.tokenizer = tokenizer
        self.sampling = sampling
        self.shuffle = shuffle
        self.seed = seed
        self._encode = tokenizer.encode_source, tokenizer.encode_target
        self._ids, self._texts, self.dropped = self._read(pairs, max_length)
        rooms = [self._room(side, max_length) for side in (0, 1)]
        self._members, self.shapes = _buckets(*rooms, tokens_per_batch, num_buckets, max_length)
        self._batches = [  # of an epoch: a bucket, and where in it the batch begins
            (bucket, start)
            for bucket, (rows, _, _) in enumerate(self.shapes)
            for start in range(0, len(self._members[bucket]), rows)
        ]
        self._plans: dict[int, tuple[Sequence[np.ndarray], Sequence[int]]] = {}
        self.num_source_tokens, self.num_tokens = (ids.values.size for ids in self._ids)
        cells = sum(rows * (S + T) for rows, S, T in (self.shapes[b] for b, _ in self._batches))
        self.padding = 1 - (self.num_source_tokens + self.num_tokens) / cells

    def __len__(self) -> int:
        """Batches of an epoch, which is one pass over the pairs; the same in every epoch."""
        return len(self._batches)

    def batch(self, step: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Makes the batch of a step; steps count from 0 on over all epochs."""
        _check_integer("step", step, 0)
        epoch, number = divmod(step, len(self))
        members, order = self._plan(epoch)
        bucket, start = self._batches[order[number]]
        rows, S, T = self.shapes[bucket]
        indices = members[bucket][start : start + rows]
        sources, targets = (self._visit(side, indices, step, (S, T)[side]) for side in (0, 1))
        pad_id = self.tokenizer.pad_id
        target_ids = np.full((rows, T), pad_id, np.int32)
        target_ids[: len(indices), 0] = self.tokenizer.bos_id
        target_ids[:, 1:] = targets.without_last().padded(rows, T - 1, pad_id)
        inputs = {"source_ids": sources.padded(rows, S, pad_id), "target_ids": target_ids}
        return inputs, targets.padded(rows, T, pad_id)

    def stream(self, first_step: int = 0, steps: int | None = None, num_workers: int = 0) -> Stream:
        """The batches from a step on as NumPy arrays, made ahead of time.

        Args:
            first_step: the step to begin at, from 0: to resume, the number of steps done.
            steps: how many batches; None for no end, one epoch after the other.
            num_workers: processes that make the batches; 0 for a thread of this process. The
                batches are the same. What goes wrong in a process is raised in this one.

        Returns:
            A `grain.IterDataset`.
        """
        _check_integer("first_step", first_step, 0)
        _check_integer("num_workers", num_workers, 0)
        if steps is not None:
            _check_integer("steps", steps, 1)
        return Stream(self.batch, first_step, steps, num_workers)

    def dataset(self, first_step: int = 0, steps: int | None = None, num_workers: int = 0) -> Any:
        """The stream in the form that `fit` and `evaluate` take under the backend in use.

        JAX and PyTorch take the `stream` itself, TensorFlow a `tf.data.Dataset`. It has no end
        unless `steps` is given: say `fit(..., steps_per_epoch=len(batches))`.

        Args: those of `stream`.
        """
        return for_keras(self.stream(first_step, steps, num_workers))

    def __getstate__(self):
        return {**self.__dict__, "_plans": {}}

    def _read(self, pairs, max_length):
        """Ids of both sides, texts of both sides if they will be sampled, number of pairs dropped.

        What is kept is flat arrays: a list of Python objects would take many times the memory.
        """
        ids, texts, dropped = ([], []), ([], []), 0
        pairs = enumerate(pairs)
        while chunk := list(itertools.islice(pairs, _CHUNK)):
            for index, pair in chunk:
                if not _is_pair(pair):
                    raise TypeError(f"pairs[{index}] must be two texts (str), got {pair!r}")
            columns = list(zip(*(pair for _, pair in chunk), strict=True))
            encoded = [self._encode[side](list(columns[side])) for side in (0, 1)]
            eos_id = self.tokenizer.eos_id
            if not all(len(row) and row[-1] == eos_id for row in itertools.chain(*encoded)):
                raise ValueError(f"tokenizer must end the ids of each text in eos_id={eos_id}")
            fits = [max(map(len, both)) <= max_length for both in zip(*encoded, strict=True)]
            dropped += fits.count(False)
            for side in (0, 1):
                ids[side].append(Ragged.pack(itertools.compress(encoded[side], fits)))
                kept = itertools.compress(columns[side], fits if self.sampling else ())
                texts[side].append(Ragged.pack(text.encode() for text in kept))
        if not ids[0]:
            raise ValueError("pairs must have at least one pair, got none")
        ids, texts = [[Ragged.join(chunks) for chunks in both] for both in (ids, texts)]
        if not len(ids[0]):
            raise ValueError(
                f"max_length must leave at least one pair; all {dropped} are longer than "
                f"{max_length} tokens"
            )
        return ids, texts, dropped

    def _room(self, side, max_length):
        """The length to plan for, of each text; under sampling, enough for most visits."""
        lengths = self._ids[side].lengths
        if not self.sampling:
            return lengths
        probes = np.linspace(0, len(lengths) - 1, _PROBES).astype(np.int64)
        sampled = self._encode[side](
            self._text(side, probes), sampling=self.sampling, seed=self.seed
        )
        sampled, plain = np.array([len(ids) for ids in sampled]), lengths[probes]
        # Words are sampled independently: the mean grows with the length, the spread as its root.
        growth = sampled.sum() / plain.sum()
        spread = np.std((sampled - growth * plain) / np.sqrt(plain))
        room = np.ceil(growth * lengths + spread * np.sqrt(lengths)).astype(np.int64)
        return np.clip(room, lengths, max_length)

    def _text(self, side, indices):
        return [self._texts[side][index].tobytes().decode() for index in indices]

    def _visit(self, side, indices, step, length):
        """The ids of one side of a batch, sampled where that is wanted and fits."""
        if not self.sampling:
            return self._ids[side].take(indices)
        seed = int(np.random.SeedSequence((self.seed, step, side)).generate_state(1)[0])
        sampled = self._encode[side](self._text(side, indices), sampling=self.sampling, seed=seed)
        return Ragged.pack(
            ids if len(ids) <= length else self._ids[side][index]
            for index, ids in zip(indices, sampled, strict=True)
        )

    def _plan(self, epoch):
        """An epoch's order of pairs in each bucket, and of batches."""
        if not self.shuffle:
            return self._members, range(len(self))
        plans = self._plans
        if epoch not in plans:
            generator = np.random.default_rng([self.seed, epoch])
            members = [generator.permutation(members) for members in self._members]
            plan = members, generator.permutation(len(self))
            # The last one stays, since threads turn to a new epoch one after the other.
            self._plans = plans = {**dict(list(plans.items())[-1:]), epoch: plan}
        return plans[epoch]


def _buckets(source, target, tokens_per_batch, num_buckets, max_length):
    """Which pairs are in which bucket (a `Ragged` of indices), and the shape of each bucket.

    The cost of an epoch is its cells, and for each batch half as many as fill one besides, so that
    little data is not torn into many small batches. The cheapest way to cut the lengths that
    occur into at most `num_buckets` stretches comes from dynamic programming, exactly.
    """

    def rounded(lengths):
        return np.minimum(-(-lengths // _MULTIPLE) * _MULTIPLE, max_length)

    def batched(count, S, T):
        """(batches, rows): as few batches as the budget allows, all as full as each other."""
        batches = -(-count // (tokens_per_batch // np.maximum(S, T)))
        return batches, -(-count // batches)

    source, target = rounded(source), rounded(target)
    level = np.unique(np.maximum(source, target), return_inverse=True)[1]
    counts = np.bincount(level)
    S, T = np.zeros_like(counts), np.zeros_like(counts)
    np.maximum.at(S, level, source)
    np.maximum.at(T, level, target)
    num_levels = len(counts)
    cost = np.full((num_levels + 1, num_levels + 1), np.inf)  # of levels i to j - 1 as one bucket
    np.fill_diagonal(cost, 0)  # no levels, no bucket
    for i in range(num_levels):
        longest = np.maximum.accumulate(S[i:]), np.maximum.accumulate(T[i:])
        batches, rows = batched(np.cumsum(counts[i:]), *longest)
        cost[i, i + 1 :] = batches * (rows * sum(longest) + tokens_per_batch)
    best, cuts = cost[0], []  # best[j]: the least for levels 0 to j - 1
    for _ in range(1, min(num_buckets, num_levels)):
        total = best[:, None] + cost
        cuts.append(total.argmin(axis=0))
        best = total.min(axis=0)
    edges = [num_levels]
    for cut in reversed(cuts):
        edges.append(cut[edges[-1]])
    edges = sorted({0, *edges})
    shapes = []
    for i, j in itertools.pairwise(edges):
        longest = S[i:j].max(), T[i:j].max()
        _, rows = batched(counts[i:j].sum(), *longest)
        shapes.append((int(rows), *map(int, longest)))
    bucket = np.searchsorted(edges[1:-1], level, side="right")
    starts = np.cumsum([0, *np.bincount(bucket)])
    return Ragged(np.argsort(bucket, kind="stable"), starts), tuple(shapes)


def _is_pair(pair):
    return (
        isinstance(pair, tuple | list)
        and len(pair) == 2
        and all(isinstance(text, str) for text in pair)
    )


def _check_integer(name, value, least):
    try:
        if operator.index(value) >= least:
            return
    except TypeError:
        pass
    raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
