"""What training and evaluation average does not depend on how rows are split into batches."""

from __future__ import annotations

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer import losses
from keras_transformer.losses import (
    LabelSmoothedCrossentropy,
    MaskedSquaredError,
    PreferenceLoss,
)
from keras_transformer.metrics import MaskedAccuracy, Perplexity
from keras_transformer.models import steps
from keras_transformer.optimizers import adam
from keras_transformer.weights.state import restore_state, write_state
from tests.backends import cases
from tests.tiny import inputs_of, tiny

IDS = np.random.default_rng(0).integers(4, 24, (4, 10)).astype("int32")
LABELS = IDS[:, ::-1].copy()
LABELS[2:, 1:] = 0  # 20 tokens in the first two rows, 2 in the others
WEIGHTS = np.linspace(0.5, 2.0, 4, dtype="float32")
PREFERENCES = np.concatenate([np.zeros((4, 1)), LABELS - (LABELS == 0)], axis=1).astype("float32")
PREFERENCES[2, 1:] = -1  # a pair that does not count


def sgd(steps):
    return keras.optimizers.SGD(0.5, momentum=0.9, gradient_accumulation_steps=steps, clipnorm=0.3)


def paper_adam(steps):
    options = dict(global_clipnorm=0.5, weight_decay=0.01, use_ema=True, ema_momentum=0.5)
    return adam(0.01, epsilon=1e-3, gradient_accumulation_steps=steps, **options)


def compiled(optimizer, family="llama", loss=None, metrics=(), **fields):
    keras.utils.set_random_seed(1)
    model = tiny(family, **fields)
    model.compile(optimizer, loss or LabelSmoothedCrossentropy(), metrics=list(metrics))
    return model


ALIGNMENT = np.where(LABELS == 0, -1, np.arange(10)[::-1]).astype("int32")
CASES = {  # optimizer, compiled(...), fit(...), further inputs
    "fused": (sgd, dict(metrics=[Perplexity]), {}, {}),
    "logits": (paper_adam, dict(metrics=[MaskedAccuracy]), {}, {}),
    "weights of rows": (sgd, dict(metrics=[Perplexity]), dict(sample_weight=WEIGHTS), {}),
    "masked lm": (paper_adam, dict(family="bert"), {}, {}),
    "r_drop": (sgd, dict(loss=lambda: LabelSmoothedCrossentropy(r_drop=3.0)), {}, {}),
    "alignment": (
        sgd,
        dict(family="transformer", guided_alignment=0.5),
        {},
        {"alignment": ALIGNMENT},
    ),
    "preferences": (sgd, dict(loss=PreferenceLoss), dict(y=PREFERENCES), {}),
    "Keras's": (
        sgd,
        dict(loss=lambda: keras.losses.SparseCategoricalCrossentropy(True)),
        {},
        {},
    ),
}


def trained(case, steps):
    """The weights after two updates, the losses that `fit` and `evaluate` report, and metrics."""
    make, made, options, more = CASES[case]
    made = {name: x() if name == "loss" else x for name, x in made.items()}
    made["metrics"] = [metric() for metric in made.get("metrics", ())]
    model = compiled(make(steps), **made)
    inputs = inputs_of(made.get("family", "llama"), IDS, LABELS) | more
    options = dict(y=LABELS, batch_size=4 // (steps or 1), verbose=0) | options
    history = model.fit(inputs, shuffle=False, epochs=2, **options).history
    evaluated = [model.evaluate(inputs, return_dict=True, **options | dict(batch_size=4))]
    for batch_size in [2] if case == "preferences" else [2, 3]:  # the last of these has one row
        options["batch_size"] = batch_size
        evaluated.append(model.evaluate(inputs, return_dict=True, **options))
    return model.get_weights(), history, evaluated


@pytest.mark.parametrize("case", cases(CASES, "fused"))
def test_two_accumulated_batches_are_one_batch_of_both(case):
    (whole, whole_history, _), (halves, history, evaluated) = (trained(case, k) for k in (None, 2))
    for one, other in zip(whole, halves, strict=True):
        np.testing.assert_allclose(other, one, atol=1e-6)
    for name, values in whole_history.items():
        if name != "accuracy" and name != "perplexity":  # those are after the first half's step
            np.testing.assert_allclose(history[name], values, rtol=1e-5, err_msg=name)
    for other in evaluated[1:]:
        for name, value in evaluated[0].items():
            np.testing.assert_allclose(other[name], value, rtol=1e-5, err_msg=name)


@pytest.mark.once("made of parts that are tested under each backend")
@pytest.mark.parametrize("way", cases(["keras", "state"], "state"))
def test_training_resumes_between_two_batches_of_an_update(way, saved_and_loaded, tmp_path):
    batches = [({"token_ids": IDS[i : i + 2]}, LABELS[i : i + 2]) for i in (0, 2, 0, 2)]
    model = compiled(paper_adam(2))
    before = model.get_weights()
    model.train_on_batch(*batches[0])
    np.testing.assert_array_equal(model.get_weights()[0], before[0])
    if way == "keras":
        again = saved_and_loaded(model)
    else:
        write_state(tmp_path / "state", model, {"run": {}, "history": []})
        again = compiled(paper_adam(2))
        restore_state(tmp_path / "state", again)
    for each in (model, again):
        for batch in batches[1:]:
            each.train_on_batch(*batch)
    for one, other in zip(model.get_weights(), again.get_weights(), strict=True):
        np.testing.assert_allclose(other, one, atol=1e-7)
    assert np.abs(model.get_weights()[0] - before[0]).max() > 1e-3


def test_a_step_with_overflow_counts_no_batch():
    """A LossScaleOptimizer leaves out a batch with infinite gradients; its tokens too."""
    weights = []
    for overflows in (False, True):
        inner = sgd(2)
        model = compiled(keras.optimizers.LossScaleOptimizer(inner, initial_scale=2.0))
        for part in (slice(0, 2), slice(1, 3), slice(2, 4)):
            if part.start == 1 and not overflows:
                continue
            weight = np.full(2, np.inf if part.start == 1 else 1.0, "float32")
            model.train_on_batch({"token_ids": IDS[part]}, LABELS[part], sample_weight=weight)
        assert int(ops.convert_to_numpy(inner.iterations)) == 1
        weights.append(model.get_weights())
    for one, other in zip(*weights, strict=True):
        np.testing.assert_allclose(other, one, atol=1e-6)


def test_without_accumulation_the_optimizer_is_as_it_was():
    optimizer = adam(0.1)
    model = compiled(optimizer)
    optimizer.build(model.trainable_variables)
    assert len(optimizer.variables) == 2 + 2 * len(model.trainable_variables)


@pytest.mark.once("an error before the first step")
def test_class_weights_of_tokens_are_refused():
    """Keras takes labels (B, T) for one-hot rows, weighed by the place of the maximum."""
    model = compiled(sgd(None))
    message = "class_weight must be None for labels of tokens: .* sample_weight"
    with pytest.raises(ValueError, match=message):
        model.fit({"token_ids": IDS}, LABELS, class_weight={4: 2.0}, verbose=0)
    with pytest.raises(ValueError, match=message):
        model.train_on_batch({"token_ids": IDS}, LABELS, class_weight={4: 2.0})


@pytest.mark.once("made of parts that are tested under each backend")
def test_class_weights_of_texts_count():
    losses = []
    labels = np.array([0, 1, 1, 0], "int32")
    for options in (
        dict(class_weight={0: 0.5, 1: 2.0}),
        dict(sample_weight=np.where(labels, 2.0, 0.5)),
    ):
        loss = keras.losses.SparseCategoricalCrossentropy(True)
        model = compiled(sgd(None), "bert", loss, head="sequence_classification")
        losses.append(model.fit(IDS, labels, shuffle=False, verbose=0, **options).history["loss"])
    np.testing.assert_allclose(*losses, rtol=1e-6)


@pytest.mark.once("an error before the first step")
@pytest.mark.parametrize("metric", [Perplexity, MaskedAccuracy])
def test_labels_of_another_shape_and_no_labels_are_refused(metric):
    model = compiled(sgd(None), metrics=[metric()])
    for labels in (LABELS[..., None], LABELS[:, :5]):
        with pytest.raises(ValueError, match=r"shape of the labels must be \(4, 10\), .*, got \(4"):
            model.fit(IDS, labels, verbose=0)
    with pytest.raises(
        ValueError, match="y must be labels for the loss label_smoothed.*, got None"
    ):
        model.fit(IDS, verbose=0)


@pytest.mark.parametrize("loss", [LabelSmoothedCrossentropy, MaskedSquaredError])
def test_shares_of_replicas_add_up(loss, monkeypatch):
    """Two replicas have the same rows, so the share of each is half of the loss of one."""
    keras.utils.set_random_seed(1)
    is_of_numbers = loss is MaskedSquaredError
    inputs = keras.Input((10, 8))
    outputs = keras.layers.Dense(1 if is_of_numbers else 24)(inputs)
    model = steps.WeightedSteps(inputs, outputs)
    x = np.random.default_rng(0).random((4, 10, 8)).astype("float32")
    y = np.where(LABELS == 0, np.nan, LABELS) if is_of_numbers else LABELS
    alone = float(ops.convert_to_numpy(loss()(y, model(x))))
    for module in (losses, steps):
        monkeypatch.setattr(module, "replica_sum", lambda x: 2 * x)
    monkeypatch.setattr(steps, "num_replicas", lambda: 2)

    model.compile("sgd", loss())
    weight = model._weight(x, y, None)
    monkeypatch.setattr(model, "_record", lambda *_: None)
    share, _ = model._share(x, y, None, weight, training=False)
    assert float(ops.convert_to_numpy(share)) == pytest.approx(alone / 2, rel=1e-5)
