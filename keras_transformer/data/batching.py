"""Batches of sentence pairs by a token budget: `TokenBatches` turns texts into what `fit` takes.

Pairs of similar length share a batch, and a batch has one of a few fixed shapes, so that little
is padding and a compiler meets each shape once; or several pairs share a row, all batches have
one shape and next to nothing is padding. A batch is a function of (seed, step) alone:
training resumes at any step, and any number of processes may make the batches ahead of time.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from keras_transformer.data.buckets import Buckets
from keras_transformer.data.packing import Packing
from keras_transformer.data.ragged import Ragged
from keras_transformer.data.streaming import Stream, for_keras

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

    With `packed_length`, a row holds several pairs, one after another on each side, and `inputs`
    two arrays more, by which a model keeps them apart:

    - `inputs["source_segments"]` (rows, S) and `inputs["target_segments"]` (rows, T): the number
      of the pair in its row, from 1 on; 0 for padding.

    All rows have one length, the side with fewer tokens a shorter one in proportion. Which lengths
    share a row is decided once, and in each epoch pairs of the same lengths change places.

    With `sampling`, texts are segmented anew at each visit (Provilkov et al. 2020, "BPE-Dropout";
    Kudo 2018, "Subword Regularization"). That makes them longer: how much is measured on some of
    them, and the few that outgrow their row keep their plain segmentation in that visit.

    Args:
        pairs: (source, target) texts; an iterator will do, it is read once.
        tokenizer: has `pad_id`, `bos_id`, `eos_id`, and `encode_source(texts, sampling=0.0,
            seed=None)` and `encode_target` alike, which give a list of ids for each text, ending
            in EOS and without BOS.
        tokens_per_batch: the most cells that a side of a batch may have, padding included: rows
            times the longer of S and T. At least `max_length`.
        num_buckets: the most shapes there may be. More means less padding and more compilations.
            Packed, there is one.
        max_length: the longest that either side may be, in tokens with EOS, and the longest
            shape; longer pairs are left out and counted in `dropped`.
        packed_length: the length of rows that several pairs share, from `max_length` to
            `tokens_per_batch`; None for a row a pair. Longer rows hold less padding, and cost
            more in attention, which goes over all of a row.
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
        packed_length: int | None = None,
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
        if packed_length is not None:
            _check_integer("packed_length", packed_length, 1)
            if not max_length <= packed_length <= tokens_per_batch:
                raise ValueError(
                    f"packed_length must be from max_length={max_length} to "
                    f"tokens_per_batch={tokens_per_batch}, got {packed_length}"
                )
        if not 0 <= sampling < 1:
            raise ValueError(f"sampling must be in [0, 1), got {sampling}")
        self.tokenizer = tokenizer
        self.sampling = sampling
        self.shuffle = shuffle
        self.seed = seed
        self._encode = tokenizer.encode_source, tokenizer.encode_target
        self._ids, self._texts, self.dropped = self._read(pairs, max_length)
        lengths = [ids.lengths for ids in self._ids]
        planned = [self._planned(side) for side in (0, 1)]
        self._packed = packed_length is not None
        if self._packed:
            self._rows = Packing(lengths, planned, packed_length, tokens_per_batch)
        else:
            rooms = [
                np.clip(np.ceil(room(own)).astype(np.int64), own, max_length)
                for room, own in zip(planned, lengths, strict=True)
            ]
            self._rows = Buckets(*rooms, tokens_per_batch, num_buckets, max_length)
        self.shapes = self._rows.shapes
        self._batches = [  # of an epoch: a bucket, and where in it the batch begins
            (bucket, start)
            for bucket, (rows, _, _) in enumerate(self.shapes)
            for start in range(0, self._rows.counts[bucket], rows)
        ]
        self._plans: dict[int, tuple[list[Ragged], Sequence[int]]] = {}
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
        rows_of, order = self._plan(epoch)
        bucket, start = self._batches[order[number]]
        rows, S, T = self.shapes[bucket]
        pairs = rows_of[bucket].part(start, start + rows)
        sources, targets = (self._visit(side, pairs, step, (S, T)[side]) for side in (0, 1))

        def cells(ids, length, pad_id=self.tokenizer.pad_id):
            return ids.joined(pairs.starts).padded(rows, length, pad_id)

        inputs = {
            "source_ids": cells(sources, S),
            "target_ids": cells(targets.shifted(self.tokenizer.bos_id), T),
        }
        if self._packed:
            numbers = np.arange(1, len(sources) + 1) - np.repeat(pairs.starts[:-1], pairs.lengths)
            for name, ids, length in (("source", sources, S), ("target", targets, T)):
                segments = Ragged(np.repeat(numbers, ids.lengths), ids.starts)
                inputs[f"{name}_segments"] = cells(segments, length, 0)
        return inputs, cells(targets, T)

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

    def _planned(self, side):
        """Return the length to plan for, given the texts' own: under sampling, enough for most."""
        if not self.sampling:
            return np.asarray
        lengths = self._ids[side].lengths
        probes = np.linspace(0, len(lengths) - 1, _PROBES).astype(np.int64)
        sampled = self._encode[side](
            self._text(side, probes), sampling=self.sampling, seed=self.seed
        )
        sampled, plain = np.array([len(ids) for ids in sampled]), lengths[probes]
        # Words are sampled independently: the mean grows with the length, the spread as its root.
        growth = sampled.sum() / plain.sum()
        spread = np.std((sampled - growth * plain) / np.sqrt(plain))
        return lambda lengths: growth * lengths + spread * np.sqrt(lengths)

    def _text(self, side, indices):
        return [self._texts[side][index].tobytes().decode() for index in indices]

    def _visit(self, side, pairs, step, length):
        """The ids of one side of a batch, a text each, sampled where that is wanted and fits.

        `pairs` has the numbers of the pairs in each row, `length` is a row's.
        """
        plain = self._ids[side]
        if not self.sampling:
            return plain.take(pairs.values)
        seed = int(np.random.SeedSequence((self.seed, step, side)).generate_state(1)[0])
        sampled = self._encode[side](
            self._text(side, pairs.values), sampling=self.sampling, seed=seed
        )
        for start, stop in itertools.pairwise(pairs.starts):
            excess = sum(map(len, sampled[start:stop])) - length
            for place in range(start, stop):
                if excess <= 0:
                    break
                excess -= len(sampled[place])
                sampled[place] = plain[pairs.values[place]]
                excess += len(sampled[place])
        return Ragged.pack(sampled)

    def _plan(self, epoch):
        """An epoch's pairs, row by row of each bucket, and its order of batches."""
        epoch = epoch if self.shuffle else 0
        plans = self._plans
        if epoch not in plans:
            plan = self._rows.shuffled(None), range(len(self))
            if self.shuffle:
                generator = np.random.default_rng([self.seed, epoch])
                plan = self._rows.shuffled(generator), generator.permutation(len(self))
            # The last one stays, since threads turn to a new epoch one after the other.
            self._plans = plans = {**dict(list(plans.items())[-1:]), epoch: plan}
        return plans[epoch]


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
