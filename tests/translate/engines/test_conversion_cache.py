"""Converted models: made once, made again for another model, in a folder that may be read-only."""

import errno
import json
import shutil
import threading

import pytest

from keras_transformer import models
from keras_transformer.translate import engines
from keras_transformer.translate.engines import conversion_cache as cache
from keras_transformer.translate.translator import Translator
from tests.small_translator import TEXTS, make

pytestmark = pytest.mark.once("files, made of arrays")


@pytest.fixture
def copied(folder, tmp_path):
    """A copy of the folder, without its cache."""
    path = tmp_path / "copied"
    shutil.copytree(folder, path, ignore=shutil.ignore_patterns(".ctranslate2*"))
    return path


@pytest.fixture
def conversions(monkeypatch):
    """The places to which models are converted."""
    made, convert = [], engines.convert

    def spy(folder, saved, tokenizer, out):
        made.append(out)
        return convert(folder, saved, tokenizer, out)

    monkeypatch.setattr(engines, "convert", spy, raising=False)
    return made


def load(folder, **options):
    return Translator.load(folder, engine="ctranslate2", **options)


def test_a_model_is_converted_once(copied, conversions):
    before = sorted(x.name for x in copied.iterdir())
    found = load(copied).translate(TEXTS)
    assert load(copied).translate(TEXTS) == found
    load(copied, precision="int8")
    assert len(conversions) == 1
    after = sorted(x.name for x in copied.iterdir())
    assert after == sorted([*before, ".ctranslate2", ".ctranslate2.lock"])


def test_another_model_is_converted_anew(copied, conversions, tokenizer):
    load(copied)
    other = make(tokenizer, seed=3, output_bias=True)
    other.save(copied)
    assert load(copied).translate(TEXTS) == other.translate(TEXTS)
    path = copied / ".ctranslate2" / "converted.json"
    facts = json.loads(path.read_text())
    path.write_text(json.dumps(facts | {"origin": facts["origin"].replace("1 ", "0 ", 1)}))
    load(copied)
    assert len(conversions) == 3


def test_a_folder_that_cannot_be_written_to(copied, conversions, monkeypatch):
    expected = load(copied).translate(TEXTS)

    def refused(path):
        raise PermissionError(errno.EACCES, "no", str(path))

    monkeypatch.setattr(cache, "waiting", refused)
    assert load(copied).translate(TEXTS) == expected
    assert len(conversions) == 1  # what is there is used
    shutil.rmtree(copied / ".ctranslate2")
    assert load(copied).translate(TEXTS) == expected
    assert len(conversions) == 2
    assert not (copied / ".ctranslate2").exists() and not conversions[1].parent.exists()

    def full(path):
        raise OSError(errno.ENOSPC, "full", str(path))

    monkeypatch.setattr(cache, "waiting", full)
    with pytest.raises(OSError, match="full"):
        load(copied)


def test_others_wait_for_a_conversion(copied, conversions):
    found = []
    threads = [threading.Thread(target=lambda: found.append(load(copied))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and len(conversions) == 1


def test_a_family_that_the_engine_lacks(copied, monkeypatch):
    monkeypatch.setattr(engines, "convert", lambda *_: "T5Gemma", raising=False)
    with pytest.raises(ValueError, match="the class of the model must be one of .*, got 'T5Gemma'"):
        load(copied)


def test_configs_are_those_of_the_models():
    for name, config in cache.CONFIGS.items():
        assert getattr(models, name).config_class is config
