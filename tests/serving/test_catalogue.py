"""Which models serve which languages."""

import shutil
from pathlib import Path

import pytest

from keras_transformer.serving import Catalogue
from keras_transformer.serving.catalogue import parse
from keras_transformer.translate.translator import Translator


def test_routes(catalogue):
    assert catalogue.sources == ["de", "en"]
    assert catalogue.targets("en") == ["de", "fr"] and catalogue.targets("de") == ["fr"]
    assert len(catalogue.route("en", "de")) == 1 and len(catalogue.route("en", "fr")) == 2
    assert catalogue.route("en", "de")[0] is catalogue.route("en", "de")[0]
    with pytest.raises(ValueError, match="source must be one of de, en, got 'fr'"):
        catalogue.route("fr", "en")
    with pytest.raises(ValueError, match="target must be one of fr from de, got 'en'"):
        catalogue.route("de", "en")


def test_specifications():
    assert parse("a/b") == (Path("a/b"), None)
    assert parse("en-de=a/b=c") == (Path("a/b=c"), ("en", "de"))
    assert parse("x-y=z") == (Path("x-y=z"), None)
    with pytest.raises(ValueError, match="model must be FOLDER or SOURCE-TARGET=FOLDER"):
        parse("en-de=")


def test_languages_that_are_not_saved_are_given(translators, tmp_path):
    folder = tmp_path / "nameless"
    Translator(translators[0].model, translators[0].tokenizer).save(folder)
    with pytest.raises(ValueError, match=f"give it as SOURCE-TARGET={folder}"):
        Catalogue.load([folder])
    assert Catalogue.load([f"pt-sv={folder}"]).targets("pt") == ["sv"]


def test_models_of_many_languages(pretrained_folder, tmp_path):
    from keras_transformer import load_pretrained

    folder = tmp_path / "source"
    folder.mkdir()
    pretrained_folder("m2m_100", folder, ["one two three", "two three one"] * 20)
    load_pretrained(folder, "en", "de").save(tmp_path / "many")
    catalogue = Catalogue.load([tmp_path / "many"])
    assert {"de", "fr"} <= set(catalogue.targets("en"))
    (handler,) = catalogue.route("en", "de")
    assert handler.search(handler.read(["one two"])[0], 1)[0] == load_pretrained(
        folder, "en", "de"
    ).translate(["one two"])
    assert catalogue.models["many"].any.default == ("en", "de")


def test_no_models_twice(folders):
    with pytest.raises(ValueError, match="different names"):
        Catalogue.load([folders[0], folders[0]])
    with pytest.raises(ValueError, match="one or more"):
        Catalogue.load([])
    with pytest.raises(ValueError, match="is not a saved translator"):
        Catalogue.load([folders[0].parent])


@pytest.mark.once("files and languages: no tensor differs")
def test_calibrations(calibrated, folders, tmp_path):
    (handler,) = calibrated.route("en", "de")
    folder = calibrated.models["en-de"].any.folder
    assert handler.can_estimate
    assert calibrated.models["en-de"].any.facts()["estimated"] == ("en", "de")
    assert not Catalogue.load([folders[0]]).route("en", "de")[0].can_estimate
    assert not Catalogue.load([f"pt-sv={folder}"]).route("pt", "sv")[0].can_estimate
    with pytest.warns(UserWarning, match=r"quality.json is of another search \(beam_size\)"):
        other = Catalogue.load([folder], beam_size=1)
    assert not other.route("en", "de")[0].can_estimate
    broken = shutil.copytree(folder, tmp_path / "broken")
    (broken / "quality.json").write_text("{")
    with pytest.raises(ValueError, match=r"broken/quality\.json is not valid JSON"):
        Catalogue.load([broken])
