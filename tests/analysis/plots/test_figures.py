"""Tests of fonts, and of a missing matplotlib."""

import builtins

import pytest

from keras_transformer.analysis import plots
from keras_transformer.analysis.plots.figures import families_for

pytest.importorskip("matplotlib")

from matplotlib import font_manager


def test_fonts_for_any_script():
    families = families_for("dog собака 犬")
    assert families[0] == "DejaVu Sans" and len(families) <= 2
    assert families_for("dog собака") == ["DejaVu Sans"]
    installed = {font.name for font in font_manager.fontManager.ttflist}
    assert set(families) <= installed and not any("Last Resort" in x for x in families)


def test_without_matplotlib(monkeypatch):
    real = builtins.__import__

    def without(name, *rest, **options):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(
        ImportError, match='drawing needs the extra "plots": pip install "matplotlib>='
    ):
        plots.positional_encoding(8, 5)
