"""Engines by name, for saved and exported translators."""

import pytest

from keras_transformer.translate.engines.choice import ENGINES, load_engine
from keras_transformer.translate.engines.ctranslate2_engine import CTranslate2Engine
from keras_transformer.translate.engines.keras_engine import KerasEngine

pytestmark = pytest.mark.once("names and folders")


def test_each_name_has_its_engine(folder):
    assert ENGINES[2:] == ("litert", "inductor", "auto")  # these have their own tests
    for name, kind in zip(ENGINES, (KerasEngine, CTranslate2Engine), strict=False):
        engine, tokenizer, saved = load_engine(folder, name, None)
        assert type(engine) is kind
        assert engine.config.target_vocab_size == tokenizer.target_vocab_size
        assert saved["source_language"] == "en"


def test_wrong_names_and_folders(folder, tmp_path):
    with pytest.raises(ValueError, match=r"engine must be one of \('keras', .*\), got 'onnx'"):
        load_engine(folder, "onnx", None)
    for name in ENGINES:
        with pytest.raises(ValueError, match="is not a saved translator: it has no config.json"):
            load_engine(tmp_path, name, None)
        with pytest.raises(ValueError, match="precision must be one of .*, got 'int4'"):
            load_engine(folder, name, "int4")
