"""Batches of single texts: each once an epoch, padded, with its label."""

import numpy as np
import pytest

from keras_transformer.data.masking import Masking
from keras_transformer.data.sequence_batches import SequenceBatches

TEXTS = [list(range(4, 4 + 1 + (7 * i) % 12)) for i in range(50)]
OPTIONS = dict(tokens_per_batch=64, max_length=12, num_buckets=3)


def rows(batches, epoch=0):
    return [
        (tuple(ids[ids != batches.pad_id].tolist()), label)
        for step in range(epoch * len(batches), (epoch + 1) * len(batches))
        for made in [batches.batch(step)]
        for ids, label in zip(made[0]["token_ids"], made[1], strict=True)
    ]


def test_each_text_once_an_epoch():
    batches = SequenceBatches(TEXTS, list(range(50)), **OPTIONS)
    expected = sorted((tuple(ids), i) for i, ids in enumerate(TEXTS))
    first, second = rows(batches), rows(batches, 1)
    assert sorted(first) == sorted(second) == expected
    assert first != second and first == rows(SequenceBatches(TEXTS, list(range(50)), **OPTIONS))
    assert first != rows(SequenceBatches(TEXTS, list(range(50)), **OPTIONS, seed=1))
    still = SequenceBatches(TEXTS, list(range(50)), **OPTIONS, shuffle=False)
    assert rows(still) == rows(still, 1)
    for step in range(len(batches)):
        shape = batches.batch(step)[0]["token_ids"].shape
        assert np.prod(shape) <= 64 and shape[1] in batches.lengths
    assert len(batches.lengths) <= 3


def test_labels_of_tokens():
    batches = SequenceBatches(TEXTS, [[x + 1 for x in ids] for ids in TEXTS], **OPTIONS)
    for step in range(len(batches)):
        inputs, labels = batches.batch(step)
        ids = inputs["token_ids"]
        np.testing.assert_array_equal(labels, np.where(ids, ids + 1, 0))
        batches.pad_label = -1
        np.testing.assert_array_equal(batches.batch(step)[1], np.where(ids, ids + 1, -1))
        batches.pad_label = 0


def test_masks_are_drawn_anew():
    batches = SequenceBatches(TEXTS, Masking(30, mask_id=3), **OPTIONS, shuffle=False)
    (one, labels), (other, _) = batches.batch(0), batches.batch(len(batches))
    assert (one["token_ids"] != other["token_ids"]).any() and ((labels > 0).sum(axis=1) > 0).all()
    np.testing.assert_array_equal(batches.batch(0)[1], labels)


@pytest.mark.parametrize(
    "change,message",
    [
        (dict(sequences=[]), "sequences must hold at least one text, and no empty one"),
        (dict(sequences=[[4], []]), "sequences must hold at least one text, and no empty one"),
        (dict(labels=[1]), "labels must be 50, one per text, got 1"),
        (dict(labels=[[1]] * 50), "labels of text 1 must be 8, one per token, got 1"),
        (dict(pad_label=-1), "pad_label must be None unless labels are per token, got -1"),
        (dict(labels=TEXTS, pad_label=1.5), "pad_label must be an int32 or None, got 1.5"),
        (dict(labels=TEXTS, pad_label=2**31), "pad_label must be an int32 or None, got 2147483648"),
        (
            dict(labels=Masking(30, 3), pad_label=-1),
            "pad_label must be None unless labels are per token, got -1",
        ),
        (dict(labels=Masking(30, 3), pad_id=1), "pad_id must be 0, that of the Masking, got 1"),
        (dict(tokens_per_batch=4), "tokens_per_batch must be .* at least 12, got 4"),
        (dict(max_length=0), "max_length must be .* at least 1, got 0"),
        (dict(num_buckets=0), "num_buckets must be .* at least 1, got 0"),
    ],
)
def test_bad_values_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        SequenceBatches(**dict(sequences=TEXTS, labels=list(range(50))) | OPTIONS | change)
