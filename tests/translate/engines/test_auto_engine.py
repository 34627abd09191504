"""The engine "auto": the engine that it takes, why, and that translations stay the same."""

import logging
import sys

import ctranslate2
import pytest

from keras_transformer.text.glossary import Glossary
from keras_transformer.translate.engines import auto_engine
from keras_transformer.translate.engines.auto_engine import AutoEngine
from keras_transformer.translate.translator import Translator
from tests.small_translator import made_tokenizer, make

pytestmark = pytest.mark.once("a choice between engines that have their own tests")
TEXTS = ["one two", "", "seven eight nine", "ten"]


@pytest.fixture
def choices(caplog):
    caplog.set_level(logging.INFO, logger="keras_transformer.engine")
    return lambda: caplog.messages


def loaded(translator):
    return {"_keras", "_quick"} & vars(translator._engine).keys()


def test_few_texts_need_no_keras_model(folder, ours, choices):
    translator = Translator.load(folder, engine="auto")
    assert isinstance(translator._engine, AutoEngine)
    for _ in range(2):
        assert translator.translate(TEXTS) == ours.translate(TEXTS)
    assert translator.score(TEXTS, TEXTS) == pytest.approx(ours.score(TEXTS, TEXTS), abs=1e-3)
    assert loaded(translator) == {"_quick"}
    assert choices() == ["engine ctranslate2: fewer than 1000 texts"]


def test_many_texts_and_other_options_are_left_to_keras(folder, ours, choices, monkeypatch):
    monkeypatch.setattr(auto_engine, "MANY", 4)
    translator = Translator.load(folder, engine="auto")
    assert translator.translate(TEXTS) == ours.translate(TEXTS)
    options = dict(repetition_penalty=1.5)
    assert translator.translate(TEXTS[:1], **options) == ours.translate(TEXTS[:1], **options)
    terms = dict(constraint=Glossary({"one": ["ten"]}))
    assert translator.translate(TEXTS[:1], **terms) == ours.translate(TEXTS[:1], **terms)
    assert translator.sample(TEXTS[:2], seed=3) == ours.sample(TEXTS[:2], seed=3)
    assert [message.split()[1] for message in choices()] == ["keras:"] * 4
    assert choices()[0].endswith("4 texts or more")
    assert "repetition_penalty must be left out" in choices()[1] and "constraint" in choices()[2]


@pytest.mark.parametrize("reason", ["precision bfloat16", "a GPU", "ctranslate2 is not installed"])
def test_models_and_machines_that_are_left_to_keras(reason, folder, choices, monkeypatch):
    precision = None
    if reason.startswith("precision"):
        precision = "bfloat16"
    elif reason == "a GPU":
        monkeypatch.setattr(ctranslate2, "get_cuda_device_count", lambda: 1)
    else:
        monkeypatch.setitem(sys.modules, "ctranslate2", None)
    translator = Translator.load(folder, precision, engine="auto")
    assert len(translator.translate(TEXTS)) == len(TEXTS)
    assert translator.config == translator.model.config
    assert choices() == [f"engine keras: {reason}"]


def test_a_decoder_without_self_attention_is_left_to_keras(tmp_path, choices):
    recurrent = make(made_tokenizer(), decoder_recurrence="ssru")
    recurrent.save(tmp_path / "saved")
    translator = Translator.load(tmp_path / "saved", engine="auto")
    assert translator.translate(TEXTS) == recurrent.translate(TEXTS)
    assert "decoder_recurrence must be None for CTranslate2" in choices()[0]


def test_an_exported_translator_has_its_own_engine(saved_model):
    assert Translator.load(saved_model, engine="auto").translate(["one"]) == ["best one"]
