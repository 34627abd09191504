"""Batches made ahead of time: exact resumption, worker processes, the `fit` of Keras."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import keras
import numpy as np
import pytest

from keras_transformer.data.pair_batches import TokenBatches
from keras_transformer.data.prefetching import Stream
from tests.data.batches import (
    BOS,
    EOS,
    FIRST,
    PAD,
    assert_same,
    both_layouts,
    make_batches,
    make_tokenizer,
)


@pytest.mark.once("batches are NumPy's")
def test_a_stream_of_any_function_of_the_step():
    stream = Stream(lambda step: step**2, first_step=3, steps=4)
    assert list(stream) == list(stream) == [9, 16, 25, 36]
    assert list(itertools.islice(Stream(lambda step: step), 5)) == [0, 1, 2, 3, 4]


@pytest.mark.once("batches are NumPy's")
@pytest.mark.parametrize("step", [1, 5])  # made in this process, and by a worker or a thread
@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_step_without_a_batch_is_an_error(num_workers, step):
    stream = Stream(lambda x: None if x == step else x, num_workers=num_workers)
    with pytest.raises(ValueError, match=f"make must return a batch .*, got None for step {step}"):
        list(stream)


@pytest.mark.once("batches are NumPy's")
def test_only_some_batches_are_made_ahead_of_time():
    made = []
    iterator = iter(Stream(lambda step: made.append(step) or step))
    for _ in range(4):
        next(iterator)
    iterator.close()
    assert 4 <= len(made) < 20 and made == list(range(len(made)))


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
from keras_transformer.data.pair_batches import TokenBatches

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


@pytest.mark.once("made of parts that are tested under each backend")
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
