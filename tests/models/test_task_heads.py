"""Heads on encoders: what each gives, saved and loaded, trained, changed for another."""

import dataclasses
import itertools

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer import adam
from keras_transformer.models import BERT, ESM, BERTConfig, ESMConfig
from keras_transformer.models.task_heads import HEADS, Transform
from tests.backends import cases

SIZES = dict(vocab_size=23, d_model=8, d_ff=12, num_layers=1, num_heads=2, dropout=0.0)
SIZES |= dict(max_length=9, pad_id=0, labels=("x", "y", "z"))
MODELS = {"bert": (BERT, BERTConfig(**SIZES)), "esm": (ESM, ESMConfig(**SIZES, mask_id=3))}
IDS = np.array([[5, 6, 7, 8, 9, 10], [9, 4, 12, 0, 0, 0], [5, 6, 0, 0, 0, 0]], "int32")
SHAPES = {
    "hidden": (3, 6, 8),
    "pooled": {"hidden": (3, 6, 8), "pooled": (3, 8)},
    "masked_lm": (3, 6, 23),
    "next_sentence": (3, 2),
    "pretraining": {"masked_lm": (3, 6, 23), "next_sentence": (3, 2)},
    "replaced_tokens": (3, 6),
    "sequence_classification": (3, 3),
    "token_classification": (3, 6, 3),
    "span_extraction": {"start": (3, 6), "end": (3, 6)},
    "sentence_embedding": (3, 8),
}


def outputs(model, ids=IDS):
    return keras.tree.map_structure(ops.convert_to_numpy, model({"token_ids": ids}))


def build(head, kind="bert", randomize=None, **changes):
    family, config = MODELS[kind]
    model = family(dataclasses.replace(config, head=head, **changes))
    return randomize(model) if randomize else model


@pytest.mark.parametrize(
    "head,kind",
    cases(
        [*itertools.product(HEADS, MODELS)],
        ("pretraining", "bert"),
        ("span_extraction", "bert"),
        ("sequence_classification", "esm"),
    ),
)
def test_shapes_saved_and_loaded(head, kind, randomize, tmp_path):
    model = build(head, kind, randomize)
    found = outputs(model)
    assert keras.tree.map_structure(np.shape, found) == SHAPES[head]
    model.save(tmp_path / "model.keras")
    again = outputs(keras.saving.load_model(tmp_path / "model.keras"))
    keras.tree.map_structure(
        lambda one, other: np.testing.assert_allclose(one, other, atol=1e-6), again, found
    )


@pytest.mark.parametrize("head", cases(HEADS, "sentence_embedding"))
def test_padding_changes_nothing(head, randomize):
    model = build(head, randomize=randomize)
    longer, is_token = np.pad(IDS, ((0, 0), (0, 3))), IDS != 0
    for one, other in zip(
        keras.tree.flatten(outputs(model, longer)), keras.tree.flatten(outputs(model)), strict=True
    ):
        if one.shape[:2] == longer.shape:
            one, other = one[:, :6][is_token], other[is_token]
        np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.once("made of parts that are tested under each backend")
def test_by_hand(randomize):
    """Each head in NumPy, on the hidden states of the same encoder."""
    bare = build("pretraining", randomize=randomize)
    weights = {w.path: ops.convert_to_numpy(w) for w in bare.weights}
    x = ops.convert_to_numpy(bare.encode({"token_ids": ops.convert_to_tensor(IDS)}))

    def dense(x, name):
        return x @ weights[f"{name}/kernel"] + weights[f"{name}/bias"]

    pooled = np.tanh(dense(x[:, 0], "pooler"))
    np.testing.assert_allclose(outputs(bare.with_head("pooled"))["pooled"], pooled, atol=1e-5)
    found = outputs(bare)
    np.testing.assert_allclose(found["next_sentence"], dense(pooled, "next_sentence"), atol=1e-5)
    mean = np.stack([x[0].mean(0), x[1, :3].mean(0), x[2, :2].mean(0)])
    embedded = outputs(bare.with_head("sentence_embedding"))
    np.testing.assert_allclose(embedded, mean, atol=1e-5)
    wide = dense(x, "transform/dense")
    wide = ops.convert_to_numpy(keras.activations.gelu(wide, approximate=False))
    centred = wide - wide.mean(-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
    scaled = scaled * weights["transform/norm/gamma"] + weights["transform/norm/beta"]
    logits = scaled @ weights["embedding/tokens/embeddings"].T + weights["output_bias/bias"]
    np.testing.assert_allclose(found["masked_lm"], logits, atol=1e-4)


@pytest.mark.once("made of parts that are tested under each backend")
def test_activation_of_the_pooler(randomize):
    inputs = {"token_ids": ops.convert_to_tensor(IDS)}
    for name, activation in (("relu", ops.relu), ("tanh", ops.tanh)):
        model = build("pooled", randomize=randomize, pooler=name)
        first = model.encode(inputs)[:, 0]
        pooler = model.get_layer("pooler")
        expected = activation(first @ pooler.kernel + pooler.bias)
        np.testing.assert_allclose(
            outputs(model)["pooled"], ops.convert_to_numpy(expected), atol=1e-5
        )
    with pytest.raises(ValueError, match="pooler must be one of .*, got 'softmax'"):
        build("pooled", pooler="softmax")


def test_transform_is_a_layer():
    layer = Transform(5, "gelu_tanh", 1e-3)
    assert tuple(layer(np.ones((2, 3, 4), "float32")).shape) == (2, 3, 5)
    assert Transform.from_config(layer.get_config()).options == layer.options


def test_another_head_on_the_same_encoder(randomize):
    model = build("pretraining", randomize=randomize)
    classifier = model.with_head("sequence_classification", labels=("a", "b"))
    assert classifier.config.labels == ("a", "b")
    ours = {w.path: ops.convert_to_numpy(w) for w in model.weights}
    shared = [w for w in classifier.weights if w.path in ours]
    assert {"pooler/kernel", "embedding/types/embeddings"} < {w.path for w in shared}
    for weight in shared:
        np.testing.assert_array_equal(ops.convert_to_numpy(weight), ours[weight.path])
    np.testing.assert_allclose(
        outputs(model.with_head("masked_lm")), outputs(model)["masked_lm"], atol=1e-5
    )
    again = classifier.with_head("token_classification")  # its classifier is not that of texts
    one, other = (model.get_layer("classifier").kernel for model in (classifier, again))
    assert np.abs(ops.convert_to_numpy(one) - ops.convert_to_numpy(other)).max() > 1e-3
    with pytest.raises(ValueError, match="head must be one of .*, got 'regression'"):
        model.with_head("regression")


def test_dropout_before_a_classifier():
    model = build("token_classification", head_dropout=0.5)
    one, other = (ops.convert_to_numpy(model({"token_ids": IDS}, training=True)) for _ in range(2))
    assert np.abs(one - other).max() > 1e-3


LABELS = {
    "sequence_classification": np.array([0, 2, 1]),
    "token_classification": IDS % 3,
    "span_extraction": {"start": np.array([0, 2, 1]), "end": np.array([1, 2, 0])},
    "next_sentence": np.array([0, 1, 1]),
    "pretraining": {"masked_lm": IDS, "next_sentence": np.array([0, 1, 0])},
}


@pytest.mark.parametrize("head", cases(LABELS, "pretraining"))
def test_trains(head):
    keras.utils.set_random_seed(0)
    model = build(head)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    labels = LABELS[head]
    losses = {name: loss for name in labels} if isinstance(labels, dict) else loss
    model.compile(adam(2e-2), losses)
    history = model.fit({"token_ids": IDS}, labels, epochs=15, verbose=0).history["loss"]
    assert history[-1] < 0.7 * history[0]
