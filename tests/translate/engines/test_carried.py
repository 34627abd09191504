"""The documentation's table of options, against what the engines accept and refuse."""

import copy
import inspect
from pathlib import Path

import pytest

from keras_transformer import Glossary, ensemble, export
from keras_transformer.analysis.alignment import align
from keras_transformer.running.inputs import Request
from keras_transformer.search import TRANSLATE, Search
from keras_transformer.text.lexical_shortlist import Shortlist
from keras_transformer.translate.document_translation import translate_documents
from keras_transformer.translate.engines.carried import CTRANSLATE2, ONNX, SAVED_MODEL, Carried
from keras_transformer.translate.minimum_bayes_risk import translate_by_risk
from keras_transformer.translate.reranking import Reranker
from keras_transformer.translate.translator import Translator

pytestmark = pytest.mark.once("options: what they do has tests elsewhere")
PAGE = Path(__file__).parents[3] / "docs" / "deploy.md"
TEXTS = ["one", "two"]
# Of each option another value than the default.
OPTIONS = dict(
    beam_size=2,
    length_penalty=1.0,
    max_extra_length=6,
    max_length=6,
    scoring="transformers",
    early_stopping=True,
    min_length=1,
    no_repeat_ngram_size=3,
    diversity_rate=0.5,
    repetition_penalty=1.5,
    shortlist=True,
    protect=True,
    prefixes=["six", "six"],
    strict=True,
    constraint=Glossary({"one": ["two"]}),
    force_terms=False,
)
DRAWS = dict(temperature=0.5, top_k=2, top_p=0.5, min_p=0.1, epsilon_cutoff=0.1)
USES = {
    name: lambda t, x=name, y=value: t.translate(TEXTS, **{x: y}) for name, value in OPTIONS.items()
}
USES |= {
    name: lambda t, x=name, y=value: t.sample(TEXTS, **{x: y}) for name, value in DRAWS.items()
}
USES |= {
    "num_hypotheses": lambda t: t.nbest(TEXTS, num_hypotheses=2),
    "score": lambda t: t.score(TEXTS, TEXTS),
    "ensemble": lambda t: ensemble([t, t]).translate(TEXTS),
    "--mbr": lambda t: translate_by_risk(t, TEXTS, 2),
    "--mbr-source samples": lambda t: translate_by_risk(t, TEXTS, 2, source="samples"),
    "--context-sentences": lambda t: translate_documents(t, TEXTS),
    "--alignments": lambda t: align(t, TEXTS, TEXTS),
    "--rerank": lambda t: Reranker(t, dict(length=1)).translate(TEXTS, 2),
}


def table():
    """The table's columns: for each option its cell, by the name of the column."""
    lines = PAGE.read_text("utf-8").split("## Which takes which options")[1].splitlines()
    rows = [[x.strip() for x in line.split("|")[1:-1]] for line in lines if line.startswith("| ")]
    (_, *names), _, *rows = rows[: next(i for i, x in enumerate(rows) if x[0] == "signature")]
    return {
        column: {name: row[i] for row in rows for name in row[0].split("`")[1::2]}
        for i, column in enumerate(names, 1)
    }


@pytest.fixture(scope="module")
def translators(ours, theirs, saved_model, onnx_folder):
    keras = copy.copy(ours)
    keras.shortlist = Shortlist.train(ours.tokenizer, TEXTS, TEXTS, per_piece=2, frequent=4)
    exported = [Translator.load(x) for x in (saved_model, onnx_folder)]
    names = "Keras", "CTranslate2", "SavedModel", "ONNX"
    return dict(zip(names, (keras, theirs, *exported), strict=True))


def test_the_table_has_all_options():
    for column in table().values():
        # Only language models take a style, and only the Keras engine runs them.
        assert column.keys() == USES.keys() >= {*Search.names()} - {"style"}


@pytest.mark.parametrize("name", USES)
def test_the_table_says_what_is_taken_and_refused(name, translators):
    columns = table()
    assert columns.keys() == translators.keys()
    for column, translator in translators.items():
        cell = columns[column][name]
        if cell == "yes":
            USES[name](translator)
            continue
        # What cannot be called by its name is refused by that of an option that it needs.
        words = name if name in (*Search.names(), *OPTIONS, "score") else ""
        words = "temperature" if name in DRAWS else words  # which `sample` always has
        with pytest.raises(ValueError, match=rf"^{words}.* (must be|needs) "):
            USES[name](translator)
        at_export = name in inspect.signature(export.saved_model).parameters
        # These are refused there, where folders may have them.
        at_export = at_export and name not in ("protect", "force_terms")
        assert cell == ("at export" if at_export and column == "SavedModel" else "no")


OF_FOLDERS = [
    dict(beam_size=3, early_stopping=True),
    dict(beam_size=4, max_length=4, forced_eos=False),
    dict(beam_size=1, max_length=3, forced_eos=False),
    dict(beam_size=2, max_length=5, length_penalty=2.0, early_stopping=True, forced_eos=False),
    dict(beam_size=4, max_length=4, scoring="wu", forced_eos=False),
]


@pytest.mark.parametrize("own", OF_FOLDERS)
def test_an_engine_searches_as_its_folder_says(own, translators):
    """So do the others: tests/export has ONNX graphs and SavedModels of the same model."""
    found = []
    for name in ("Keras", "CTranslate2"):
        translator = copy.copy(translators[name])
        translator.search = dict(scoring="transformers", length_penalty=1.0) | own
        found.append(translator.nbest([*TEXTS, "six ten"]))
    ours, theirs = ([[x.text for x in row] for row in rows] for rows in found)
    assert ours == theirs


def test_what_an_engine_lacks_of_a_folder_is_refused(translators):
    for name in ("CTranslate2", "ONNX"):
        translator = copy.copy(translators[name])
        translator.search = dict(beam_size=2, no_repeat_ngram_size=3)
        with pytest.raises(ValueError, match="^no_repeat_ngram_size must be left out for "):
            translator.translate(TEXTS)
        assert translator.translate(TEXTS, no_repeat_ngram_size=0)


def test_defaults_are_options_that_are_left_out():
    for carried in (CTRANSLATE2, ONNX):
        assert carried.options(dict(min_length=0), TRANSLATE, beam_size=2) == Search(2)
        carried.check_request(Request(["one"]))
    with pytest.raises(ValueError, match="min_length must be left out for a SavedModel, .*, got 0"):
        SAVED_MODEL.options(dict(min_length=0), TRANSLATE)
    SAVED_MODEL.check_request(Request(["one"]))
    with pytest.raises(ValueError, match=r"prefixes must be left out for it, got \['a'\]"):
        Carried("it", ("strict",)).check_request(Request(["one"], prefixes=["a"], strict=True))
    with pytest.raises(TypeError, match="beams is not an option here"):
        ONNX.options(dict(beams=3), TRANSLATE)
