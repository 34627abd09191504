"""The engine of LiteRT: the strings and scores of our own engine, and what it refuses."""

import shutil

import keras
import pytest

from keras_transformer.translate.engines.carried import CTRANSLATE2, LITERT_ENGINE
from keras_transformer.translate.translator import Translator
from tests.small_translator import TEXTS
from tests.translate.engines.test_imports import imported

pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")
if keras.backend.backend() != "tensorflow":
    pytest.skip("TensorFlow converts, whatever backend runs here", allow_module_level=True)


@pytest.fixture(scope="module")
def copied(folder, tmp_path_factory):
    """A copy of the folder."""
    return shutil.copytree(folder, tmp_path_factory.mktemp("litert") / "copied")


@pytest.fixture(scope="module")
def load(copied, in_this_process):
    """`load(**options)`: the translator with LiteRT, converted in this process."""

    def load_here(**options):
        with in_this_process("litert_engine", "translate.engines"):
            return Translator.load(copied, engine="litert", **options)

    return load_here


def check(theirs, ours, **options):
    """The same n-best lists, with the same scores."""
    found, expected = theirs.nbest(TEXTS, **options), ours.nbest(TEXTS, **options)
    assert [[x.text for x in y] for y in found] == [[x.text for x in y] for y in expected]
    for one, other in zip(found, expected, strict=True):
        assert [x.score for x in one] == pytest.approx([x.score for x in other], abs=1e-3)


def test_hypotheses_and_scores(load, ours, monkeypatch):
    theirs = load()
    for options in (
        dict(beam_size=1, length_penalty=0.0),
        dict(num_hypotheses=1, length_penalty=0.0),
        dict(length_penalty=1.5, max_extra_length=1, scoring="transformers"),
        dict(prefixes=[("six", "ten one", "", "se")[i % 4] for i in range(len(TEXTS))]),
    ):
        check(theirs, ours, **options)
    assert theirs.translate(["", "one 17"], protect=True) == ours.translate(
        ["", "one 17"], protect=True
    )
    targets = ours.translate(TEXTS)
    assert theirs.score(TEXTS, targets) == pytest.approx(ours.score(TEXTS, targets), abs=1e-3)
    assert {*CTRANSLATE2.names} <= {*LITERT_ENGINE.names}


def test_a_model_is_converted_once_for_each_precision(load, copied, ours):
    load()
    assert imported(copied, "--engine", "litert") == {"numpy", "sentencepiece"}
    small = load(precision="int8")
    sizes = [(copied / f".litert-{x}" / "model.tflite").stat().st_size for x in ("float32", "int8")]
    assert sizes[1] < sizes[0] and len(small.translate(TEXTS)) == len(TEXTS)


def test_suppressed_and_forced_tokens(load, ours, copied):
    ids = ours.tokenizer.encode_target(["six one"])[0]
    options = dict(suppress_tokens=(ids[1],), forced_first=(ids[0],))
    theirs, again = load(), Translator.load(copied)
    for translator in (theirs, again):
        translator.search = options
    check(theirs, again)


def test_what_is_refused(load, copied, monkeypatch):
    theirs = load()
    with pytest.raises(ValueError, match='^min_length must be left out for engine="litert"'):
        theirs.translate(TEXTS, min_length=2)
    with pytest.raises(ValueError, match="^precision must be one of .*, got 'bfloat16'"):
        load(precision="bfloat16")
    for package, extra in (("tensorflow", "tensorflow"), ("ai_edge_litert", "litert")):
        monkeypatch.setattr("importlib.util.find_spec", lambda name, x=package: name != x or None)
        with pytest.raises(ImportError, match=f'needs the extra "{extra}"'):
            load(precision="float16")
