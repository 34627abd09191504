"""Packed pairs, of a Transformer: several in a row give what each gives alone."""

from __future__ import annotations

import functools
import itertools

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.data.pair_batches import TokenBatches
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.metrics import MaskedAccuracy, Perplexity
from tests.backends import cases

VARIANTS = {
    "paper": {},
    "pre-norm": dict(norm_first=True, activation="gelu"),
    "untied": dict(tie_output=False, share_embeddings=False, target_vocab_size=12),
    "learned": dict(positions="learned", share_embeddings=False),
    "none": dict(positions="none"),
}
LENGTHS = ((3, 5), (4, 2), (1, 1), (6, 3), (2, 4), (5, 5))  # of each pair's sides
ROWS = ((0, 1, 2), (3, 4), (5,), ())  # which of the pairs share a row


@pytest.fixture
def tiny_transformer(tiny_transformer):
    return functools.partial(tiny_transformer, num_decoder_layers=1)


@pytest.fixture
def pairs(rng):
    return [[rng.integers(4, 12, length, dtype="int32") for length in both] for both in LENGTHS]


def batch(pairs, rows, S=10, T=9):
    """Inputs and labels of these rows of pairs, and (row, slice) of each pair's target."""
    inputs, places = {}, {}
    for side, (name, length) in enumerate({"source": S, "target": T}.items()):
        ids, segments = np.zeros((2, len(rows), length), "int32")
        for row, members in enumerate(rows):
            start = 0
            for number, pair in enumerate(members, start=1):
                places[pair] = row, slice(start, start + len(pairs[pair][side]))
                ids[places[pair]] = pairs[pair][side]
                segments[places[pair]] = number
                start = places[pair][1].stop
        inputs |= {f"{name}_ids": ids, f"{name}_segments": segments}
    return inputs, inputs["target_ids"], places


def plain(pairs):
    """The same pairs without segments, each in a row of its own."""
    inputs, labels, _ = batch(pairs, [[pair] for pair in range(len(pairs))], 6, 5)
    return {name: inputs[name] for name in ("source_ids", "target_ids")}, labels


numpy = ops.convert_to_numpy


def assert_as_alone(model, pairs, logits, places):
    for pair, place in places.items():
        inputs, _ = plain([pairs[pair]])
        alone = numpy(model(inputs))[0, : len(pairs[pair][1])]
        np.testing.assert_allclose(logits[place], alone, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("variant", cases(VARIANTS, "paper"))
def test_logits_are_those_of_each_pair_alone(tiny_transformer, pairs, variant):
    model = tiny_transformer(scale=1.0, **VARIANTS[variant])
    inputs, _, places = batch(pairs, ROWS)
    logits = numpy(model(inputs))
    assert np.isfinite(logits).all()
    assert_as_alone(model, pairs, logits, places)
    np.testing.assert_allclose(model.predict(inputs, verbose=0), logits, atol=1e-5)


@pytest.mark.once("made of parts that are tested under each backend")
def test_rows_may_be_longer_than_there_are_positions(tiny_transformer, pairs):
    model = tiny_transformer(scale=1.0, max_length=6, positions="learned")
    inputs, _, places = batch(pairs, ROWS)
    assert_as_alone(model, pairs, numpy(model(inputs)), places)


def test_no_pair_changes_another(tiny_transformer, pairs):
    model = tiny_transformer()
    inputs, _, places = batch(pairs, ROWS)
    before = numpy(model(inputs))
    for side in ("source", "target"):
        other = np.where(inputs[f"{side}_segments"] == 2, 12, inputs[f"{side}_ids"])
        after = numpy(model(inputs | {f"{side}_ids": other}))
        for row, place in places.values():
            changed = inputs["target_segments"][row, place][0] == 2
            assert np.array_equal(before[row, place], after[row, place]) != changed


@pytest.mark.parametrize(
    "metrics", cases([(Perplexity,), (Perplexity, MaskedAccuracy)], (Perplexity,))
)
def test_loss_metrics_and_steps_are_those_of_the_pairs_alone(tiny_transformer, pairs, metrics):
    """The first from hidden states, the second from logits."""
    results, weights = [], []
    for inputs, labels in (batch(pairs, ROWS)[:2], plain(pairs)):
        model = tiny_transformer(dropout=0.0, scale=1.0)
        measured = [metric() for metric in metrics]
        model.compile(keras.optimizers.SGD(0.1), LabelSmoothedCrossentropy(), metrics=measured)
        evaluated = model.evaluate(inputs, labels, verbose=0, return_dict=True)
        history = model.fit(inputs, labels, batch_size=8, epochs=2, verbose=0).history
        results.append((evaluated, history))
        weights.append(model.get_weights())
    for ours, theirs in zip(*results, strict=True):
        assert ours.keys() == theirs.keys()
        for name in ours:
            np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-5)
    for ours, theirs in zip(*weights, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


class Digits:
    """A token a digit."""

    pad_id, bos_id, eos_id = 0, 2, 3

    def encode_source(self, texts, *, sampling=0.0, seed=None):
        return [[*(int(digit) + 4 for digit in text), self.eos_id] for text in texts]

    encode_target = encode_source


@pytest.mark.once("made of parts that are tested under each backend")
def test_a_packed_epoch_has_the_perplexity_of_one_that_is_not(tiny_transformer, rng):
    texts = ["".join(map(str, rng.integers(0, 9, rng.integers(1, 9)))) for _ in range(120)]
    pairs = list(zip(texts[:60], texts[60:], strict=True))
    model = tiny_transformer(scale=1.0)
    model.compile("sgd", LabelSmoothedCrossentropy(), metrics=[Perplexity()])
    found = []
    for layout in ({"packed_length": 20}, {"num_buckets": 1}):
        batches = TokenBatches(pairs, Digits(), tokens_per_batch=80, max_length=12, **layout)
        data = batches.dataset(steps=len(batches))
        found.append(model.evaluate(data, verbose=0, return_dict=True)["perplexity"])
    np.testing.assert_allclose(*found, rtol=1e-5)


@pytest.mark.once("made of parts that are tested under each backend")
def test_segments_are_no_inputs_of_the_graph(tiny_transformer, pairs, saved_and_loaded):
    model = tiny_transformer()
    inputs, labels, _ = batch(pairs, ROWS)
    model.compile("sgd", LabelSmoothedCrossentropy())
    model.fit(inputs, labels, verbose=0)
    loaded = saved_and_loaded(model)
    for each in (model, loaded):
        assert [tensor.name for tensor in each.inputs] == ["source_ids", "target_ids"]
    np.testing.assert_allclose(numpy(loaded(inputs)), numpy(model(inputs)), atol=1e-6)


@pytest.mark.parametrize("given", ["source", "target"])
def test_segments_of_one_side_alone(tiny_transformer, pairs, given):
    inputs, _ = plain(pairs)
    inputs[f"{given}_segments"] = inputs[f"{given}_ids"]
    message = f"source_segments and target_segments .* together, got {given}_segments alone"
    with pytest.raises(ValueError, match=message):
        tiny_transformer()(inputs)


@pytest.mark.parametrize(
    "variant,quantized",
    cases(
        [*itertools.product(["paper", "untied", "bias"], [False, True])],
        ("paper", False),
        ("bias", True),
    ),
)
def test_logits_of_allowed_ids_are_those_of_the_whole_table(tiny_transformer, variant, quantized):
    options = VARIANTS.get(variant) or (dict(output_bias=True) if variant == "bias" else {})
    model = tiny_transformer(scale=1.0, **options)
    if variant == "bias":
        model.output_bias.bias.assign(np.linspace(-1, 1, model.output_bias.bias.shape[0]))
    if quantized:
        model.quantize("int8")
    source = np.array([[4, 7, 5, 3], [8, 9, 3, 0]], "int32")
    first = np.full((2, 1), 2, "int32")
    listed = np.array([3, 9, -1, 5, 2, 11], "int32")
    may_use = np.array([[1, 1, 0, 1, 0, 0], [1, 0, 0, 0, 1, 1]], bool)
    whole, state, step = model.prefill(*map(ops.convert_to_tensor, (source, first)), 4)
    logits, narrow_state, narrow_step = model.prefill(
        *map(ops.convert_to_tensor, (source, first)),
        4,
        listed=[ops.convert_to_tensor(x) for x in (listed, may_use)],
    )
    atol = 0.15 if quantized else 1e-5  # int8 rounds the hidden states, too
    chosen, places = np.array([[9], [11]], "int32"), np.array([[1], [5]], "int32")
    second, _ = step(chosen, state, 1)
    narrow_second, _ = narrow_step(places, narrow_state, 1)
    for theirs, ours in ((whole, logits), (second[:, 0], narrow_second[:, 0])):
        theirs, ours = numpy(theirs), numpy(ours)
        assert (ours[~may_use] < -1e8).all()
        expected = theirs[:, np.maximum(listed, 0)]
        np.testing.assert_allclose(ours[may_use], expected[may_use], atol=atol)
