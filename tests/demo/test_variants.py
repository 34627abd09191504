"""The sentences of the corpus in the forms in which people type them."""

import pytest

from keras_transformer import demo

MARKS = str.maketrans("", "", ",.?")


@pytest.fixture(scope="module")
def corpus():
    return demo.pairs(10_000)


def plain(text):
    """The text without what a variant changes."""
    return " ".join(text.lower().translate(MARKS).split())


def test_ways_of_writing():
    pair = ("Is Anna, my aunt, ill?", "Ist Anna, meine Tante, krank?")
    lines = list(demo.varied([pair] * 500, share=1, joined=0))
    assert {target for _, target in lines} == {pair[1]}
    assert {source for source, _ in lines} == {
        "Is Anna , my aunt , ill ?",
        "Is Anna, my aunt, ill",
        "is Anna, my aunt, ill?",
        "is Anna , my aunt , ill ?",
        "is Anna, my aunt, ill",
        "is anna, my aunt, ill?",
        "is anna , my aunt , ill ?",
        "is anna, my aunt, ill",
    }


def test_varied_and_joined_lines_hold_the_same_sentences(corpus):
    pairs = corpus[:2_000]
    assert list(demo.varied(pairs, share=0, joined=0)) == pairs
    lines = list(demo.varied(pairs, share=0.5, joined=0.5))
    assert " ".join(target for _, target in lines) == " ".join(german for _, german in pairs)
    sources, sentences = ([plain(source) for source, _ in part] for part in (lines, pairs))
    assert " ".join(sources) == " ".join(sentences)
    assert 800 < len(lines) < 1_200
    assert max(target.count(". ") for _, target in lines) > 3


def test_shares_of_varied_and_joined_lines(corpus):
    pairs = corpus[:10_000]
    typed = list(demo.varied(pairs, share=0.25, joined=0))
    assert 0.23 < sum(line != pair for line, pair in zip(typed, pairs, strict=True)) / 10_000 < 0.27
    assert 0.89 < len(list(demo.varied(pairs, joined=0.1))) / 10_000 < 0.91


def test_variants_are_deterministic_and_prefix_stable(corpus):
    lines = list(demo.varied(corpus[:300], seed=3, joined=0))
    assert lines[:100] == list(demo.varied(corpus[:100], seed=3, joined=0))
    assert lines != list(demo.varied(corpus[:300], seed=4, joined=0))


def test_no_variant_is_another_sentence(corpus):
    """So that a held-out sentence is in no line of the training text, varied or joined."""
    for side in (0, 1):
        sample = [pair[side] for pair in corpus[:100_000]]
        sentences = {plain(sentence) for sentence in sample}
        assert len(sentences) == len(sample)
        ends = [sentence.split("? ")[1] for sentence in sample if "? " in sentence]
        assert ends and not sentences.intersection(map(plain, ends))


@pytest.mark.parametrize("joined", [-0.1, 1])
def test_lines_without_end(joined):
    with pytest.raises(ValueError, match=rf"joined must be in \[0, 1\), got {joined}"):
        next(demo.varied([("One.", "Eins.")], joined=joined))
