"""Noise in training pairs: each change on known text, shares, repeatable draws, a training run."""

import numpy as np
import pytest

from keras_transformer.training import noise
from keras_transformer.training.noise import with_noise
from keras_transformer.training.recipe import TranslationRecipe

pytestmark = pytest.mark.once("made of plain text")
PAIRS = [(f"Hello, friend {i}!", f"Hallo, Freund {i}!") for i in range(2000)]


class Draws:
    """A generator whose integers are all the same."""

    def __init__(self, integer):
        self._integer = integer

    def integers(self, *_, size=None):
        return self._integer if size is None else [self._integer] * size

    def choice(self, items, size=None):
        return items[self._integer] if size is None else [items[self._integer]] * size

    def random(self):
        return 0.5


@pytest.mark.parametrize(
    ("change", "integer", "source", "target"),
    [
        (noise._lower, 0, "is it tom?", "Ist es Tom?"),
        (noise._capitals, 0, "IS IT TOM?", "IST ES TOM?"),
        (noise._unmarked, 0, "Is it Tom", "Ist es Tom?"),
        (noise._with_emoji, 0, "Is it Tom? 😀", "Ist es Tom? 😀"),
        (noise._with_copied, 6, "Is it Tom? (6)", "Ist es Tom? (6)"),
        (noise._in_tags, 0, "<b>Is it Tom?</b>", "<b>Ist es Tom?</b>"),
        (noise._joined, 1, "Is it Tom? Yes.", "Ist es Tom? Ja."),
    ],
)
def test_changes(change, integer, source, target):
    pairs = [("No.", "Nein."), ("Yes.", "Ja.")]
    assert change("Is it Tom?", "Ist es Tom?", Draws(integer), pairs) == (source, target)


@pytest.mark.parametrize(("kind", "word"), [(0, "Hlelo"), (1, "Hllo"), (2, "Heello")])
def test_a_typo_exchanges_drops_or_doubles_a_letter(kind, word, monkeypatch):
    draws = iter([0, 1, kind])
    generator = Draws(0)
    generator.integers = lambda *_: next(draws)
    assert noise._with_typo("Hello!", "Hallo!", generator, []) == (f"{word}!", "Hallo!")
    assert noise._with_typo("It is", "Es ist", generator, []) == ("It is", "Es ist")


def test_what_is_copied_is_on_both_sides():
    rng = np.random.default_rng(0)
    for make in noise.COPIED:
        text = make(rng)
        assert text and text == text.strip() and "\n" not in text


def test_what_is_copied_stands_alone_too():
    rng = np.random.default_rng(0)
    pairs = [noise._copied_alone("Hello", "Hallo", rng, []) for _ in range(500)]
    assert all(source == target and "Hello" not in source for source, target in pairs)
    texts = " ".join(source for source, _ in pairs)
    assert all(any(x in texts for x in letters) for letters in noise.SCRIPTS)
    assert "https://" in texts and any(source in noise.MARKS for source, _ in pairs)


def test_shares_and_seeds():
    assert with_noise(PAIRS, 0) == PAIRS
    changed = with_noise(PAIRS, 0.3, seed=1)
    share = np.mean([new != old for new, old in zip(changed, PAIRS, strict=True)])
    assert share == pytest.approx(0.3, abs=0.04)
    assert changed == with_noise(PAIRS, 0.3, seed=1) != with_noise(PAIRS, 0.3, seed=2)
    assert all(source and target for source, target in with_noise(PAIRS, 1.0))
    assert with_noise([], 0.5) == []


def test_bad_arguments():
    with pytest.raises(ValueError, match=r"share must be in \[0, 1\], got 2"):
        with_noise(PAIRS, 2)
    with pytest.raises(ValueError, match="pairs"):
        with_noise(["one text"], 0.5)
    with pytest.raises(ValueError, match=r"noise must be 0 with context_sentences, got 0.1"):
        TranslationRecipe(noise=0.1, context_sentences=2)
