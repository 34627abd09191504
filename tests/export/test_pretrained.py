"""Pretrained models as SavedModels: strings in, strings out, where only TensorFlow is."""

import json
import os
import subprocess
import sys

import keras
import pytest

from keras_transformer import export, load_pretrained

pytest.importorskip("tensorflow_text")

ENGLISH = ["The old man sees the dog.", "A dog sleeps here.", "I see 3 dogs, don't I?"]
GERMAN = ["Der alte Mann sieht den Hund.", "Ein Hund schläft hier.", "Ich sehe 3 Hunde."]
TEXTS = [*ENGLISH, ">>fra<<A dog.", "sleeps 犬", ""]
FAMILIES = {  # a source language and two targets
    "m2m_100": ("en", "de", "fr"),
    "nllb": ("eng_Latn", "deu_Latn", "fra_Latn"),
    "mbart": ("en_XX", "de_DE", "fr_XX"),
    "t5": ("en", "de", "fr"),
    "madlad": (None, "de", "fr"),
}
if keras.backend.backend() != "tensorflow":
    reason = "TensorFlow exports, whatever runs here: test_saved_model.py does so from each backend"
    pytest.skip(reason, allow_module_level=True)

SERVE = """
import json, sys, tensorflow as tf, tensorflow_text
served = tf.saved_model.load(sys.argv[1])
for task in json.loads(sys.argv[2]):
    name = task.pop("signature")
    output = served.signatures[name](**{x: tf.constant(y) for x, y in task.items()})
    print(json.dumps([x.decode() for x in output["translations"].numpy()]))
strangers = ("keras_transformer", "transformers", "torch")
assert not any(name.startswith(strangers) for name in sys.modules)
"""


def served(path, *tasks):
    """What signatures of a SavedModel answer in a process with TensorFlow alone."""
    command = [sys.executable, "-c", SERVE, str(path), json.dumps(tasks)]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1"}
    environment.pop("KERAS_BACKEND", None)  # TensorFlow looks for Keras, and that for a backend
    output = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    return [json.loads(line) for line in output.stdout.splitlines()[-len(tasks) :]]


def test_marian(pretrained_folder, tmp_path):
    pretrained_folder("marian", tmp_path, ENGLISH * 20, GERMAN * 20)
    translator = load_pretrained(tmp_path)
    translator.save(tmp_path / "saved")
    path = export.saved_model(tmp_path / "saved", tmp_path / "served", max_extra_length=10)
    found = served(path, dict(signature="translate", texts=TEXTS))
    assert found == [translator.translate(TEXTS, max_extra_length=10)]


@pytest.mark.parametrize("kind", FAMILIES)
def test_many_languages(kind, pretrained_folder, tmp_path):
    folder = tmp_path / "theirs"
    folder.mkdir()
    pretrained_folder(kind, folder, [*ENGLISH, *GERMAN] * 20)
    source, target, other = FAMILIES[kind]
    translator = load_pretrained(folder, source, target)
    translator.save(tmp_path / "saved")
    options = dict(max_extra_length=10)
    expected = translator.translate(TEXTS, **options)
    into = translator.between(source, other).translate(TEXTS, **options)
    path = export.saved_model(tmp_path / "saved", tmp_path / "served", **options)
    tasks = [dict(signature="serving_default", texts=TEXTS)]
    if translator.tokenizer.source_languages:
        codes = [target, other] * 3
        tasks.append(
            dict(
                signature="translate_between",
                texts=TEXTS,
                source_languages=[source] * 6,
                target_languages=codes,
            )
        )
    found = served(path, *tasks)
    assert found[0] == expected
    if len(tasks) > 1:
        assert found[1] == [(expected, into)[i % 2][i] for i in range(6)]
