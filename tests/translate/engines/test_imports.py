"""Packages that a translation imports: with most engines neither Keras nor its backend."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.backends import BACKEND

ROOT = Path(__file__).parents[3]
PACKAGES = {
    *("keras", "torch", "jax", "tensorflow", "tensorflow_text", "numpy", "grain", "h5py"),
    *("safetensors", "sacrebleu", "transformers", "ctranslate2", "onnxruntime", "sentencepiece"),
}
# In a command, Keras and TensorFlow do not import other backends.
PROGRAM = f"""
import os, sys
sys.argv[0] = "keras-transformer"
from keras_transformer.cli import main
try:
    main()
finally:
    print(*sorted({PACKAGES} & {{*sys.modules}}), file=sys.stderr)
"""
SERVER = f"""
import sys
from fastapi.testclient import TestClient
from keras_transformer import serving
folder, text = sys.argv[1:]
catalogue = serving.Catalogue.load([folder], engine="ctranslate2")
with TestClient(serving.create_app(lambda: catalogue, serving.Settings())) as client:
    asked = {{"q": text, "source": "en", "target": "xx"}}
    print(client.post("/translate", json=asked).json()["translatedText"])
print(*sorted({PACKAGES} & {{*sys.modules}}), file=sys.stderr)
"""
TEXT = "a b"
OTHERS = pytest.mark.once("the engine imports no backend of Keras, whichever is chosen")


def imported(*arguments):
    """Return the packages that `translate` imports."""
    return run(PROGRAM, "translate", *map(str, arguments))


def run(program, *arguments):
    command = [sys.executable, "-c", program, *arguments, TEXT]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 1, done.stderr
    return {*done.stderr.splitlines()[-1].split()}


@OTHERS
def test_ctranslate2_with_a_converted_model(folder, theirs):
    expected = {"ctranslate2", "numpy", "sentencepiece"}
    assert imported(folder, "--engine", "ctranslate2") == expected


@OTHERS
def test_a_server_with_ctranslate2(folder, theirs):
    pytest.importorskip("fastapi")
    names = run(SERVER, str(folder))
    assert "ctranslate2" in names and not names & {"keras", "torch", "jax", "tensorflow"}


@OTHERS
def test_onnx_graphs(onnx_folder):
    assert imported(onnx_folder) == {"numpy", "onnxruntime", "sentencepiece"}


@OTHERS
def test_a_saved_model(saved_model):
    assert imported(saved_model) <= {"h5py", "numpy", "sentencepiece", "tensorflow"}


def test_the_default_engine(folder):
    others = {"torch", "jax", "tensorflow"} - {BACKEND}
    names = imported(folder)
    assert names >= {"keras", BACKEND} and not names & {*others, "transformers", "ctranslate2"}
