"""With rematerialization a model trains to the same numbers, and stores less."""

from __future__ import annotations

import weakref

import keras
import numpy as np
import pytest

from keras_transformer.backend import BACKEND
from keras_transformer.layers import Decoder, Encoder, FeedForward
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.metrics import Perplexity
from keras_transformer.models import enable_lora, enable_remat
from tests.backends import cases
from tests.tiny import inputs_of, tiny

RUNS = {
    "packed": ("transformer", dict(packed=True)),
    "accumulated": ("transformer", dict(dtype="mixed_bfloat16", accumulation=2)),
    "lora": ("transformer", dict(lora=2)),
    "t5": ("t5", dict()),
    "llama": ("llama", dict(dtype="mixed_bfloat16")),
    "gemma": ("gemma", dict(window=3, window_layers=(0,), local_theta=50.0, logit_cap=3.0)),
    "deberta": ("deberta", dict()),
    "albert": ("bert", dict(shared_blocks=True)),
}


def trained(family, ids, labels, remat, packed=False, accumulation=None, lora=0, **options):
    """The losses of each epoch, and all values of the trained model."""
    keras.utils.set_random_seed(1)
    model = tiny(family, num_layers=2, dropout=0.3, **options)
    if lora:
        enable_lora(model, lora)
    if remat:
        enable_remat(model)
    inputs = inputs_of(family, ids, labels)
    if packed:
        segments = np.array([[1, 1, 1, 1, 2, 2, 2]] * len(ids), "int32")
        inputs |= dict.fromkeys(("source_segments", "target_segments"), segments)
    # Not Adam: where a gradient is nothing but rounding it makes full steps of it.
    sgd = keras.optimizers.SGD(0.5, gradient_accumulation_steps=accumulation)
    model.compile(sgd, LabelSmoothedCrossentropy(), metrics=[Perplexity()])
    options = dict(epochs=2, batch_size=3, shuffle=False, verbose=0)
    losses = model.fit(inputs, labels, **options).history["loss"]
    # Variables include the states of seed generators, which advance once a step.
    return losses, [keras.ops.convert_to_numpy(x).astype("float64") for x in model.variables]


@pytest.mark.parametrize("run", cases(RUNS, "t5"))
def test_training_is_the_same(rng, run):
    ids, labels = rng.integers(4, 13, (2, 6, 7), dtype="int32")
    labels[::3, 5:] = 0
    family, options = RUNS[run]
    before, again = (trained(family, ids, labels, remat, **options) for remat in (False, True))
    assert abs(before[0][0] - before[0][1]) > 1e-3
    np.testing.assert_allclose(again[0], before[0], rtol=1e-6)
    for value, expected in zip(again[1], before[1], strict=True):
        np.testing.assert_allclose(value, expected, atol=1e-6, rtol=1e-6)


def stored(encoder, x):
    """How many values the backward pass of JAX gets from the forward pass."""
    import jax

    trained = [variable.value for variable in encoder.trainable_variables]
    others = [variable.value for variable in encoder.non_trainable_variables]

    def loss(trained):
        y, _ = encoder.stateless_call(trained, others, x, training=True)
        return (y**2).sum()

    _, backward = jax.vjp(loss, trained)
    return sum(value.size for value in jax.tree_util.tree_leaves(backward))


@pytest.mark.skipif(BACKEND != "jax", reason="JAX shows what it stores")
def test_the_backward_pass_gets_less():
    x = np.ones((8, 32, 16), "float32")
    encoder = Encoder(3, 2, 64, dropout=0.1)
    encoder.build(x.shape)
    before = stored(encoder, x)
    enable_remat(encoder)
    assert stored(encoder, x) < before / 4


@pytest.mark.skipif(BACKEND != "torch", reason="its tape holds objects of Python")
@pytest.mark.parametrize("stack", [Encoder, Decoder])
def test_the_tape_holds_no_results_inside_blocks(stack, monkeypatch):
    inside, call = [], FeedForward.call

    def recorded(self, x, training=False):
        inside.append(weakref.ref(x))
        return call(self, x)

    monkeypatch.setattr(FeedForward, "call", recorded)
    x = keras.ops.ones((2, 5, 8))
    layer = stack(3, 2, 16, dropout=0.1, **({} if stack is Encoder else {"cross_attention": False}))
    layer.build(x.shape)
    for alive in (3, 0):
        inside.clear()
        result = layer(x, training=True)
        assert len(inside) == 3
        assert sum(each() is not None for each in inside) == alive
        del result
        enable_remat(layer)


@pytest.mark.skipif(BACKEND != "tensorflow", reason="its graph shows what gradients read")
def test_gradients_read_no_result_of_the_forward_pass():
    import tensorflow as tf

    layer = Encoder(3, 2, 16, dropout=0.1)
    layer.build((2, 5, 8))

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(x, training=True))
        return tape.gradient(loss, layer.trainable_variables[0].value)

    def stored():
        """Whether a gradient reads the output of each ReLU, in the order of computation."""
        graph = tf.function(step, autograph=False).get_concrete_function(tf.ones((2, 5, 8))).graph
        relus = [operation for operation in graph.get_operations() if operation.type == "Relu"]
        return [any(x.type == "ReluGrad" for x in relu.outputs[0].consumers()) for relu in relus]

    assert stored() == [True] * 3
    enable_remat(layer)
    assert stored() == [False] * 3 + [True] * 3


def test_only_training_changes(tiny_transformer):
    ids = np.array([[4, 5, 6, 3], [7, 8, 3, 0]], "int32")
    inputs = {"source_ids": ids, "target_ids": ids}
    model = tiny_transformer()
    before, config = keras.ops.convert_to_numpy(model(inputs)), model.get_config()
    enable_remat(model)
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(model(inputs)), before)
    assert model.get_config() == config
    assert not type(model).from_config(config).encoder.remat


def test_a_loss_of_layers_is_refused():
    with pytest.raises(ValueError, match="balance_loss must be 0 for training with remat, got 0.1"):
        enable_remat(tiny("mixture"))


def test_a_model_without_stacks():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)], name="plain")
    with pytest.raises(ValueError, match="must contain an Encoder or a Decoder, got 'plain'"):
        enable_remat(model)
