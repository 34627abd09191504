"""Token batches: what every epoch must hold, exact resumption, worker processes, Keras's `fit`."""

from __future__ import annotations

import gc
import itertools
import multiprocessing
import os
import pickle
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import keras
import numpy as np
import pytest

from keras_transformer.data.batching import TokenBatches
from keras_transformer.data.text_files import read_pairs
from keras_transformer.text import SentencePieceTokenizer

PAD, BOS, EOS, FIRST = 0, 1, 2, 3

both_layouts = pytest.mark.parametrize(
    "layout", [{}, {"packed_length": 48}], ids=["a row a pair", "packed"]
)


def make_tokenizer(offset=0, longest_sampled=None, fail_at=None):
    """Two letters a token; one that sampling leaves unmerged becomes two. Local: see below.

    A class of a function travels to a worker process as it is; one of this module would have it
    import this module, and Keras with it.
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
    """(source, given, wanted) ids of each pair in a batch; all else must be padding."""
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
    """The pairs of texts in the batches, as a count of each."""
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


@pytest.mark.once("batches are NumPy's")
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


@pytest.mark.once("batches are NumPy's")
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


@pytest.mark.once("batches are NumPy's")
@pytest.mark.parametrize("sampling", [0.0, 0.3])
@pytest.mark.parametrize("num_buckets", [1, 3, 50])
@pytest.mark.parametrize("max_length", [13, 40])
def test_shapes_are_few_and_within_the_budget(sampling, num_buckets, max_length):
    batches = make_batches(sampling=sampling, num_buckets=num_buckets, max_length=max_length)
    assert len(batches.shapes) <= num_buckets
    assert list(batches.shapes) == sorted(batches.shapes, key=lambda shape: max(shape[1:]))
    for rows, S, T in batches.shapes:
        assert rows >= 1 and rows * max(S, T) <= 200 and max(S, T) <= max_length
    seen = set()
    for step in range(len(batches)):
        inputs, labels = batches.batch(step)
        assert inputs["target_ids"].shape == labels.shape
        seen.add((*inputs["source_ids"].shape, labels.shape[1]))
    assert seen == set(batches.shapes)


@pytest.mark.once("batches are NumPy's")
@pytest.mark.parametrize("seed", range(5))
def test_buckets_are_the_cheapest_of_all_ways_to_cut(seed):
    """Every set of boundaries is tried; the cost is what the documentation of `Buckets` says."""
    random = np.random.default_rng(seed)
    pairs = [("a" * int(s), "b" * int(t)) for s, t in random.integers(0, 46, (60, 2))]
    batches = make_batches(pairs, num_buckets=3)

    def cost(shapes, sizes):
        total = 0
        for (rows, S, T), size in zip(shapes, sizes, strict=True):
            total += -(-size // rows) * (rows * (S + T) + 200)
        return total

    def up(length):
        return -(-length // 4) * 4

    lengths = [[(len(text) + 1) // 2 + 1 for text in pair] for pair in pairs]
    levels = sorted({up(max(both)) for both in lengths})
    cheapest = np.inf
    for number in range(3):
        for edges in itertools.combinations(levels[:-1], number):
            shapes, sizes = [], []
            for low, high in itertools.pairwise([0, *edges, levels[-1]]):
                inside = [both for both in lengths if low < up(max(both)) <= high]
                S, T = (up(max(side)) for side in zip(*inside, strict=True))
                room = 200 // max(S, T)
                rows = -(-len(inside) // -(-len(inside) // room))
                shapes.append((rows, S, T))
                sizes.append(len(inside))
            cheapest = min(cheapest, cost(shapes, sizes))
    counts = Counter()
    for step in range(len(batches)):
        inputs, labels = batches.batch(step)
        shape = (*inputs["source_ids"].shape, labels.shape[1])
        counts[shape] += int((labels == EOS).any(axis=1).sum())
    assert cost(counts.keys(), counts.values()) == cheapest


@pytest.mark.once("batches are NumPy's")
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


@pytest.mark.once("batches are NumPy's")
def test_more_buckets_mean_less_padding():
    few, many = (make_batches(make_pairs(2000), num_buckets=number) for number in (1, 6))
    assert many.padding < few.padding / 2


@pytest.mark.once("batches are NumPy's")
@pytest.mark.parametrize("packed_length", [None, 10, 48])
def test_pairs_that_are_too_long_are_left_out_and_counted(packed_length):
    pairs = make_pairs(100)
    # Two letters a token and EOS: 10 tokens hold 18 letters.
    fitting = [pair for pair in pairs if max(map(len, pair)) <= 18]
    batches = make_batches(pairs, max_length=10, packed_length=packed_length)
    assert 0 < len(fitting) < 100
    assert batches.dropped == 100 - len(fitting)
    assert read(batches, range(len(batches))) == Counter(fitting)


@pytest.mark.once("batches are NumPy's")
def test_pairs_may_come_from_an_iterator():
    pairs = make_pairs(20)
    steps = range(len(make_batches(pairs)))
    assert_same(map(make_batches(iter(pairs)).batch, steps), map(make_batches(pairs).batch, steps))


@pytest.mark.once("batches are NumPy's")
def test_large_vocabularies_keep_their_ids():
    batches = make_batches(tokenizer=make_tokenizer(offset=1_000_000))
    assert read(batches, range(len(batches))) == Counter(make_pairs(300))


@pytest.mark.once("batches are NumPy's")
@pytest.mark.parametrize("sampling", [0.0, 0.3])
@both_layouts
def test_a_batch_depends_on_seed_and_step_alone(layout, sampling):
    batches, again = (make_batches(sampling=sampling, **layout) for _ in range(2))
    steps = list(range(3 * len(batches)))
    in_order = [batches.batch(step) for step in steps]
    Random(0).shuffle(steps)
    assert_same([again.batch(step) for step in steps], [in_order[step] for step in steps])


@pytest.mark.once("batches are NumPy's")
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


@pytest.mark.once("batches are NumPy's")
def test_sampling_segments_anew_at_each_visit():
    batches = make_batches(sampling=0.3, shuffle=False, seed=3)
    plain = make_batches(shuffle=False)
    first, second = (batches.batch(step)[1] for step in (0, len(batches)))
    assert first.shape == second.shape and (first != second).any()
    sampled = sum((batches.batch(step)[1] != PAD).sum() for step in range(len(batches)))
    # A token in 0.3 becomes two: most get them, since the buckets leave the room.
    assert 1.2 < sampled / plain.num_tokens < 1.3


@pytest.mark.once("batches are NumPy's")
@both_layouts
def test_what_outgrows_its_row_keeps_its_plain_segmentation(layout):
    tokenizer = make_tokenizer(longest_sampled=49)
    batches = make_batches(make_pairs(50), tokenizer, sampling=0.5, **layout)
    assert all(max(S, T) <= layout.get("packed_length", 40) for _, S, T in batches.shapes)
    assert read(batches, range(len(batches))) == Counter(make_pairs(50))


@pytest.mark.once("batches are NumPy's")
@pytest.mark.parametrize("num_workers", [0, 2])
@both_layouts
def test_a_stream_goes_on_where_another_stopped(layout, num_workers):
    batches = make_batches(sampling=0.2, **layout)
    first = len(batches) - 3  # into the second epoch
    wanted = [batches.batch(step) for step in range(first, first + 9)]
    assert_same(batches.stream(first, 9, num_workers), wanted)


@pytest.mark.once("batches are NumPy's")
def test_an_endless_stream_can_be_set_to_any_step():
    batches = make_batches()
    iterator = iter(batches.stream())
    for _ in range(5):
        next(iterator)
    state = iterator.get_state()
    following = list(itertools.islice(iterator, 4))
    iterator.set_state(state)
    assert_same(itertools.islice(iterator, 4), following)
    iterator.close()
    with pytest.raises(ValueError, match="closed"):
        next(iterator)


@pytest.mark.once("batches are NumPy's")
def test_a_look_at_the_first_batches_starts_no_process():
    iterator = iter(make_batches().stream(num_workers=1))
    others = set(multiprocessing.active_children())
    next(iterator), next(iterator)
    assert set(multiprocessing.active_children()) == others
    next(iterator)
    assert len(set(multiprocessing.active_children()) - others) == 1
    iterator.close()
    assert set(multiprocessing.active_children()) <= others


@pytest.mark.once("batches are NumPy's")
def test_an_error_in_a_worker_process_reaches_the_user():
    batches = make_batches(tokenizer=make_tokenizer(fail_at=0), sampling=0.2, seed=1)
    with pytest.raises(RuntimeError, match="the tokenizer broke"):
        list(batches.stream(2, 300, num_workers=1))


@pytest.mark.once("batches are NumPy's")
def test_workers_run_neither_the_main_module_nor_keras(tmp_path):
    """Unguarded, this script would start itself in its worker, and that is an error of Python."""
    script = tmp_path / "script.py"
    script.write_text(
        """
import sys
import keras
from keras_transformer.data.batching import TokenBatches

class Spy:
    pad_id, bos_id, eos_id = 0, 1, 2
    def encode_source(self, texts, *, sampling=0.0, seed=None):
        loaded = 3 + sum(name in sys.modules for name in ("keras", "tensorflow", "torch"))
        return [[loaded, 2] for _ in texts]
    encode_target = encode_source

batches = TokenBatches([("a", "b")], Spy(), sampling=0.1)
print([int(labels[0, 0]) for _, labels in batches.stream(steps=4, num_workers=1)])
""",
        "utf-8",
    )
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    ran = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, env=environment, timeout=60
    )
    here = 3 + len({"keras", keras.backend.backend()} & {"keras", "tensorflow", "torch"})
    assert ran.stdout.strip() == str([here, here, 3, 3]), ran.stderr


@pytest.mark.once("batches are NumPy's")
@both_layouts
def test_a_pickled_one_is_small_and_shares_the_corpus(layout):
    pairs = make_pairs(5_000)
    options = dict(sampling=0.1, tokens_per_batch=20_000, **layout)
    batches = make_batches(pairs, SharedTokenizer(), **options)
    pickled = pickle.dumps(batches)
    assert len(pickled) < 10_000
    copy = pickle.loads(pickled)
    assert isinstance(copy._ids[0].values, np.memmap)
    assert_same(map(copy.batch, range(5)), map(batches.batch, range(5)))
    folder = Path(batches._ids[0]._folder)
    assert folder.exists()
    del batches
    gc.collect()
    assert not folder.exists()


class SharedTokenizer(type(make_tokenizer())):
    """The same where pickle finds it."""


def linear_model():
    """Any lengths in, logits of the next letter out; linear, so that sums must agree."""
    source_ids = keras.Input((None,), dtype="int32", name="source_ids")
    target_ids = keras.Input((None,), dtype="int32", name="target_ids")
    embedding = keras.layers.Embedding(16, 4, embeddings_initializer="ones")
    mean = keras.ops.mean(embedding(source_ids), axis=1, keepdims=True)
    logits = keras.layers.Dense(16, kernel_initializer="ones")(embedding(target_ids) + mean)
    model = keras.Model({"source_ids": source_ids, "target_ids": target_ids}, logits)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss)
    return model


def small_batches():
    """Three shapes; ids below 16: those of letters, one a token."""

    class Letters:
        pad_id, bos_id, eos_id = PAD, BOS, EOS

        def encode_source(self, texts, *, sampling=0.0, seed=None):
            return [[*(FIRST + ord(letter) - ord("a") for letter in text), EOS] for text in texts]

        encode_target = encode_source

    random = Random(0)
    lengths = [random.choice([3, 3, 3, 3, 7, 15]) for _ in range(150)]
    pairs = [["".join(random.choices("abcdefgh", k=k)) for _ in range(2)] for k in lengths]
    options = {"tokens_per_batch": 100, "max_length": 16, "num_buckets": 3}
    return TokenBatches(pairs, Letters(), **options)


def test_fit_takes_each_batch_once_and_in_order():
    batches = small_batches()
    assert len(batches.shapes) == 3
    shapes = [batches.batch(step)[1].shape for step in range(len(batches))]
    # Two of one shape at first, which Keras would take for the shape of all.
    first = next(step for step, pair in enumerate(itertools.pairwise(shapes)) if len({*pair}) == 1)
    model = linear_model()
    dataset = batches.dataset(first, num_workers=1)
    model.fit(dataset, steps_per_epoch=6, epochs=2, shuffle=False, verbose=0)
    by_hand = linear_model()
    for step in range(first, first + 12):
        by_hand.train_on_batch(*batches.batch(step))
    assert int(model.optimizer.iterations) == 12
    for weight, wanted in zip(model.get_weights(), by_hand.get_weights(), strict=True):
        np.testing.assert_allclose(weight, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("ignore:Your input ran out of data")
def test_validation_takes_data_sets_with_and_without_an_end():
    batches = small_batches()
    model = linear_model()
    history = model.fit(
        batches.dataset(steps=5),
        epochs=3,
        shuffle=False,
        validation_data=batches.dataset(),
        validation_steps=len(batches),
        verbose=0,
    )
    assert int(model.optimizer.iterations) == 15
    loss = model.evaluate(batches.dataset(steps=len(batches)), verbose=0)
    assert loss == pytest.approx(history.history["val_loss"][-1], rel=1e-3)


@pytest.mark.once("batches are NumPy's")
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


@pytest.mark.once("batches are NumPy's")
@pytest.mark.parametrize("wrong", ["ab", ("a",), ("a", "b", "c"), ("a", None), (b"a", b"b"), 1])
def test_what_is_no_pair_of_texts(wrong):
    with pytest.raises(TypeError, match=r"pairs\[1\] must be two texts \(str\), got "):
        make_batches([("a", "b"), wrong])


@pytest.mark.once("batches are NumPy's")
def test_a_tokenizer_without_eos():
    class Tokenizer:
        pad_id, bos_id, eos_id = PAD, BOS, EOS

        def encode_source(self, texts, *, sampling=0.0, seed=None):
            return [[FIRST] for _ in texts]

        encode_target = encode_source

    with pytest.raises(ValueError, match="tokenizer must end the ids of each text in eos_id=2"):
        make_batches(tokenizer=Tokenizer())


@pytest.mark.once("batches are NumPy's")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"first_step": -1}, "first_step must be .* at least 0, got -1"),
        ({"steps": 0}, "steps must be .* at least 1, got 0"),
        ({"num_workers": -1}, "num_workers must be .* at least 0, got -1"),
        ({"num_workers": 1.5}, "num_workers must be a whole number .* got 1.5"),
    ],
)
def test_streams_and_steps_outside_their_range(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_batches().stream(**arguments)
    with pytest.raises(ValueError, match=r"step must be .* at least 0, got -1"):
        make_batches().batch(-1)


@pytest.mark.once("batches are NumPy's")
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
