"""Fixtures of tests of plots: nothing is left in pyplot."""

import io

import pytest


@pytest.fixture(scope="session")
def drawn():
    """`drawn(figure)`: that it can be drawn, and the texts that are seen."""
    pyplot = pytest.importorskip("matplotlib._pylab_helpers")

    def texts_of(figure):
        figure.savefig(io.BytesIO(), format="svg")
        texts = [text for axes in figure.axes for text in axes.texts]
        labels = [
            x for axes in figure.axes for x in (*axes.get_xticklabels(), *axes.get_yticklabels())
        ]
        assert not pyplot.Gcf.figs  # what pyplot holds on to
        return [x.get_text() for x in (*texts, *labels)]

    return texts_of
