"""Training on hidden states is training on logits, only faster."""

from __future__ import annotations

import functools
import itertools

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.metrics import MaskedAccuracy, Perplexity
from keras_transformer.models import BERT, GPT, BERTConfig, GPTConfig
from keras_transformer.optimizers import adam
from tests.backends import cases

TOLERANCE = {"float32": 2e-4, "mixed_bfloat16": 5e-2}


@pytest.fixture
def tiny_transformer(tiny_transformer):
    return functools.partial(tiny_transformer, num_decoder_layers=1)


@pytest.fixture
def pairs(rng):
    ids = rng.integers(4, 13, (2, 12, 7), dtype="int32")
    ids[1, ::3, 4:] = 0
    inputs = {"source_ids": ids[0], "target_ids": np.roll(ids[1], 1, axis=1)}
    return inputs, ids[1], np.linspace(0.5, 2.0, 12, dtype="float32")


def train(model, pairs, metrics):
    # Not Adam: where a gradient is nothing but rounding it makes full steps of it.
    sgd = keras.optimizers.SGD(0.01)
    model.compile(sgd, LabelSmoothedCrossentropy(0.1), metrics=metrics)
    inputs, labels, weights = pairs
    options = dict(batch_size=6, verbose=0)
    history = model.fit(inputs, labels, sample_weight=weights, epochs=2, shuffle=False, **options)
    evaluated = model.evaluate(inputs, labels, return_dict=True, **options)
    return history.history, evaluated


@pytest.mark.parametrize(
    "dtype,tie_output",
    cases(
        list(itertools.product(TOLERANCE, [True, False])),
        ("mixed_bfloat16", False),
    ),
)
def test_trains_and_evaluates_as_on_logits(tiny_transformer, pairs, dtype, tie_output):
    results, weights, fused = [], [], []
    for metrics in ([Perplexity()], [Perplexity(), MaskedAccuracy()]):
        model = tiny_transformer(dropout=0.0, tie_output=tie_output, dtype=dtype)
        results.append(train(model, pairs, metrics))
        weights.append(model.get_weights())
        fused.append(model._needs_no_logits)
    assert fused == [True, False]  # accuracy needs the logits
    (history, evaluated), (history_of_logits, evaluated_on_logits) = results
    tolerance = TOLERANCE[dtype]
    for name, measure in (("loss", np.asarray), ("perplexity", np.log)):
        ours, theirs = measure(history[name]), measure(history_of_logits[name])
        np.testing.assert_allclose(ours, theirs, rtol=tolerance)
        ours, theirs = measure(evaluated[name]), measure(evaluated_on_logits[name])
        np.testing.assert_allclose(ours, theirs, rtol=tolerance)
    # Weights in bfloat16 differed by 0.054 on a processor without units for it.
    atol = tolerance if dtype == "float32" else 2 * tolerance
    for ours, theirs in zip(*weights, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=atol)


@pytest.mark.once("made of parts that are tested under each backend")
@pytest.mark.parametrize(
    "loss",
    cases(
        ["sparse_categorical_crossentropy", keras.losses.SparseCategoricalCrossentropy(True)],
        "sparse_categorical_crossentropy",
    ),
)
def test_any_other_loss_sees_logits(tiny_transformer, pairs, loss):
    model = tiny_transformer()
    model.compile("sgd", loss)
    inputs, labels, _ = pairs
    model.fit(inputs, labels, verbose=0)
    assert not model._needs_no_logits


@pytest.mark.parametrize("make", cases([adam, keras.optimizers.AdamW, keras.optimizers.SGD], adam))
def test_after_training_the_new_weights_predict(tiny_transformer, pairs, make):
    model = tiny_transformer()
    inputs, labels, _ = pairs
    before = model.predict(inputs, verbose=0)  # what may be kept of the weights is kept now
    model.compile(make(0.1), LabelSmoothedCrossentropy(0.1), metrics=[Perplexity()])
    model.fit(inputs, labels, verbose=0)
    copy = type(model).from_config(model.get_config())
    copy.set_weights(model.get_weights())
    after = model.predict(inputs, verbose=0)
    np.testing.assert_allclose(after, copy.predict(inputs, verbose=0), atol=1e-5)
    assert np.abs(after - before).max() > 0.1


@pytest.mark.once("made of parts that are tested under each backend")
def test_a_call_gives_logits_whatever_was_compiled(tiny_transformer, pairs):
    model = tiny_transformer()
    model.compile("sgd", LabelSmoothedCrossentropy(), metrics=[Perplexity()])
    model.fit(*pairs[:2], verbose=0)
    assert tuple(model(pairs[0], training=True).shape) == (12, 7, 13)
    assert model.predict(pairs[0], verbose=0).shape == (12, 7, 13)


@pytest.mark.once("made of parts that are tested under each backend")
def test_lora_and_quantized_outputs_are_not_passed_by(tiny_transformer, pairs):
    model = tiny_transformer(tie_output=False)
    model.output_layer.enable_lora(2)
    seen = []
    original = model.output_layer.call
    model.output_layer.call = lambda *a, **k: seen.append(1) or original(*a, **k)
    model.compile("sgd", LabelSmoothedCrossentropy(), metrics=[Perplexity()])
    model.fit(*pairs[:2], verbose=0)
    assert seen


@pytest.mark.once("the other tests train on hidden states under each")
def test_a_bias_of_the_output_counts(tiny_transformer, pairs):
    model = tiny_transformer(output_bias=True)
    model.output_bias.bias.assign(np.linspace(-3, 3, 13))
    loss = LabelSmoothedCrossentropy()
    model.compile("sgd", loss)
    inputs, labels, _ = pairs
    found = model.evaluate(inputs, labels, batch_size=12, verbose=0)
    expected = ops.convert_to_numpy(loss(labels, model(inputs)))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.once("made of parts that are tested under each backend")
def test_losses_of_layers_are_added(tiny_transformer, pairs):
    plain, regularized = tiny_transformer(dropout=0.0), tiny_transformer(dropout=0.0)
    layer = regularized.encoder.blocks[0].feed_forward.hidden
    layer.kernel.regularizer = keras.regularizers.L2(0.5)
    expected = 0.5 * float(ops.sum(ops.square(layer.kernel)))
    inputs, labels, _ = pairs
    losses = []
    for model in (plain, regularized):
        model.compile("sgd", LabelSmoothedCrossentropy())
        losses.append(model.evaluate(inputs, labels, batch_size=12, verbose=0))
    np.testing.assert_allclose(losses[1] - losses[0], expected, rtol=1e-4)


IDS = np.array([[4, 5, 6, 7], [8, 9, 10, 0], [5, 7, 0, 0], [11, 12, 4, 5]], "int32")
SEGMENTS = np.array([[1, 1, 2, 2], [1, 2, 2, 0], [1, 1, 0, 0], [1, 1, 1, 1]], "int32")
SIZES = dict(d_model=8, d_ff=8, num_heads=2, num_layers=1, dropout=0.5)
PAIR = {"source_ids": IDS, "target_ids": IDS[:, ::-1].copy()}
PACKED = {"source_segments": SEGMENTS, "target_segments": SEGMENTS[:, ::-1].copy()}
DROPPING = {
    "pairs": ("transformer", PAIR),
    "packed pairs": ("transformer", PAIR | PACKED),
    "tokens": ("gpt", {"token_ids": IDS}),
    "packed tokens": ("gpt", {"token_ids": IDS, "segments": SEGMENTS}),
    "masked tokens": ("bert", {"token_ids": IDS}),
}


@pytest.mark.once("made of parts that are tested under each backend")
@pytest.mark.parametrize(
    "kind,metric",  # without logits, and with
    cases(
        list(itertools.product(DROPPING, [Perplexity, MaskedAccuracy])),
        ("packed pairs", Perplexity),
    ),
)
def test_dropout_is_active_in_training_alone(tiny_transformer, kind, metric):
    family, inputs = DROPPING[kind]
    model = {
        "transformer": lambda: tiny_transformer(dropout=0.5),
        "gpt": lambda: GPT(GPTConfig(13, **SIZES)),
        "bert": lambda: BERT(BERTConfig(13, **SIZES)),
    }[family]()
    model.compile(keras.optimizers.SGD(0.0), LabelSmoothedCrossentropy(), metrics=[metric()])
    losses = model.fit(inputs, IDS, batch_size=4, epochs=3, verbose=0).history["loss"]
    losses += [model.evaluate(inputs, IDS, batch_size=4, verbose=0)[0] for _ in range(2)]
    assert len({round(loss, 5) for loss in losses}) == 4, losses  # evaluation: twice the same


def test_a_training_loop_gets_the_loss_of_the_logits(tiny_transformer, pairs):
    model = tiny_transformer()
    loss = LabelSmoothedCrossentropy(0.1)
    model.compile("sgd", loss)
    inputs, labels, weights = pairs
    found, likelihood = model.loss_and_likelihood(inputs, labels, weights)
    logits = model(inputs)
    found, expected = map(ops.convert_to_numpy, (found, loss(labels, logits, weights)))
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    log_probabilities = ops.convert_to_numpy(ops.log_softmax(logits))
    expected = -np.take_along_axis(log_probabilities, labels[..., None].astype(int), -1)[..., 0]
    is_token = labels != 0
    found = ops.convert_to_numpy(likelihood)[is_token]
    np.testing.assert_allclose(found, expected[is_token], rtol=1e-4)


def test_a_loss_of_something_else_is_refused_there(tiny_transformer, pairs):
    model = tiny_transformer()
    for compiled in (False, True):
        if compiled:
            model.compile("sgd", "sparse_categorical_crossentropy")
        with pytest.raises(ValueError, match="loss must be a LabelSmoothedCrossentropy"):
            model.loss_and_likelihood(*pairs[:2])


def test_r_drop_runs_each_batch_twice(tiny_transformer, pairs):
    inputs, labels, _ = pairs
    for dropout in (0.0, 0.5):
        model = tiny_transformer(dropout=dropout)
        model.compile("sgd", LabelSmoothedCrossentropy(0.1))
        plain = float(model.loss_and_likelihood(inputs, labels, training=True)[0])
        model.compile("sgd", LabelSmoothedCrossentropy(0.1, r_drop=5.0), metrics=[Perplexity()])
        evaluated = model.evaluate(inputs, labels, verbose=0)[0]
        loss, likelihood = model.loss_and_likelihood(inputs, labels, training=True)
        assert likelihood.shape == labels.shape
        # Without dropout, the two passes agree; evaluation runs each batch once.
        assert (float(loss) == pytest.approx(plain, rel=1e-4)) == (dropout == 0)
        expected = float(model.loss_and_likelihood(inputs, labels)[0])
        assert evaluated == pytest.approx(expected, rel=1e-4)
    losses = model.fit(inputs, labels, epochs=3, batch_size=2, verbose=0).history["loss"]
    assert np.isfinite(losses).all()


@pytest.mark.once("the test above computes this loss and trains with it under each")
def test_r_drop_lessens_the_divergence(tiny_transformer, pairs):
    inputs, labels, _ = pairs

    def apart(r_drop):
        keras.utils.set_random_seed(0)
        model = tiny_transformer(dropout=0.3)
        model.compile(keras.optimizers.Adam(0.01), LabelSmoothedCrossentropy(r_drop=r_drop))
        model.fit(inputs, labels, epochs=40, batch_size=6, verbose=0)
        found = [ops.convert_to_numpy(model(inputs, training=True)) for _ in range(8)]
        return np.std(found, axis=0).mean()

    assert apart(20.0) < 0.85 * apart(0.0)


@pytest.mark.once("an error before the first step")
def test_r_drop_without_the_fused_loss_is_refused(tiny_transformer, pairs):
    model = tiny_transformer()
    model.compile("sgd", LabelSmoothedCrossentropy(r_drop=1.0), metrics=[MaskedAccuracy()])
    with pytest.raises(ValueError, match="r_drop must be 0 with metrics other than Perplexity"):
        model.fit(*pairs[:2], verbose=0)
