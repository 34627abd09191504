"""Pretrained models as SavedModels: strings in, strings out, where only TensorFlow is."""

import importlib
import json
import os
import subprocess
import sys
import types
from unittest import mock

import keras
import pytest

from keras_transformer import export, load_pretrained
from tests.backends import sample

if keras.backend.backend() != "tensorflow":
    reason = "TensorFlow exports, whatever backend runs here; test_graph.py exports in a process"
    pytest.skip(reason, allow_module_level=True)
pytest.importorskip("tensorflow_text")

ENGLISH = ["The old man sees the dog.", "A dog sleeps here.", "I see 3 dogs, don't I?"]
GERMAN = ["Der alte Mann sieht den Hund.", "Ein Hund schläft hier.", "Ich sehe 3 Hunde."]
DEFAULT = "serving_default"
TEXTS = [*ENGLISH, ">>fra<<A dog.", "sleeps 犬", ""]
LANGUAGES = {  # a source language and two targets
    "marian": (None, None, None),
    "m2m_100": ("en", "de", "fr"),
    "t5": ("en", "de", "fr"),
}
FAMILIES = sample(LANGUAGES, "marian", "m2m_100")
OPTIONS = dict(beam_size=4, max_extra_length=10)
SERVE = """
import json, sys, tensorflow as tf, tensorflow_text
answers = []
for path, tasks in json.load(sys.stdin):
    served = tf.saved_model.load(path)
    for task in tasks:
        name = task.pop("signature")
        output = served.signatures[name](**{x: tf.constant(y) for x, y in task.items()})
        answers.append([x.decode() for x in output["translations"].numpy()])
strangers = ("keras_transformer", "transformers", "torch")
assert not any(name.startswith(strangers) for name in sys.modules)
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def exported(in_this_process):
    """Exports a folder as `export.saved_model` does, in this process, and only what is compared."""
    whole = importlib.import_module("keras_transformer.export.graph").TranslationModule

    def without(module, *options):
        start(module, *options)
        del module._search, module._score

    def run(folder, path):
        changes = dict(__init__=without, nbest=None, score=None)
        changes["signatures"] = lambda module: {DEFAULT: module.translate}
        with in_this_process("saved_model"), mock.patch.multiple(whole, **changes):
            return str(export.saved_model(folder, path, **OPTIONS))

    start = whole.__init__
    return run


@pytest.fixture(scope="module")
def answers(pretrained_folder, exported, tmp_path_factory):
    """Return for each kind and signature the Translator's answer and the SavedModel's."""
    expected, tasks = [], []
    for kind in FAMILIES:
        source, target, other = LANGUAGES[kind]
        folder = tmp_path_factory.mktemp(kind)
        texts = (ENGLISH * 20, GERMAN * 20) if kind == "marian" else ([*ENGLISH, *GERMAN] * 20,)
        pretrained_folder(kind, folder, *texts, layers=1)
        translator = load_pretrained(folder, source, target)
        translator.save(folder / "saved")
        found = translator.translate(TEXTS, **OPTIONS)
        expected.append((kind, DEFAULT, found))
        own = [dict(signature=DEFAULT, texts=TEXTS)]
        if getattr(translator.tokenizer, "source_languages", ()):
            into = translator.between(source, other).translate(TEXTS, **OPTIONS)
            mixed = [(found, into)[i % 2][i] for i in range(len(TEXTS))]
            expected.append((kind, "translate_between", mixed))
            languages = dict(
                source_languages=[source] * len(TEXTS),
                target_languages=[(target, other)[i % 2] for i in range(len(TEXTS))],
            )
            own.append(dict(signature="translate_between", texts=TEXTS, **languages))
        tasks.append((exported(folder / "saved", folder / "served"), own))
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1"}
    environment.pop("KERAS_BACKEND", None)  # TensorFlow looks for Keras, and that for a backend
    output = subprocess.run(
        [sys.executable, "-c", SERVE],
        input=json.dumps(tasks), capture_output=True, text=True, env=environment, check=True,
    ).stdout  # fmt: skip
    found = json.loads(output.splitlines()[-1])
    return {
        (kind, signature): (one, other)
        for (kind, signature, one), other in zip(expected, found, strict=True)
    }


@pytest.mark.parametrize(
    ("style", "has_both"), dict(prefix=True, suffix=True, source=False, start=False).items()
)
def test_languages_by_text_need_a_token_on_both_sides(style, has_both):
    module = importlib.import_module("keras_transformer.export.graph")
    expected = module.ManyLanguagesModule if has_both else module.TranslationModule
    assert module.module_class(types.SimpleNamespace(style=style)) is expected


CASES = [(kind, DEFAULT) for kind in FAMILIES]
CASES += [(kind, "translate_between") for kind in ("m2m_100",)]


def test_all_signatures_are_compared(answers):
    assert set(answers) == set(CASES)


@pytest.mark.parametrize("kind,signature", CASES)
def test_says_what_the_translator_says(kind, signature, answers):
    expected, found = answers[kind, signature]
    assert found == expected and any(expected)
