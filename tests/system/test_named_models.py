"""Models by name: in `saved_models/` first, then in installed packages."""

import sys

import pytest

from keras_transformer import TextClassifier, Translator
from keras_transformer.system.named_models import installed_models, known_models, located

pytestmark = pytest.mark.once("names and folders")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A current directory with one saved model, and an installed package with two."""
    (tmp_path / "saved_models" / "small").mkdir(parents=True)
    (tmp_path / "saved_models" / "small" / "config.json").write_text("{}")
    (tmp_path / "saved_models" / "unfinished").mkdir()
    site = tmp_path / "site"
    for name in ("of_small", "of_large"):
        (site / name).mkdir(parents=True)
        (site / name / "__init__.py").write_text("raise RuntimeError('it is imported')")
    facts = site / "some_models-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Name: some-models\nVersion: 1.0\n")
    entries = "[keras_transformer.models]\nsmall = of_small\nlarge = of_large\ngone = of_none\n"
    entries += "broken = of_none.inside\n"
    (facts / "entry_points.txt").write_text(entries)
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_folder_then_saved_models_then_packages(place):
    assert str(located("small")) == "saved_models/small"
    assert located("large") == place / "site" / "of_large"
    assert {"small", "large"} <= set(installed_models()) and not {"gone", "broken"} & set(
        installed_models()
    )
    for same in ("unfinished", "none", "./small", "saved_models/none", "a/b", "", "-x"):
        assert str(located(same)) == same.removeprefix("./") or str(located(same)) == "."
    (place / "large").mkdir()
    assert str(located("large")) == "large"
    assert located(place / "small") == place / "small"


def test_an_unknown_name_gets_a_list(place):
    message = (
        "saved_models/ has small, installed packages have .*large, small.*; `keras-transformer"
    )
    for kind in (Translator, TextClassifier):
        with pytest.raises(ValueError, match=f"tatoebas is not a saved .*: {message}"):
            kind.load("tatoebas")
    with pytest.raises(ValueError) as error:
        Translator.load("saved_models/tatoebas")
    assert known_models() not in str(error.value)
