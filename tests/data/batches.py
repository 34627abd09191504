"""A corpus of random letters and its batches, for tests of batching."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest

from keras_transformer.data.pair_batches import TokenBatches

PAD, BOS, EOS, FIRST = 0, 1, 2, 3

both_layouts = pytest.mark.parametrize(
    "layout", [{}, {"packed_length": 48}], ids=["a row a pair", "packed"]
)


def make_tokenizer(offset=0, longest_sampled=None, fail_at=None):
    """Make a tokenizer with two letters a token; sampling splits some tokens into two.

    The class is local, so that it is pickled by value: a worker process would have to import the
    module of a global class, and with it Keras.
    """

    class Tokenizer:
        pad_id, bos_id, eos_id = PAD, BOS, EOS

        def encode_source(self, texts, *, sampling=0.0, seed=None):
            if sampling and seed % 100 == fail_at:
                raise RuntimeError("the tokenizer broke")
            random = Random(seed)
            return [[*self.ids(text, sampling, random), EOS] for text in texts]

        encode_target = encode_source

        def ids(self, text, sampling, random):
            if sampling and longest_sampled:
                yield from [FIRST] * (longest_sampled - 1)
                return
            for start in range(0, len(text), 2):
                piece = text[start : start + 2]
                if random.random() < sampling:
                    yield from (offset + FIRST + ord(letter) for letter in piece)
                else:
                    numbers = [ord(letter) for letter in piece.ljust(2, "\0")]
                    yield offset + FIRST + 128 * (1 + numbers[0]) + numbers[1]

        def text(self, ids):
            letters = ""
            for number in ids:
                first, second = divmod(int(number) - FIRST - offset, 128)
                letters += "".join(chr(code) for code in (first - 1, second) if code > 0)
            return letters

    return Tokenizer()


def make_pairs(count, seed=0, longest=60):
    random = Random(seed)

    def text():
        return "".join(random.choices("abcdefgh", k=int(longest * random.betavariate(2, 5))))

    return [(text(), text() + str(index)) for index in range(count)]


def make_batches(pairs=None, tokenizer=None, **options):
    options = {"tokens_per_batch": 200, "num_buckets": 4, "max_length": 40} | options
    return TokenBatches(pairs or make_pairs(300), tokenizer or make_tokenizer(), **options)


def each_pair(inputs, labels):
    """Yield the (source, given, wanted) ids of each pair in a batch; all else must be padding."""
    sides = inputs["source_ids"], inputs["target_ids"], labels
    source_segments, target_segments = (
        inputs.get(f"{name}_segments", np.int32(ids != PAD))
        for name, ids in (("source", sides[0]), ("target", sides[1]))
    )
    segments = source_segments, target_segments, target_segments
    for ids, numbers in zip(sides, segments, strict=True):
        np.testing.assert_array_equal(ids == PAD, numbers == 0)
    for row in range(len(labels)):
        count = source_segments[row].max()
        for numbers in segments:  # one after another, padding after them
            lengths = np.bincount(numbers[row], minlength=count + 1)[1:]
            assert len(lengths) == count and all(lengths)
            expected = np.repeat(np.arange(1, count + 1), lengths)
            np.testing.assert_array_equal(
                numbers[row], np.pad(expected, (0, numbers.shape[1] - len(expected)))
            )
        for number in range(1, count + 1):
            yield [
                ids[row][numbers[row] == number]
                for ids, numbers in zip(sides, segments, strict=True)
            ]


def read(batches, steps):
    """Return how often each pair of texts occurs in the batches."""
    text, found = batches.tokenizer.text, Counter()
    for step in steps:
        for source, _, target in each_pair(*batches.batch(step)):
            assert source[-1] == target[-1] == EOS
            found[text(source[:-1]), text(target[:-1])] += 1
    return found


def assert_same(batches, others):
    for (inputs, labels), (other_inputs, other_labels) in zip(batches, others, strict=True):
        np.testing.assert_array_equal(labels, other_labels)
        assert inputs.keys() == other_inputs.keys()
        for name in inputs:
            np.testing.assert_array_equal(inputs[name], other_inputs[name])
