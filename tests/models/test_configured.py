"""Training on hidden states is training on logits, only faster."""

from __future__ import annotations

import itertools
import warnings

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.config import TransformerConfig
from keras_transformer.layers import Encoder, PositionalEmbedding
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.metrics import MaskedAccuracy, Perplexity
from keras_transformer.models import (
    BERT,
    ESM,
    GPT,
    T5,
    BERTConfig,
    ESMConfig,
    GPTConfig,
    LLaMA,
    LLaMAConfig,
    Speech,
    SpeechConfig,
    T5Config,
    Transformer,
    ViT,
    ViTConfig,
)
from keras_transformer.optimizers import WarmupSchedule, adam
from tests.backends import cases

TOLERANCE = {"float32": 2e-4, "mixed_bfloat16": 5e-2}


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
        ("float32", True),
        ("mixed_bfloat16", False),
    ),
)
def test_trains_and_evaluates_as_on_logits(tiny_transformer, pairs, dtype, tie_output):
    results, weights, fused = [], [], []
    for metrics in ([Perplexity()], [Perplexity(), MaskedAccuracy()]):
        model = tiny_transformer(dropout=0.0, tie_output=tie_output, dtype=dtype)
        results.append(train(model, pairs, metrics))
        weights.append(model.get_weights())
        fused.append(model._fused)
    assert fused == [True, False]  # accuracy needs the logits
    (history, evaluated), (history_of_logits, evaluated_on_logits) = results
    tolerance = TOLERANCE[dtype]
    for name, measure in (("loss", np.asarray), ("perplexity", np.log)):
        ours, theirs = measure(history[name]), measure(history_of_logits[name])
        np.testing.assert_allclose(ours, theirs, rtol=tolerance)
        ours, theirs = measure(evaluated[name]), measure(evaluated_on_logits[name])
        np.testing.assert_allclose(ours, theirs, rtol=tolerance)
    for ours, theirs in zip(*weights, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=tolerance)


@pytest.mark.parametrize(
    "loss", ["sparse_categorical_crossentropy", keras.losses.SparseCategoricalCrossentropy(True)]
)
def test_any_other_loss_sees_logits(tiny_transformer, pairs, loss):
    model = tiny_transformer()
    model.compile("sgd", loss)
    inputs, labels, _ = pairs
    model.fit(inputs, labels, verbose=0)
    assert not model._fused


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


def test_a_call_gives_logits_whatever_was_compiled(tiny_transformer, pairs):
    model = tiny_transformer()
    train(model, pairs, [Perplexity()])
    assert tuple(model(pairs[0], training=True).shape) == (12, 7, 13)
    assert model.predict(pairs[0], verbose=0).shape == (12, 7, 13)


def test_lora_and_quantized_outputs_are_not_passed_by(tiny_transformer, pairs):
    model = tiny_transformer(tie_output=False)
    model.output_layer.enable_lora(2)
    seen = []
    original = model.output_layer.call
    model.output_layer.call = lambda *a, **k: seen.append(1) or original(*a, **k)
    train(model, pairs, [Perplexity()])
    assert seen


SIZES = dict(d_model=8, d_ff=8, num_heads=2, dropout=0.0)
STACKS = dict(num_encoder_layers=1, num_decoder_layers=1)
IDS = np.array([[4, 5, 6, 7], [8, 9, 10, 0], [5, 7, 0, 0], [11, 12, 4, 5]], "int32")
PAIR = {"source_ids": IDS, "target_ids": IDS[:, ::-1].copy()}
FRAMES = np.random.default_rng(0).standard_normal((4, 6, 5)).astype("float32")


def users_own():
    ids = keras.Input((None,), dtype="int32")
    embedding = PositionalEmbedding(13, 8)
    x = Encoder(1, num_heads=2, d_ff=8, dropout=0.0)(embedding(ids))
    return keras.Model(ids, embedding(x, reverse=True))


def image_model():
    config = ViTConfig(13, image_size=4, patch_size=2, num_channels=1, num_layers=1, **SIZES)
    return ViT(config)


MODELS = {
    "transformer": (lambda: Transformer(TransformerConfig(13, 13, **SIZES, **STACKS)), PAIR),
    "users_own": (users_own, IDS),
    "t5": (lambda: T5(T5Config(13, head_dim=4, **SIZES, **STACKS)), PAIR),
    "speech": (
        lambda: Speech(SpeechConfig(13, num_mels=5, max_frames=6, **SIZES, **STACKS)),
        {"features": FRAMES, "target_ids": IDS},
    ),
    "gpt": (lambda: GPT(GPTConfig(13, num_layers=1, **SIZES)), {"token_ids": IDS}),
    "llama": (lambda: LLaMA(LLaMAConfig(13, num_layers=1, **SIZES)), {"token_ids": IDS}),
    "bert": (lambda: BERT(BERTConfig(13, num_layers=1, **SIZES)), {"token_ids": IDS}),
    "esm": (lambda: ESM(ESMConfig(33, num_layers=1, **SIZES)), {"token_ids": IDS}),
    "vit": (image_model, FRAMES[:, :4, :4, None]),
}
# What is loaded is written on no backend: one model of each kind is enough on the others.
KINDS = MODELS if keras.backend.backend() == "torch" else ("transformer", "users_own")


@pytest.mark.parametrize("kind", KINDS)
def test_a_loaded_model_trains_on_as_if_it_had_not_been_saved(kind, saved_and_loaded):
    make, inputs = MODELS[kind]
    model = make()
    labels, loss, metric = IDS, LabelSmoothedCrossentropy(), Perplexity()
    if kind == "vit":
        labels = IDS[:, 0]
        loss, metric = keras.losses.SparseCategoricalCrossentropy(from_logits=True), "accuracy"
    model.compile(adam(WarmupSchedule(0.01, 3)), loss, metrics=[metric])
    options = dict(batch_size=2, shuffle=False, verbose=0)
    model.fit(inputs, labels, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        loaded = saved_and_loaded(model)
    histories = [x.fit(inputs, labels, epochs=2, **options).history for x in (model, loaded)]
    assert histories[0].keys() == histories[1].keys()
    for name, values in histories[0].items():
        np.testing.assert_allclose(histories[1][name], values, rtol=1e-4, err_msg=name)
    assert int(loaded.optimizer.iterations) == 6


def test_a_loss_that_cannot_be_found_leaves_the_model_loaded(tiny_transformer, saved_and_loaded):
    def loss(y_true, y_pred):
        return ops.mean(y_pred)

    model = tiny_transformer()
    model.compile("sgd", loss)
    with pytest.warns(UserWarning, match="is not compiled, call `compile`: .*loss"):
        loaded = saved_and_loaded(model)
    for one, other in zip(model.get_weights(), loaded.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


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
