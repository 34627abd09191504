"""`model.summary()` shows what a model is made of."""

import re

import keras
import numpy as np
import pytest

from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.models import TextToSpeech, TextToSpeechConfig
from keras_transformer.optimizers import adam
from tests.backends import cases
from tests.models.test_configured import MODELS
from tests.tiny import tiny

SPEECH = dict(num_mels=4, d_model=8, num_heads=2, num_encoder_layers=1, num_decoder_layers=1)
FAMILIES = {
    **{kind: make for kind, (make, _) in MODELS.items() if kind != "users_own"},
    "text to speech": lambda: TextToSpeech(TextToSpeechConfig(24, **SPEECH)),
}


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")


def summary(model, **options):
    lines = []
    model.summary(line_length=120, print_fn=lambda text: lines.extend(text.splitlines()), **options)
    return "\n".join(lines)


def rows(text):
    return re.findall(r"^│ +(└? ?\w+) \((\w+)\) +│ ([^│]*?) +│ +([\d,]+)", text, re.M)


def test_the_rows_of_an_encoder_decoder():
    model = tiny("transformer", num_layers=2)
    embedding, encoder, decoder = (
        f"{x.count_params():,}" for x in (model.target_embedding, model.encoder, model.decoder)
    )
    wide, tied = "(None, None, 16)", "(None, None, 24)"
    expected = [
        ("source_ids", "InputLayer", "(None, None)", "0"),
        ("target_ids", "InputLayer", "(None, None)", "0"),
        ("target_embedding", "PositionalEmbedding", wide, embedding),
        ("encoder", "Encoder", wide, encoder),
        ("decoder", "Decoder", wide, decoder),
        ("logits", "Output", tied, "0"),
    ]
    assert rows(summary(model)) == expected
    nested = [name for name, *_ in rows(summary(model, expand_nested=True))]
    assert nested == [
        *["source_ids", "target_ids", "target_embedding"],
        *["encoder", "└ block_0", "└ block_1", "decoder", "└ block_0", "└ block_1", "logits"],
    ]


@pytest.mark.parametrize("kind", cases(FAMILIES, "bert"))
def test_every_parameter_is_counted_once(kind):
    model = FAMILIES[kind]()
    text = summary(model)
    assert f"Total params: {model.count_params():,} " in text
    assert sum(int(count.replace(",", "")) for *_, count in rows(text)) == model.count_params()
    assert "[" not in text  # no row has several outputs


@pytest.mark.once("what a summary leaves as it was")
def test_a_model_trains_and_saves_after_a_summary_as_before(saved_and_loaded):
    ids = np.arange(4, 20, dtype="int32").reshape(2, 8)
    model = tiny("llama")
    model.compile(adam(0.01), LabelSmoothedCrossentropy())
    paths = [x.path for x in model.weights]
    summary(model)
    model.fit(ids, ids, verbose=0)
    optimizer = sum(int(keras.ops.size(x)) for x in model.optimizer.variables)
    assert f"Optimizer params: {optimizer:,} " in summary(model)
    assert [x.path for x in model.weights] == paths
    loaded = saved_and_loaded(model)
    np.testing.assert_allclose(loaded.predict(ids, verbose=0), model.predict(ids, verbose=0))
