"""Batches for a synthesizer, read back into the clips and texts that they are made of."""

import itertools

import numpy as np
import pytest

from keras_transformer.data.synthesis_batches import STOP_WEIGHT, SynthesisBatches

pytestmark = pytest.mark.once("NumPy alone")
LENGTHS = (3, 4, 7, 9, 12)
IDS = [[1], [1, 2], [1, 2, 3], [4], [4, 5]]


@pytest.fixture
def clips(rng):
    return [rng.standard_normal((n, 2)).astype("float32") for n in LENGTHS]


def test_what_a_batch_holds(clips):
    batches = SynthesisBatches(clips, IDS, 2, frames_per_step=3, pad_id=0, shape=2)
    assert len(batches) == 2 and batches.max_steps == 4
    seen = []
    for inputs, outputs, weights in itertools.islice(batches, 2):
        for row, ids in enumerate(inputs["source_ids"]):
            i = IDS.index(ids[ids > 0].tolist())
            seen.append(i)
            steps = -(-LENGTHS[i] // 3)
            frames = outputs["frames"][row].reshape(-1, 2)
            np.testing.assert_array_equal(frames[: LENGTHS[i]], clips[i])
            last = np.tile(clips[i][-1:], (steps * 3 - LENGTHS[i], 1))
            np.testing.assert_array_equal(frames[LENGTHS[i] : steps * 3], last)
            assert not frames[steps * 3 :].any()
            previous = inputs["previous_frames"][row]
            assert not previous[0].any() and len(previous) % 2 == 0
            np.testing.assert_array_equal(previous[1:steps], frames[2::3][: steps - 1])
            assert outputs["stop"][row].ravel().nonzero()[0].tolist() == [steps - 1]
            assert weights["frames"][row].sum() == steps
            assert weights["stop"][row].tolist()[:steps] == [1.0] * (steps - 1) + [STOP_WEIGHT]
            assert not weights["stop"][row, steps:].any()
    assert len(set(seen)) == 4


def test_the_order_is_that_of_the_seed(clips):
    first, again, other = (
        [x["source_ids"].tolist() for x, *_ in itertools.islice(batches, 6)]
        for batches in (SynthesisBatches(clips, IDS, 2, 3, 0, seed=seed) for seed in (0, 0, 1))
    )
    assert first == again != other


def test_bad_input(clips):
    for change, message in (
        (dict(batch_size=6), "batch_size must be a whole number from 1 to 5, .*, got 6"),
        (dict(ids=IDS[1:]), "ids must be 5, one per clip, got 4"),
        (dict(frames_per_step=0), "frames_per_step must be"),
    ):
        options = dict(features=clips, ids=IDS, batch_size=2, frames_per_step=3, pad_id=0)
        with pytest.raises(ValueError, match=message):
            SynthesisBatches(**options | change)
