"""Preferences: files, and batches with both answers side by side."""

import gzip
import json
import re

import numpy as np
import pytest

from keras_transformer.data.preferences import Preference, PreferenceBatches, read_preferences
from keras_transformer.data.windows import NO_LABEL

GOOD = dict(prompt="a", chosen="b", rejected="c")


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_and_back(tmp_path, packed):
    path, line = tmp_path / ("a.jsonl.gz" if packed else "a.jsonl"), json.dumps(GOOD) + "\n"
    (gzip.open if packed else open)(path, "wt").write(2 * line)
    assert read_preferences(path) == 2 * [Preference("a", "b", "c")]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: malformed JSON"),
        ("[]", "line 2: prompt must be a text, got None"),
        (json.dumps(GOOD | {"chosen": 1}), "line 2: chosen must be a text, got 1"),
        (json.dumps(GOOD | {"chosen": " "}), "line 2: chosen must be not empty"),
        (json.dumps(GOOD | {"rejected": "b"}), "line 2: rejected must be another text than chosen"),
    ],
)
def test_a_line_that_is_none_is_named(tmp_path, line, message):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(GOOD) + "\n" + line + "\n")
    with pytest.raises(ValueError, match=re.escape(message)):
        read_preferences(path)


def test_an_empty_file_is_refused(tmp_path):
    (tmp_path / "a.jsonl").touch()
    with pytest.raises(ValueError, match=r"a\.jsonl must be a file with at least one line"):
        read_preferences(tmp_path / "a.jsonl")


PROMPTS, CHOSEN, REJECTED = [[5, 6, 7], [8]], [[9, 2], [4, 2]], [[3, 2], [4, 4, 4, 2]]
SIZES = dict(tokens_per_batch=64, max_length=8, num_buckets=1, shuffle=False)


def test_rows_of_a_decoder_only_model():
    batches = PreferenceBatches(PROMPTS, CHOSEN, REJECTED, last=True, **SIZES)
    batches.reference = np.array([[-1, -2], [-3, -4]], "float32")
    assert len(batches) == 1
    inputs, y_true = batches.batch(0)
    rows = np.argsort(batches.pairs(0))  # in the order of the examples
    rows = np.stack([2 * rows, 2 * rows + 1], 1).reshape(-1)
    none = NO_LABEL
    assert inputs["token_ids"][rows].tolist() == [
        [5, 6, 7, 9], [5, 6, 7, 3], [8, 4, 0, 0], [8, 4, 4, 4],
    ]  # fmt: skip
    assert y_true[rows].tolist() == [
        [-1, none, none, 9, 2], [-2, none, none, 3, 2],
        [-3, 4, 2, none, none], [-4, 4, 4, 4, 2],
    ]  # fmt: skip
    assert inputs["last"][rows].tolist() == [3, 3, 1, 3]


def test_rows_of_an_encoder_decoder_model():
    batches = PreferenceBatches(PROMPTS, CHOSEN, REJECTED, bos_id=1, **SIZES)
    inputs, y_true = batches.batch(0)
    rows = np.argsort(batches.pairs(0))
    rows = np.stack([2 * rows, 2 * rows + 1], 1).reshape(-1)
    assert [x[:3] for x in inputs["source_ids"][rows].tolist()] == 2 * [[5, 6, 7]] + 2 * [[8, 0, 0]]
    assert inputs["target_ids"][rows].tolist() == [
        [1, 9, 0, 0], [1, 3, 0, 0], [1, 4, 0, 0], [1, 4, 4, 4],
    ]  # fmt: skip
    assert y_true[rows][:, 1:].tolist() == [
        [9, 2, -1, -1], [3, 2, -1, -1], [4, 2, -1, -1], [4, 4, 4, 2],
    ]  # fmt: skip


def test_each_epoch_has_each_pair_once_in_another_order(rng):
    ids = [list(rng.integers(3, 9, n)) for n in rng.integers(1, 5, 40)]
    batches = PreferenceBatches(ids, ids, ids, tokens_per_batch=64, max_length=16, seed=3)
    epochs = [
        np.concatenate([batches.pairs(epoch * len(batches) + i) for i in range(len(batches))])
        for epoch in range(2)
    ]
    for order in epochs:
        assert sorted(order) == list(range(40))
    assert epochs[0].tolist() != epochs[1].tolist()
    again = PreferenceBatches(ids, ids, ids, tokens_per_batch=64, max_length=16, seed=3)
    np.testing.assert_equal(again.batch(5), batches.batch(5))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (dict(chosen=CHOSEN[:1]), "must be equally many"),
        (dict(prompts=[[5], []]), "prompts[1] must be at least 1 token"),
        (dict(rejected=[[], [4]]), "answers of pair 0 must be at least 1 token"),
        (dict(max_length=3), "pair 0 must be at most max_length=3 tokens, got 4"),
        (dict(tokens_per_batch=15), "tokens_per_batch must be a whole number of at least 16"),
    ],
)
def test_bad_input(given, message):
    texts = dict(prompts=PROMPTS, chosen=CHOSEN, rejected=REJECTED)
    with pytest.raises(ValueError, match=re.escape(message)):
        PreferenceBatches(**texts | SIZES | given)
