"""The SavedModel translates like the Translator, in a process with TensorFlow alone."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from keras_transformer.decoding import IMPOSSIBLE
from keras_transformer.export import saved_model
from keras_transformer.text.lexical_shortlist import Shortlist
from keras_transformer.translate.translator import Translator
from tests.export.translators import ENGLISH, MADE_UP, MAX_LENGTH, save_translator

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("tensorflow_text") is None, reason="tensorflow_text is not installed"
)

NAMES = ["plain", "jit"]

# No value is the default: an option that is not passed on changes the results.
OPTIONS = dict(beam_size=3, length_penalty=1.0, max_extra_length=6, repetition_penalty=1.5)
SEARCH = OPTIONS | dict(shortlist=True)
BATCHES = {
    "many": [*ENGLISH[::9], "Ärger, naïve café: ½ ﬁne 😀!", "日本語", "e\u0301 \u200b\ufeff"],
    "one": ["the queen follows the sea at night"],
    "none": [],
    "blank": ["", "   ", "\t\u00a0\n", "\u200b"],
    "mixed": ["", "the", "a " * 200, "</s> <s> <pad>", "a\nb\x00c", "😀" * 60, " "],
}
SOURCES = ["the old man sees the dog", "", "my neighbour", "日本 ½"]
TARGETS = ["ehtö dloö namö seesö", "ehtö", "", "ö 😀"]


@pytest.fixture(scope="module")
def folders(randomize, tmp_path_factory):
    """Saved translators with a shortlist: one with two vocabularies, and one for XLA."""
    folders = {
        name: save_translator(randomize, tmp_path_factory.mktemp(name), shared=name == "jit")
        for name in NAMES
    }
    sizes = dict(per_piece=8, frequent=40)
    for folder in folders.values():
        short = Translator.load(folder)
        short.shortlist = Shortlist.train(short.tokenizer, ENGLISH, MADE_UP, **sizes)
        short.save(folder)
    return folders


@pytest.fixture(scope="module")
def translators(folders):
    return {name: Translator.load(folder) for name, folder in folders.items()}


@pytest.fixture(scope="module")
def exported(folders, tmp_path_factory):
    out = tmp_path_factory.mktemp("serving")
    changes = {"plain": dict(version=7), "jit": dict(jit_compile=True)}
    return {
        name: saved_model(folders[name], out / name, **changes[name], **SEARCH) for name in NAMES
    }


@pytest.fixture(scope="module")
def answers(exported, tmp_path_factory):
    folder = tmp_path_factory.mktemp("client")
    task = dict(
        paths={name: str(path) for name, path in exported.items()},
        texts=BATCHES,
        # XLA takes seconds a shape; this batch has both short and long texts.
        batches={"plain": list(BATCHES), "jit": ["mixed"]},
        sources=SOURCES,
        targets=TARGETS,
        answers=str(folder / "answers.json"),
    )
    environment = {k: v for k, v in os.environ.items() if k not in ("KERAS_BACKEND", "PYTHONPATH")}
    process = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("saved_model_client.py"))],
        input=json.dumps(task),
        cwd=folder,
        env={**environment, "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr
    return json.loads((folder / "answers.json").read_text("utf-8"))


def cases():
    return [*(("plain", batch) for batch in BATCHES), ("jit", "mixed")]


def test_is_laid_out_for_tensorflow_serving(exported):
    path = exported["plain"]
    assert (path.parent.name, path.name) == ("plain", "7")
    assert (path / "saved_model.pb").is_file()
    assert (path / "variables" / "variables.index").is_file()
    assert os.listdir(path.parent) == ["7"]


def test_needs_nothing_of_ours(answers):
    assert "tensorflow_text" in answers["modules"]
    assert not [name for name in answers["modules"] if "keras_transformer" in name]


def test_has_the_four_signatures(answers):
    expected = ["nbest", "score", "serving_default", "translate"]
    assert all(answers[name]["signatures"] == expected for name in NAMES)


@pytest.mark.filterwarnings("ignore:texts must have at most")
@pytest.mark.parametrize(("name", "batch"), cases())
def test_translates_as_the_translator(translators, answers, name, batch):
    expected = translators[name].translate(BATCHES[batch], **SEARCH)
    assert answers[name]["translate"][batch] == expected
    assert answers[name]["serving_default"][batch] == expected
    if batch == "many":
        assert len(set(expected)) > len(expected) / 2, "the model does not look at its source"


@pytest.mark.filterwarnings("ignore:texts must have at most")
@pytest.mark.parametrize(("name", "batch"), cases())
def test_nbest_as_the_translator(translators, answers, name, batch):
    expected = translators[name].nbest(BATCHES[batch], **SEARCH)
    found = answers[name]["nbest"][batch]
    rows = zip(found["translations"], found["scores"], expected, strict=True)
    for texts, scores, hypotheses in rows:
        missing = OPTIONS["beam_size"] - len(hypotheses)
        assert texts == [hypothesis.text for hypothesis in hypotheses] + [""] * missing
        wanted = [hypothesis.score for hypothesis in hypotheses] + [IMPOSSIBLE] * missing
        np.testing.assert_allclose(scores, wanted, rtol=1e-4, atol=1e-4)


def test_translates_in_a_session_as_serving_has_one(translators, answers):
    expected = translators["plain"].translate(BATCHES["many"], **SEARCH)
    assert answers["plain"]["as_serving"] == expected
    assert expected != translators["plain"].translate(BATCHES["many"], **OPTIONS)  # a shortlist


def test_nothing_but_space_is_nothing(answers):
    assert answers["plain"]["translate"]["blank"] == [""] * 4
    scores = answers["plain"]["nbest"]["blank"]["scores"]
    np.testing.assert_array_equal(scores, [[0.0, IMPOSSIBLE, IMPOSSIBLE]] * 4)


@pytest.mark.parametrize("name", NAMES)
def test_scores_as_the_translator(translators, answers, name):
    expected = translators[name].score(SOURCES, TARGETS)
    np.testing.assert_allclose(answers[name]["score"]["scores"], expected, rtol=1e-4, atol=1e-4)


def test_score_refuses_what_the_translator_refuses(answers):
    assert answers["plain"]["no_scores"] == {"scores": []}
    assert f"targets must have at most {MAX_LENGTH} tokens" in answers["plain"]["too_long"]
    assert "sources and targets must have the same length" in answers["plain"]["not_as_many"]


def test_warm_up_requests_are_requests(answers, translators):
    (name, short, _), (_, long, _) = answers["plain"]["warm_up"]
    assert name == "plain"
    lengths = [len(ids) for ids in translators["plain"].tokenizer.encode_source(short + long)]
    assert lengths[0] <= 16 < lengths[1]
    for _, texts, translations in answers["plain"]["warm_up"]:
        assert len(translations) == len(texts) == 1


@pytest.mark.parametrize("name", NAMES)
def test_graph_is_bound_to_no_device(answers, name):
    assert answers[name]["devices"] == [""]
