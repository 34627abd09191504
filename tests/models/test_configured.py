"""A model that was saved and loaded is the model that was saved."""

from __future__ import annotations

import warnings

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.config import TransformerConfig
from keras_transformer.layers import Encoder, PositionalEmbedding
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.metrics import Perplexity
from keras_transformer.models import (
    BERT,
    ESM,
    GPT,
    T5,
    BERTConfig,
    ESMConfig,
    Gemma,
    GemmaConfig,
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
from keras_transformer.models.configured import _serialized
from keras_transformer.optimizers import WarmupSchedule, adam
from tests.backends import cases

SIZES = dict(d_model=8, d_ff=8, num_heads=2, dropout=0.0)
STACKS = dict(num_encoder_layers=1, num_decoder_layers=1)
IDS = np.array([[4, 5, 6, 7], [8, 9, 10, 0], [5, 7, 0, 0], [11, 12, 4, 5]], "int32")
PAIR = {"source_ids": IDS, "target_ids": IDS[:, ::-1].copy()}
FRAMES = np.random.default_rng(0).standard_normal((4, 6, 5)).astype("float32")
GEMMA = dict(num_kv_heads=1, head_dim=4, window=2, attention_cap=2.0, logit_cap=3.0, qk_norm=True)


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
    "gemma": (lambda: Gemma(GemmaConfig(13, num_layers=1, **SIZES, **GEMMA)), {"token_ids": IDS}),
    "bert": (lambda: BERT(BERTConfig(13, num_layers=1, **SIZES)), {"token_ids": IDS}),
    "esm": (lambda: ESM(ESMConfig(33, num_layers=1, **SIZES)), {"token_ids": IDS}),
    "vit": (image_model, FRAMES[:, :4, :4, None]),
}


# What is loaded is written on no backend: one of each kind, ours and the users', is enough.
@pytest.mark.parametrize("kind", cases(MODELS, "transformer"))
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


@pytest.mark.once("a name in a file")
def test_a_loss_that_cannot_be_found_leaves_the_model_loaded(tiny_transformer, saved_and_loaded):
    def loss(y_true, y_pred):
        return ops.mean(y_pred)

    model = tiny_transformer()
    model.compile("sgd", loss)
    with pytest.warns(UserWarning, match="is not compiled, call `compile`: .*loss"):
        loaded = saved_and_loaded(model)
    for one, other in zip(model.get_weights(), loaded.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


ORDERED = {  # inputs as a user of a functional model of Keras gives them
    "gpt": IDS,
    "bert": IDS,
    "transformer": list(PAIR.values()),
    "speech": (FRAMES, IDS),
}


@pytest.mark.parametrize("kind", cases(ORDERED, "gpt"))
def test_inputs_in_their_order_are_inputs_by_name(kind):
    """As arrays in `fit` and the others, which read them by name without computing logits."""
    make, named = MODELS[kind]
    results = []
    for inputs in (named, ORDERED[kind]):
        keras.utils.set_random_seed(0)
        model = make()
        model.compile(keras.optimizers.SGD(0.1), LabelSmoothedCrossentropy())
        options = dict(batch_size=2, verbose=0)
        losses = model.fit(inputs, IDS, shuffle=False, **options).history["loss"]
        losses += [model.evaluate(inputs, IDS, **options)]
        losses += [model.train_on_batch(inputs, IDS), model.test_on_batch(inputs, IDS)]
        logits = [model.predict(inputs, **options), ops.convert_to_numpy(model(inputs))]
        results.append((losses, logits))
    (losses, logits), (found_losses, found_logits) = results
    np.testing.assert_allclose(found_losses, losses, rtol=1e-5)
    np.testing.assert_allclose(found_logits, logits, atol=1e-5)


class Rows(keras.utils.PyDataset):
    """Batches as tuples (inputs, labels, weights)."""

    def __len__(self):
        return 2

    def __getitem__(self, index):
        rows = slice(2 * index, 2 * index + 2)
        return IDS[rows], IDS[rows], np.ones(2, "float32")


def of_tensorflow(*arrays):
    return pytest.importorskip("tensorflow").data.Dataset.from_tensor_slices(arrays).batch(2)


def of_torch(*arrays):
    data = pytest.importorskip("torch").utils.data
    tensors = [ops.convert_to_numpy(x) for x in arrays]
    return data.DataLoader(list(zip(*tensors, strict=True)), batch_size=2)


DATASETS = {
    "rows": Rows,
    "generator": lambda: (Rows()[i][:2] for i in range(2)),
    "DataLoader": lambda: of_torch(IDS, IDS),
    "tf.data": lambda: of_tensorflow(IDS, IDS, np.ones(4, "float32")),
}
# A backend with the data sets of its own; a process that imports two takes long to start.
OWN = {"torch": "DataLoader", "tensorflow": "tf.data", "jax": "rows"}[keras.backend.backend()]


@pytest.mark.parametrize("kind", sorted({"rows", "generator", OWN} & {*cases(DATASETS, OWN)}))
def test_bare_inputs_come_from_any_data_set(kind):
    model = MODELS["gpt"][0]()
    model.compile(keras.optimizers.SGD(0.0), LabelSmoothedCrossentropy(), metrics=[Perplexity()])
    expected = model.evaluate(IDS, IDS, batch_size=2, verbose=0)
    found = model.fit(DATASETS[kind](), verbose=0).history
    np.testing.assert_allclose([found["loss"][0], found["perplexity"][0]], expected, rtol=1e-5)
    np.testing.assert_allclose(model.evaluate(DATASETS[kind](), verbose=0), expected, rtol=1e-5)
    assert model.predict(DATASETS[kind](), verbose=0).shape == (4, 4, 13)


@pytest.mark.once("an error before the first step")
def test_missing_and_unknown_inputs_are_named():
    model = MODELS["transformer"][0]()
    accepted = "inputs of Transformer must be source_ids, target_ids and optionally alignment, .*"
    for inputs, got in (
        (IDS, "source_ids"),
        ({"source_ids": IDS}, "source_ids"),
        (PAIR | {"attention_mask": IDS}, "source_ids, target_ids, attention_mask"),
    ):
        with pytest.raises(ValueError, match=f"{accepted}, got {got}$"):
            model(inputs)
        model.compile("sgd", LabelSmoothedCrossentropy())
        with pytest.raises(ValueError, match=f"{accepted}, got {got}"):
            model.fit(inputs, IDS, verbose=0)
    with pytest.raises(ValueError, match="number of inputs must be at most 2: .*, got 3"):
        model([IDS, IDS, IDS])


@pytest.mark.parametrize("name", ["float32", "mixed_bfloat16", "int8_from_float32"])
def test_a_dtype_policy_is_serialized_as_keras_does(name):
    policy = keras.dtype_policies.get(name)
    assert _serialized(policy) == keras.dtype_policies.serialize(policy)
