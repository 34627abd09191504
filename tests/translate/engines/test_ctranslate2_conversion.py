"""Conversion to CTranslate2: models in 8 bits, and those that cannot be converted."""

import pytest

from keras_transformer.translate.engines import convert
from keras_transformer.translate.translator import Translator
from tests.small_translator import TEXTS, make

pytestmark = pytest.mark.once("files, made of arrays")


def test_weights_of_8_bits_are_converted(folder, tmp_path):
    Translator.load(folder, "int8").save(tmp_path / "small")
    ours = Translator.load(tmp_path / "small", "float32")
    theirs = Translator.load(tmp_path / "small", engine="ctranslate2")
    assert theirs.translate(TEXTS) == ours.translate(TEXTS)


def test_what_cannot_be_converted(tokenizer, tmp_path):
    make(tokenizer, eos_id=(tokenizer.eos_id, 7)).save(tmp_path / "two")
    with pytest.raises(ValueError, match='two cannot run with engine="ctranslate2": eos_id'):
        Translator.load(tmp_path / "two", engine="ctranslate2")
    assert not (tmp_path / "two" / ".ctranslate2").exists()


def test_the_class_of_the_model_is_returned(translator, tmp_path):
    translator.save(tmp_path / "saved")
    (tmp_path / "out").mkdir()
    saved = {"model": translator.config.to_dict(), "tokenizer": translator.tokenizer.fingerprint()}
    arguments = tmp_path / "saved", saved, translator.tokenizer, tmp_path / "out"
    assert convert(*arguments) == "Transformer"
    assert (tmp_path / "out" / "model.bin").is_file()
