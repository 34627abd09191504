"""Token batches: the content of every epoch, the seed, sampling, bad arguments."""

from __future__ import annotations

import os
import pickle
from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import pytest

from keras_transformer.data.pair_batches import TokenBatches
from keras_transformer.data.text_files import read_pairs
from keras_transformer.text import SentencePieceTokenizer
from tests.data.batches import (
    BOS,
    EOS,
    FIRST,
    PAD,
    assert_same,
    both_layouts,
    each_pair,
    make_batches,
    make_pairs,
    make_tokenizer,
    read,
)


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("sampling", [0.0, 0.3])
@pytest.mark.parametrize("count", [1, 7, 300])
@both_layouts
def test_every_epoch_has_every_pair_once(layout, count, sampling, shuffle):
    pairs = make_pairs(count)
    batches = make_batches(pairs, shuffle=shuffle, sampling=sampling, **layout)
    for epoch in range(3):
        steps = range(epoch * len(batches), (epoch + 1) * len(batches))
        assert read(batches, steps) == Counter(pairs)


@pytest.mark.parametrize("sampling", [0.0, 0.3])
@both_layouts
def test_a_batch_is_for_teacher_forcing(layout, sampling):
    batches = make_batches(sampling=sampling, **layout)
    for step in range(len(batches)):
        inputs, labels = batches.batch(step)
        assert {array.dtype for array in (*inputs.values(), labels)} == {np.dtype("int32")}
        for source, given, wanted in each_pair(inputs, labels):
            assert source[-1] == EOS and wanted[-1] == EOS
            assert given[0] == BOS
            np.testing.assert_array_equal(given[1:], wanted[:-1])


@both_layouts
def test_counts_agree_with_the_batches(layout):
    batches = make_batches(**layout)
    filled, cells = Counter(), 0
    for step in range(len(batches)):
        inputs, labels = batches.batch(step)
        filled["source"] += int((inputs["source_ids"] != PAD).sum())
        filled["target"] += int((labels != PAD).sum())
        cells += inputs["source_ids"].size + labels.size
    assert batches.num_source_tokens == filled["source"]
    assert batches.num_tokens == filled["target"]
    assert batches.padding == pytest.approx(1 - filled.total() / cells)


@pytest.mark.parametrize("packed_length", [None, 10, 48])
def test_pairs_that_are_too_long_are_left_out_and_counted(packed_length):
    pairs = make_pairs(100)
    # Two letters a token and EOS: 10 tokens hold 18 letters.
    fitting = [pair for pair in pairs if max(map(len, pair)) <= 18]
    batches = make_batches(pairs, max_length=10, packed_length=packed_length)
    assert 0 < len(fitting) < 100
    assert batches.dropped == 100 - len(fitting)
    assert read(batches, range(len(batches))) == Counter(fitting)


def test_pairs_may_come_from_an_iterator():
    pairs = make_pairs(20)
    steps = range(len(make_batches(pairs)))
    assert_same(map(make_batches(iter(pairs)).batch, steps), map(make_batches(pairs).batch, steps))


def test_large_vocabularies_keep_their_ids():
    batches = make_batches(tokenizer=make_tokenizer(offset=1_000_000))
    assert read(batches, range(len(batches))) == Counter(make_pairs(300))


@pytest.mark.parametrize("sampling", [0.0, 0.3])
@both_layouts
def test_a_batch_depends_on_seed_and_step_alone(layout, sampling):
    batches, again = (make_batches(sampling=sampling, **layout) for _ in range(2))
    steps = list(range(3 * len(batches)))
    in_order = [batches.batch(step) for step in steps]
    Random(0).shuffle(steps)
    assert_same([again.batch(step) for step in steps], [in_order[step] for step in steps])


@pytest.mark.parametrize("sampling", [0.0, 0.3])
@pytest.mark.parametrize("parts", [2, 5])
@both_layouts
def test_parts_are_those_of_one_batch_whatever_their_number(layout, parts, sampling):
    whole = make_batches(sampling=sampling, **layout)
    shared = make_batches(sampling=sampling, divisible_by=parts, **layout)
    assert len(shared) == len(whole)
    for step in range(2 * len(whole)):
        every = [shared.batch(step, (part, parts)) for part in range(parts)]
        assert len({len(labels) for _, labels in every}) == 1
        inputs, labels = whole.batch(step)
        rows = len(labels)
        for name, array in [*inputs.items(), ("labels", labels)]:
            own = [part[1] if name == "labels" else part[0][name] for part in every]
            joined = np.concatenate(own)
            np.testing.assert_array_equal(joined[:rows], array)
            assert 0 <= len(joined) - rows < parts
            assert (joined[rows:] == (0 if "segments" in name else PAD)).all()


def test_the_stream_of_a_part():
    batches = make_batches(divisible_by=4)
    own = list(batches.stream(3, 2, part=(1, 4)))
    for step, (_, labels) in zip((3, 4), own, strict=True):
        np.testing.assert_array_equal(labels, batches.batch(step, (1, 4))[1])
    for part in ((4, 4), (-1, 4), (0, 3)):
        with pytest.raises(ValueError, match="part must be .* a count that divides .* rows, got"):
            batches.dataset(part=part)


@both_layouts
def test_the_seed_and_the_epoch_decide_the_order(layout):
    def labels(seed, epoch, **options):
        batches = make_batches(seed=seed, **options, **layout)
        steps = range(epoch * len(batches), (epoch + 1) * len(batches))
        return [batches.batch(step)[1].tolist() for step in steps]

    assert labels(0, 0) != labels(1, 0)
    assert labels(0, 0) != labels(0, 1)
    assert labels(0, 0, shuffle=False) == labels(0, 1, shuffle=False)
    # Not the batches alone are shuffled, but also the pairs between them.
    assert sorted(labels(0, 0)) != sorted(labels(0, 1))


def test_sampling_segments_anew_at_each_visit():
    batches = make_batches(sampling=0.3, shuffle=False, seed=3)
    plain = make_batches(shuffle=False)
    first, second = (batches.batch(step)[1] for step in (0, len(batches)))
    assert first.shape == second.shape and (first != second).any()
    sampled = sum((batches.batch(step)[1] != PAD).sum() for step in range(len(batches)))
    # A token in 0.3 becomes two: most get them, since the buckets leave the room.
    assert 1.2 < sampled / plain.num_tokens < 1.3


@both_layouts
def test_what_outgrows_its_row_keeps_its_plain_segmentation(layout):
    tokenizer = make_tokenizer(longest_sampled=49)
    batches = make_batches(make_pairs(50), tokenizer, sampling=0.5, **layout)
    assert all(max(S, T) <= layout.get("packed_length", 40) for _, S, T in batches.shapes)
    assert read(batches, range(len(batches))) == Counter(make_pairs(50))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pairs": []}, "pairs must have at least one pair"),
        ({"pairs": [("a" * 100, "b")] * 3}, "max_length .* all 3 are longer than 40 tokens"),
        ({"tokens_per_batch": 39}, "tokens_per_batch .* max_length=40 tokens; got 39"),
        ({"tokens_per_batch": 4096.5}, "tokens_per_batch must be a whole number .* got 4096.5"),
        ({"packed_length": 0}, "packed_length must be a whole number of at least 1, got 0"),
        ({"packed_length": 64.0}, "packed_length must be a whole number .* got 64.0"),
        *(
            ({"packed_length": n}, f"packed_length .* max_length=40 to .*batch=200, got {n}")
            for n in (39, 201)
        ),
        ({"num_buckets": 0}, "num_buckets must be .* at least 1, got 0"),
        ({"max_length": 0}, "max_length must be .* at least 1, got 0"),
        ({"seed": -1}, "seed must be .* at least 0, got -1"),
        ({"sampling": 1.0}, r"sampling must be in \[0, 1\), got 1.0"),
        ({"sampling": -0.1}, r"sampling must be in \[0, 1\), got -0.1"),
    ],
)
def test_arguments_outside_their_range(options, message):
    options = {"tokens_per_batch": 200, "max_length": 40, "pairs": [("a", "b")]} | options
    with pytest.raises(ValueError, match=message):
        TokenBatches(options.pop("pairs"), make_tokenizer(), **options)


@pytest.mark.parametrize("wrong", ["ab", ("a",), ("a", "b", "c"), ("a", None), (b"a", b"b"), 1])
def test_what_is_no_pair_of_texts(wrong):
    with pytest.raises(TypeError, match=r"pairs\[1\] must be two texts \(str\), got "):
        make_batches([("a", "b"), wrong])


def test_a_tokenizer_without_eos():
    class Tokenizer:
        pad_id, bos_id, eos_id = PAD, BOS, EOS

        def encode_source(self, texts, *, sampling=0.0, seed=None):
            return [[FIRST] for _ in texts]

        encode_target = encode_source

    with pytest.raises(ValueError, match="tokenizer must end the ids of each text in eos_id=2"):
        make_batches(tokenizer=Tokenizer())


def test_real_text_and_the_real_tokenizer():
    if "KT_DATA" not in os.environ:
        pytest.skip("KT_DATA is not set: real data is not here")
    folder = Path(os.environ["KT_DATA"]) / "multi30k"
    pairs = read_pairs(folder / "train.en.gz", folder / "train.de.gz")[:1500]
    tokenizer = SentencePieceTokenizer.train(*zip(*pairs, strict=True), vocab_size=1000)
    assert TokenBatches(pairs, tokenizer).padding < 0.2
    batches = TokenBatches(pairs, tokenizer, sampling=0.1)
    assert batches.dropped == 0
    found = Counter()
    for step in range(len(batches)):
        found.update(tokenizer.decode_target(batches.batch(step)[1]))
    del found[""]
    plain = tokenizer.decode_target(tokenizer.encode_target([target for _, target in pairs]))
    assert found == Counter(plain)
    assert_same(batches.stream(2, 5, num_workers=2), map(batches.batch, range(2, 7)))


@both_layouts
def test_a_pickled_one_is_small_and_shares_the_corpus(layout):
    pairs = make_pairs(5_000)
    options = dict(sampling=0.1, tokens_per_batch=20_000, **layout)
    batches = make_batches(pairs, SharedTokenizer(), **options)
    pickled = pickle.dumps(batches)
    assert len(pickled) < 10_000
    copy = pickle.loads(pickled)
    assert_same(map(copy.batch, range(5)), map(batches.batch, range(5)))


class SharedTokenizer(type(make_tokenizer())):
    """The same where pickle finds it."""


@pytest.mark.parametrize("sampling", [0.0, 0.3])
@both_layouts
def test_visits(layout, sampling):
    pairs = make_pairs(300)
    numbers = [2.0] * 100 + [1.0] * 100 + [0.0] * 100
    batches = make_batches(pairs, visits=numbers, sampling=sampling, **layout)
    expected = Counter(pairs[:100]) + Counter(pairs[:200])
    for epoch in (0, 1):
        steps = range(epoch * len(batches), (epoch + 1) * len(batches))
        assert read(batches, steps) == expected
    again = make_batches(pairs, visits=numbers, sampling=sampling, **layout)
    step = 2 * len(batches) - 1
    assert_same([again.batch(step)], [batches.batch(step)])  # without those before
    split = make_batches(pairs, visits=numbers, sampling=sampling, divisible_by=2, **layout)
    parts = [split.batch(step, (i, 2)) for i in (0, 1)]  # of two processes
    labels = np.concatenate([labels for _, labels in parts])
    np.testing.assert_array_equal(labels[: len(batches.batch(step)[1])], batches.batch(step)[1])
    tokens = make_tokenizer().encode_target([target for _, target in expected.elements()])
    assert batches.num_tokens == sum(map(len, tokens))


@both_layouts
def test_a_fraction_of_visits_differs_from_epoch_to_epoch(layout):
    pairs = [(f"{i:03}", f"{i:03}") for i in range(100)]
    batches = make_batches(pairs, visits=[0.25] * 100, **layout)
    epochs = [read(batches, range(i * len(batches), (i + 1) * len(batches))) for i in range(30)]
    assert all(x.total() == 25 and max(x.values()) == 1 for x in epochs)
    assert len(sum(epochs, Counter())) > 90


def test_visits_of_pairs_that_are_too_long_go_with_them():
    pairs = [("a" * 500, "b"), ("c", "d")]
    batches = make_batches(pairs, visits=[9.0, 2.0])
    assert batches.dropped == 1 and read(batches, range(len(batches))) == {("c", "d"): 2}
    with pytest.raises(ValueError, match="visits must be a number for each of the 2 pairs, got '1"):
        make_batches(pairs, visits=[1.0])
