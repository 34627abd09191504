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
@pytest.mark.parametrize("kind", cases(MODELS, "transformer", "users_own"))
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
