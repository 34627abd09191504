"""The package as installed: its names, one backend alone."""

import os
import subprocess
import sys
from pathlib import Path

import keras
import pytest

import keras_transformer

ROOT = Path(__file__).parents[1]
BACKENDS = {"tensorflow", "jax", "torch"}

# A process in which some packages are not installed, as far as anything in it can tell.
HIDING = """
import importlib.abc, importlib.util, sys
hidden = set({hidden!r})
class Hiding(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in hidden:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hiding())
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: (
    None if name.split(".")[0] in hidden else find_spec(name, package)
)
"""

TRAINING = """
import keras_transformer as kt
import numpy as np
from keras_transformer.data.pair_batches import TokenBatches
words = ["ein", "zwei", "drei", "vier", "acht", "neun"]
pairs = [(f"{a} {b}", f"{b} {a}") for a in words for b in words]
sources, targets = zip(*pairs)
tokenizer = kt.SentencePieceTokenizer.train(sources, targets, vocab_size=300)
size = tokenizer.source_vocab_size
config = kt.TransformerConfig(
    size, size, d_model=8, d_ff=16, num_heads=2, num_encoder_layers=1, num_decoder_layers=1
)
model = kt.Transformer(config)
model.compile(kt.adam(kt.WarmupSchedule.paper(8, 10)), kt.LabelSmoothedCrossentropy())
batches = TokenBatches(pairs, tokenizer, tokens_per_batch=256, num_buckets=1)
model.fit(batches.dataset(), steps_per_epoch=len(batches), verbose=0, shuffle=False)
print("translated", len(kt.Translator(model, tokenizer).translate(["ein zwei"], beam_size=2)))
"""


def run(program, **environment):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True
    )


def test_every_public_name_is_there():
    for name in keras_transformer.__all__:
        assert getattr(keras_transformer, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'Transformers'"):
        _ = keras_transformer.Transformers


def test_importing_the_package_imports_no_backend():
    done = run("import sys, keras_transformer; print(sorted(sys.modules))")
    assert "'keras_transformer'" in done.stdout
    assert not BACKENDS & set(done.stdout.replace("'", "").replace(",", "").split())


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="tests/install.py does so")
def test_training_and_translating_need_one_backend_alone():
    backend = keras.backend.backend()
    hidden = sorted((BACKENDS - {backend}) | {"keras_hub", "tensorflow_text"})
    if backend == "tensorflow":
        hidden.remove("tensorflow_text")
    done = run(HIDING.format(hidden=hidden) + TRAINING, KERAS_BACKEND=backend)
    assert "translated 1" in done.stdout, done.stderr
    assert done.stderr == ""  # no framework logs anything
