"""Batches of sentences: each sentence once, pairs with their labels, masks drawn anew."""

import itertools

import numpy as np
import pytest

from keras_transformer.data.masking import Masking
from keras_transformer.data.pretraining_batches import INPUTS, PretrainingBatches

CLS, SEP, MASK = 1, 2, 3
# Each sentence has tokens of its own: 100 in all.
DOCUMENTS = [[[4 + 20 * d + 4 * s + i for i in range(4)] for s in range(5)] for d in range(5)]
OPTIONS = dict(cls_id=CLS, sep_id=SEP, tokens_per_batch=50, max_length=16)
MASKING = Masking(104, MASK, special_ids=(CLS, SEP))
KEPT = Masking(104, MASK, special_ids=(CLS, SEP), mask_share=0, random_share=0)


def rows(batches, epoch=0):
    """Inputs, masked labels and pair labels of an epoch."""
    steps = range(epoch * len(batches), (epoch + 1) * len(batches))
    for inputs, labels in map(batches.batch, steps):
        assert inputs["token_ids"].shape[0] <= 3 and inputs["token_ids"].shape[1] == 16
        pairs = isinstance(labels, dict)
        masked = labels["masked_lm"] if pairs else labels
        label = labels["next_sentence"] if pairs else [None] * len(masked)
        types = inputs.get("type_ids", np.zeros_like(masked))
        yield from zip(inputs["token_ids"], types, masked, label, strict=True)


def test_full_sentences():
    batches = PretrainingBatches(DOCUMENTS, KEPT, **OPTIONS)
    for epoch in (0, 1):
        found = [ids[ids != 0].tolist() for ids, *_ in rows(batches, epoch)]
        assert all(ids[0] == CLS and ids[-1] == SEP for ids in found)
        tokens = [x for ids in found for x in ids if x > MASK]
        assert sorted(tokens) == list(range(4, 104))
        for ids in found:  # another document follows a separator
            assert all(SEP in x or x[1] == x[0] + 1 for x in itertools.pairwise(ids[1:-1]))


@pytest.mark.parametrize("task", ["next_sentence", "sentence_order"])
def test_pairs(task):
    batches, labels = PretrainingBatches(DOCUMENTS, KEPT, task, **OPTIONS), []
    for epoch in range(20):
        for ids, types, _, label in rows(batches, epoch):
            first = ids[(types == 0) & (ids > MASK)]
            second = ids[(types == 1) & (ids > MASK)]
            follows = first[0] < second[0] and (first[0] - 4) // 20 == (second[0] - 4) // 20
            assert follows == (label == 0)
            labels.append(label)
    assert 0.35 < np.mean(labels) < 0.65


@pytest.mark.parametrize("name", INPUTS)
def test_seeds_and_epochs(name):
    def text(batches, epoch=0):
        return [(*ids, *masked, label) for ids, _, masked, label in rows(batches, epoch)]

    one, again = (PretrainingBatches(DOCUMENTS, MASKING, name, **OPTIONS) for _ in "ab")
    other = PretrainingBatches(DOCUMENTS, MASKING, name, **OPTIONS, seed=1)
    assert text(one, 3) == text(again, 3)
    assert text(one) != text(one, 1) and text(one) != text(other)
    still = PretrainingBatches(DOCUMENTS, KEPT, name, **OPTIONS, shuffle=False)
    assert [x[:16] for x in text(still)] == [x[:16] for x in text(still, 1)]
    for ids, _, masked, _ in rows(one):
        chosen = masked != 0
        assert 1 <= chosen.sum() <= 2 and not np.isin(masked[chosen], [CLS, SEP, MASK]).any()
        assert ((ids == masked) | (ids == MASK) | (ids > MASK))[chosen].all()


def test_bad_values():
    for changes, message in (
        (dict(inputs="lines"), "inputs must be one of .*, got 'lines'"),
        (dict(max_length=4), "max_length must be a whole number of at least 5, got 4"),
        (dict(tokens_per_batch=15), "tokens_per_batch must be a whole number of at least 16"),
        (dict(documents=[]), "documents must be one with one sentence or more"),
        (dict(documents=[[[5]]], inputs="sentence_order"), "one with two sentences or more"),
        (dict(documents=[[[5], [6]]], inputs="next_sentence"), "documents must be two or more"),
    ):
        with pytest.raises(ValueError, match=message):
            PretrainingBatches(**dict(documents=DOCUMENTS, masking=MASKING) | OPTIONS | changes)
