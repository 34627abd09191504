"""Tests of keras_transformer.data.cleaning."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_transformer.data.cleaning import (
    CleaningReport,
    DuplicateFilter,
    are_exchanged,
    clean,
    screened,
)

# Few different characters, so that empty, equal and repeated texts turn up often.
TEXTS = st.text(alphabet="ab \u00a0\u2028\t猫", max_size=12)
PAIRS = st.lists(st.tuples(TEXTS, TEXTS), max_size=30)


def reasons(report: CleaningReport) -> dict[str, int]:
    return {name: count for name, count in dataclasses.asdict(report).items() if count}


@pytest.mark.parametrize(
    ("pair", "reason"),
    [
        (("A dog runs.", "Ein Hund läuft."), "kept"),
        (("", "Ein Hund läuft."), "empty"),
        (("A dog runs.", " \u00a0\u2028\u3000\t"), "empty"),
        (("A dog runs.", "A dog  runs."), "identical"),
        (("a " * 251, "b " * 250), "too_long"),
        (("a " * 250, "b " * 251), "too_long"),
        (("a " * 250, "b " * 250), "kept"),
        (("a b c d e", "f"), "length_ratio"),
        (("f", "a b c d e"), "length_ratio"),
        (("a b c d", "f"), "kept"),
    ],
)
def test_each_reason(pair, reason):
    kept, report = clean([pair])
    assert reasons(report) == {reason: 1}
    assert len(kept) == (reason == "kept")


def test_duplicates_go_and_other_translations_stay():
    pairs = [("Run!", "Lauf!"), ("Run!", "Lauft!"), (" Run!", "Lauf!\u00a0"), ("Go!", "Lauf!")]
    kept, report = clean(pairs)
    assert kept == [("Run!", "Lauf!"), ("Run!", "Lauft!"), ("Go!", "Lauf!")]
    assert reasons(report) == {"kept": 3, "duplicate": 1}


def test_white_space_becomes_single_spaces_and_the_rest_is_untouched():
    decomposed = "cafe\u0301 \ufb01n"  # neither composed nor compatibility-mapped
    ((source, target),), _ = clean([(f"\u2028{decomposed}\u202f\u2009!\r", "ein\tCafé\n\nhier ")])
    assert source == f"{decomposed} !"
    assert target == "ein Café hier"


def test_characters_count_as_words_in_chinese_and_japanese():
    pair = ("The cat sleeps on the chair.", "猫は椅子の上で寝ています。")
    assert len(clean([pair])[0]) == 1  # one word without spaces, yet no length ratio of 6
    assert reasons(clean([pair], max_words=12)[1]) == {"too_long": 1}  # 12 characters and a stop
    assert reasons(clean([pair], max_words=13)[1]) == {"kept": 1}
    assert reasons(clean([("Cat.", "猫は椅子の")])[1]) == {"length_ratio": 1}


def test_limits_can_be_moved_and_lifted():
    pairs = [("a b c", "d"), ("same", "same"), ("w " * 1000, "v " * 1000)]
    assert reasons(clean(pairs, max_length_ratio=2.5, drop_identical=False)[1]) == {
        "length_ratio": 1,
        "kept": 1,
        "too_long": 1,
    }
    free = clean(pairs, max_words=None, max_length_ratio=None, drop_identical=False)
    assert reasons(free[1]) == {"kept": 3}


@settings(deadline=None)
@given(PAIRS)
def test_invariants(pairs):
    kept, report = clean(pairs, max_words=4, max_length_ratio=2)
    assert report.kept == len(kept) == len(set(kept))
    assert report.kept + report.dropped == len(pairs)
    assert clean(kept, max_words=4, max_length_ratio=2) == (
        kept,
        CleaningReport(len(kept), *[0] * 5),
    )
    normalized = [tuple(" ".join(text.split()) for text in pair) for pair in pairs]
    positions = [normalized.index(pair) for pair in kept]
    assert positions == sorted(positions)  # in the order of their first occurrence
    assert clean(iter(pairs), max_words=4, max_length_ratio=2) == (kept, report)


def test_the_first_filter_that_applies_gives_the_reason():
    asked = []

    def short(source, target):
        asked.append(source)
        return "short" if len(source) < 3 else None

    pairs = [("a", "b"), ("a  b", "c"), ("a b", "c\u2028"), ("a", "b")]
    found = list(screened(iter(pairs), [short, DuplicateFilter()]))
    assert [reason for *_, reason in found] == ["short", None, "duplicate", "short"]
    assert found[2][:2] == ("a b", "c") and asked == ["a", "a b", "a b", "a"]


def test_report_is_one_line_with_every_count():
    text = str(CleaningReport(29_001, 2, 3, 4, 5, 6))
    assert "\n" not in text
    for part in (
        "29,001 of 29,021",
        "2 empty",
        "3 identical",
        "4 too long",
        "5 by length ratio",
        "6 duplicate",
    ):
        assert part in text


@pytest.mark.parametrize("argument", ["max_words", "max_length_ratio"])
@pytest.mark.parametrize("limit", [0, 0.5, -1, float("nan")])
def test_limits_below_one_are_refused(argument, limit):
    with pytest.raises(ValueError, match=rf"{argument} must be at least 1.*got {limit}"):
        clean([("a", "b")], **{argument: limit})


def test_exchanged_sides():
    known = [("a man sleeps", "ein Mann schläft"), ("the dog", "der Hund"), ("猫 cat", "Katze 2")]
    assert not are_exchanged([("a dog sleeps", "ein Hund schläft")], known)
    assert are_exchanged([("ein Hund schläft", "a dog sleeps")], known)
    assert not are_exchanged([("犬", "Hündin")], known) and not are_exchanged([], known)
    same = [("one two", "two one"), ("three", "three four")]
    assert not are_exchanged(same, same)
