"""Label-smoothed cross-entropy against NumPy, PyTorch and its own gradient."""

import keras
import numpy as np
import pytest
import torch
from keras import ops
from sentence_transformers.sentence_transformer.losses import (
    MatryoshkaLoss,
    MultipleNegativesRankingLoss,
)

from keras_transformer.losses import (
    ContrastiveLoss,
    LabelSmoothedCrossentropy,
    MaskedSquaredError,
    PreferenceLoss,
    RewardLoss,
    alignment_loss,
    log_probabilities,
)
from keras_transformer.metrics import PreferenceAccuracy
from tests.tiny import tiny

BATCH, LENGTH, VOCABULARY = 3, 4, 7


def log_softmax(x):
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def smoothed(labels, label_smoothing):
    """q of section 5.4."""
    return (1 - label_smoothing) * np.eye(VOCABULARY)[labels] + label_smoothing / VOCABULARY


@pytest.fixture
def labels(rng):
    labels = rng.integers(1, VOCABULARY, (BATCH, LENGTH)).astype("int32")
    labels[0, 2:] = labels[2, 3:] = 0
    return labels


@pytest.fixture
def logits(rng):
    return (3 * rng.standard_normal((BATCH, LENGTH, VOCABULARY))).astype("float32")


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1, 0.9])
def test_each_token_is_the_cross_entropy_with_q(labels, logits, label_smoothing):
    expected = -(smoothed(labels, label_smoothing) * log_softmax(logits)).sum(-1)
    actual = ops.convert_to_numpy(LabelSmoothedCrossentropy(label_smoothing).call(labels, logits))
    np.testing.assert_allclose(actual, expected, atol=1e-5)


def test_one_token_by_hand():
    # p = (1/2, 1/4, 1/4), e = 0.3: q of label 1 is (0.1, 0.8, 0.1).
    logits, log2 = np.log([[[0.5, 0.25, 0.25]]]).astype("float32"), np.log(2)
    loss = LabelSmoothedCrossentropy(0.3)(np.array([[1]]), logits)
    assert float(loss) == pytest.approx(0.1 * log2 + 0.8 * 2 * log2 + 0.1 * 2 * log2, rel=1e-6)


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
@pytest.mark.parametrize("pad_id", [0, 3])
def test_equals_pytorchs(labels, logits, label_smoothing, pad_id):
    torch = pytest.importorskip("torch")
    theirs = torch.nn.CrossEntropyLoss(label_smoothing=label_smoothing, ignore_index=pad_id)
    expected = theirs(
        torch.from_numpy(logits.reshape(-1, VOCABULARY)),
        torch.from_numpy(labels.reshape(-1)).long(),
    )
    ours = LabelSmoothedCrossentropy(label_smoothing, pad_id)(labels, logits)
    assert float(ours) == pytest.approx(float(expected), rel=1e-5)


def test_logits_at_padding_change_nothing(labels, logits, rng):
    loss = LabelSmoothedCrossentropy()
    expected = float(loss(labels, logits))
    logits[labels == 0] = 50 * rng.standard_normal(logits[labels == 0].shape)
    assert float(loss(labels, logits)) == pytest.approx(expected, rel=1e-6)


def test_nothing_but_padding_is_zero(labels, logits):
    assert float(LabelSmoothedCrossentropy()(0 * labels, logits)) == 0


def test_labels_may_be_floats_as_keras_makes_them(labels, logits):
    loss = LabelSmoothedCrossentropy()
    assert float(loss(labels.astype("float32"), logits)) == float(loss(labels, logits))


def test_half_precision_logits_are_summed_in_float32(labels, logits):
    loss, half = LabelSmoothedCrossentropy(), ops.cast(logits, "bfloat16")
    value = loss(labels, half)
    assert keras.backend.standardize_dtype(value.dtype) == "float32"
    assert float(value) == pytest.approx(float(loss(labels, ops.cast(half, "float32"))), rel=1e-6)


def per_token(labels, logits, weight):
    value = -(smoothed(labels, 0.1) * log_softmax(logits)).sum(-1)
    weight = np.broadcast_to(weight, labels.shape) * (labels != 0)
    return (value * weight).sum() / weight.sum()


def test_sample_weight_a_token(labels, logits, rng):
    weight = rng.random(labels.shape).astype("float32")
    loss = LabelSmoothedCrossentropy()(labels, logits, sample_weight=weight)
    assert float(loss) == pytest.approx(per_token(labels, logits, weight), rel=1e-5)


@pytest.mark.parametrize("rows", [2, BATCH])
def test_sample_weight_a_sentence(labels, logits, rows):
    """Keras's form for `fit(sample_weight=...)`: (B,), where B may happen to equal T."""
    labels, logits = labels[:rows, :rows], logits[:rows, :rows]
    weight = np.array([1.0, 0.5, 0.0], "float32")[:rows]
    loss = LabelSmoothedCrossentropy()
    expected = per_token(labels, logits, weight[:, None])
    assert float(loss(labels, logits, weight[:, None])) == pytest.approx(expected, rel=1e-5)
    assert float(loss(labels, logits, weight)) == pytest.approx(expected, rel=1e-5)


@keras.saving.register_keras_serializable("test_losses")
class FreeLogits(keras.layers.Layer):
    """Logits that are weights: one step of plain gradient descent shows their gradient."""

    def build(self, _):
        self.logits = self.add_weight(
            shape=(BATCH, LENGTH, VOCABULARY), initializer="random_normal", name="logits"
        )

    def call(self, x):
        return self.logits + 0.0 * x[..., None]


def test_the_gradient_is_p_minus_q_and_zero_at_padding(labels):
    layer = FreeLogits()
    inputs = keras.Input(batch_shape=(BATCH, LENGTH))
    model = keras.Model(inputs, layer(inputs))
    model.compile(keras.optimizers.SGD(1.0), LabelSmoothedCrossentropy(0.1))
    before = ops.convert_to_numpy(layer.logits)
    loss = model.train_on_batch(np.zeros((BATCH, LENGTH), "float32"), labels)
    gradient = before - ops.convert_to_numpy(layer.logits)
    real = labels != 0
    expected = (np.exp(log_softmax(before)) - smoothed(labels, 0.1)) / real.sum()
    np.testing.assert_allclose(gradient[real], expected[real], atol=1e-6)
    assert (gradient[~real] == 0).all()
    assert float(loss) == pytest.approx(per_token(labels, before, 1.0), rel=1e-5)


def test_alignment_by_hand():
    weights = np.array([[[0.5, 0.25, 0.25], [0.1, 0.2, 0.7], [1.0, 0.0, 0.0]]], "float32")
    ids = np.array([[4, 5, 6]], "int32")
    found = alignment_loss(weights, np.array([[1, 2, -1]], "int32"), ids > 0)
    assert float(found) == pytest.approx(-(np.log(0.25) + np.log(0.7)) / 3)
    found = alignment_loss(weights, np.array([[1, 2, -1]], "int32"), ids < 6)  # the last is padding
    assert float(found) == pytest.approx(-(np.log(0.25) + np.log(0.7)) / 2)
    assert float(alignment_loss(weights, np.full((1, 3), -1, "int32"), ids > 0)) == 0


def test_serialization():
    loss = LabelSmoothedCrossentropy(0.2, pad_id=4, r_drop=2.0, name="mine")
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(loss))
    assert isinstance(again, LabelSmoothedCrossentropy)
    assert again.get_config() == loss.get_config()
    assert (again.label_smoothing, again.pad_id, again.name) == (0.2, 4, "mine")
    assert again.r_drop == 2.0


@pytest.mark.parametrize("label_smoothing", [-0.1, 1.0])
def test_label_smoothing_out_of_range(label_smoothing):
    message = rf"label_smoothing must be in \[0, 1\), got {label_smoothing}"
    with pytest.raises(ValueError, match=message):
        LabelSmoothedCrossentropy(label_smoothing)
    with pytest.raises(ValueError, match="r_drop must be at least 0, got -1"):
        LabelSmoothedCrossentropy(r_drop=-1)


@pytest.fixture
def pairs(rng):
    """Logits, labels with -1 for prompts and padding, and reference log-probabilities."""
    logits = rng.standard_normal((6, 4, VOCABULARY)).astype("float32")
    labels = rng.integers(0, VOCABULARY, (6, 4))
    labels[1, 2:] = labels[2, :3] = labels[4:] = -1  # the last pair only fills the batch
    reference = rng.standard_normal((6, 1)) - 6
    return logits, np.concatenate([reference, labels], axis=1).astype("float32")


def by_hand(kind, logits, y_true, beta):
    """The loss by its formula, pair by pair."""
    losses, likelihoods = [], []
    for pair in range(2):
        rewards = []
        for row in (2 * pair, 2 * pair + 1):
            labels = y_true[row, 1:].astype(int)
            real = labels >= 0
            log_p = log_softmax(logits[row])[real, labels[real]]
            likelihoods.append(log_p)
            reward = log_p.sum() - (0 if kind == "cpo" else y_true[row, 0])
            rewards.append(reward / real.sum() if kind == "ipo" else reward)
        h = rewards[0] - rewards[1]
        losses.append(
            {
                "ipo": (h - 1 / (2 * beta)) ** 2,
                "hinge": max(0, 1 - beta * h),
            }.get(kind, np.log(1 + np.exp(-beta * h)))
        )
    return np.mean(losses) - (np.concatenate(likelihoods[::2]).mean() if kind == "cpo" else 0)


@pytest.mark.parametrize("kind", ["sigmoid", "ipo", "hinge", "cpo"])
def test_preferences(pairs, kind):
    logits, y_true = pairs
    loss = PreferenceLoss(kind, beta=0.3)
    assert float(loss(y_true, logits)) == pytest.approx(
        by_hand(kind, logits, y_true, 0.3), rel=1e-5
    )
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(loss))
    assert again.get_config() == loss.get_config()


def test_bad_preferences(pairs):
    with pytest.raises(ValueError, match="kind must be one of .*'cpo'.*, got 'dpo'"):
        PreferenceLoss("dpo")
    with pytest.raises(ValueError, match="beta must be above 0, got 0"):
        PreferenceLoss(beta=0)
    with pytest.raises(ValueError, match="sample_weight must be None"):
        PreferenceLoss()(pairs[1], pairs[0], sample_weight=np.ones(6))
    with pytest.raises(ValueError, match="sample_weight must be None"):
        RewardLoss()(np.zeros(4), np.ones((4, 1)), sample_weight=np.ones(4))


def test_rewards():
    scores = np.array([[1.0], [0.0], [-1.0], [2.0]], "float32")
    expected = np.log(1 + np.exp([-1.0, 3.0])).mean()
    assert float(RewardLoss()(np.zeros(4), scores)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.once("made of parts that are tested under each backend")
def test_preferences_train_a_model(rng):
    """In plain `fit`, the preferred answers become more probable than the others."""
    model = tiny("llama")
    ids, y_true = rng.integers(4, 24, (8, 6)).astype("int32"), np.full((8, 7), -1, "float32")
    y_true[:, 1:6] = ids[:, 1:]
    y_true[:, 0] = ops.convert_to_numpy(log_probabilities(y_true, model({"token_ids": ids}))[0])
    model.compile(keras.optimizers.Adam(0.01), PreferenceLoss(), metrics=[PreferenceAccuracy()])
    fit = dict(batch_size=8, epochs=10, shuffle=False, verbose=0)
    history = model.fit({"token_ids": ids}, y_true, **fit).history
    assert history["loss"][0] == pytest.approx(np.log(2), rel=1e-5)
    assert history["loss"][-1] < 0.5 and history["accuracy"][-1] == 1


def test_squared_error_of_the_numbers_there_are():
    loss = MaskedSquaredError()
    labels = np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, -1.0]], "float32")
    found = np.array([[[2.0], [9.0], [3.0]], [[9.0], [9.0], [1.0]]], "float32")
    assert float(loss(labels, found)) == pytest.approx((1 + 0 + 4) / 3)
    assert float(loss(labels, found, np.array([1.0, 0.0]))) == pytest.approx(1 / 2)
    assert float(loss.batch_weight(labels)) == 3
    assert float(loss(np.full_like(labels, np.nan), found)) == 0
    with pytest.raises(ValueError, match="the shape of the labels"):
        loss(labels[:, :2], found)
    assert MaskedSquaredError.from_config(loss.get_config()).name == loss.name


class Vectors(torch.nn.Module):
    """A model of sentence-transformers that has its vectors already."""

    def get_embedding_dimension(self):
        return 8

    def forward(self, features):
        return {"sentence_embedding": features["x"]}


@pytest.mark.parametrize("sizes", [(), (3, 8)])
def test_pairs_of_texts_as_in_sentence_transformers(rng, sizes):
    vectors = rng.standard_normal((10, 8)).astype("float32")
    model = Vectors()
    directions = dict(directions=("query_to_doc", "doc_to_query"), partition_mode="per_direction")
    theirs = MultipleNegativesRankingLoss(model, scale=10.0, **directions)
    theirs = MatryoshkaLoss(model, theirs, sizes) if sizes else theirs
    sides = [{"x": torch.tensor(vectors[side::2])} for side in (0, 1)]
    loss = ContrastiveLoss(0.1, sizes)
    found = float(loss(np.arange(10, dtype="int32"), vectors))
    assert found == pytest.approx(float(theirs(sides, None)), rel=1e-5)
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(loss))
    assert again.get_config() == loss.get_config()
    assert float(loss.batch_weight(np.arange(10))) == 5


def test_equal_texts_are_no_negatives(rng):
    """Pair 2 repeats a text of pair 0: neither is among the others that the other one meets."""
    vectors = rng.standard_normal((6, 4)).astype("float32")
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    s = unit[0::2] @ unit[1::2].T
    s[0, 2] = s[2, 0] = -np.inf
    log_sums = sum(np.log(np.exp(s).sum(axis)) for axis in (0, 1))
    labels = np.array([0, 1, 2, 3, 0, 4])
    for y_true in (labels, labels[[1, 0, 3, 2, 5, 4]]):  # in the other order: on the other side
        x = vectors if y_true is labels else vectors.reshape(3, 2, 4)[:, ::-1].reshape(6, 4)
        expected = (log_sums / 2 - np.diag(s)).mean()
        assert float(ContrastiveLoss(1.0)(y_true, x)) == pytest.approx(expected, rel=1e-5)


def test_bad_pairs_of_texts():
    with pytest.raises(ValueError, match="temperature must be above 0, got 0"):
        ContrastiveLoss(0)
    with pytest.raises(ValueError, match="sizes must be whole numbers of at least 1, got .0,."):
        ContrastiveLoss(sizes=(0,))
    with pytest.raises(ValueError, match="sizes must be at most 4, got .8,."):
        ContrastiveLoss(sizes=(8,))(np.arange(2), np.ones((2, 4), "float32"))
