"""Replies that are no translations: cut where a rule says so, and counted."""

import pytest

from keras_transformer.text.translation_prompt import TranslationPrompt
from keras_transformer.translate.engines.engine import Hypothesis
from keras_transformer.translate.reply_checks import checked_replies


class Asks:
    """A tokenizer of which only the prompt is read."""

    prompt = TranslationPrompt("Translate into {target}:\n{text}", stop=("\n", "(Note"))
    instruction = "Translate into German:"


def checked(*pairs):
    lists = [[Hypothesis(reply, -1.0), Hypothesis("x", -2.0)] for _, reply in pairs]
    results = checked_replies(Asks, [text for text, _ in pairs], lists)
    assert all(x[1] == Hypothesis("x", -2.0) and x[0].score == -1.0 for x in results)
    return [x[0].text for x in results]


@pytest.mark.filterwarnings("error")
def test_translations_are_kept():
    assert checked(("Yes.", "Ja."), ("", ""), ("a\nb", "c\nd")) == ["Ja.", "", "c\nd"]


def test_other_replies_are_counted_and_explanations_cut():
    counts = "1 an explanation, cut off, 1 empty, 1 the prompt again; such as '' for 'One'"
    with pytest.warns(UserWarning, match=f"3 of 4 replies .*: {counts}"):
        texts = checked(
            ("One", ""),
            ("Two", "Translate into German: Two"),
            ("Three", "Drei\nThis means three."),
            ("Four", "Vier"),
        )
    assert texts == ["", "Translate into German: Two", "Drei", "Vier"]


def test_an_introduction_is_cut_off_unless_the_source_has_one():
    with pytest.warns(UserWarning, match="3 of 3 replies .*: 3 an explanation, cut off"):
        texts = checked(
            ("One", "Here is the translation:\n\nEins\nHope it helps!"),
            ("Two:", "Zwei:\n(2)"),
            ("Three", "Drei:\n"),
        )
    assert texts == ["Eins", "Zwei:", "Drei:"]


def test_a_rule_of_ones_own_cuts_and_never_leaves_nothing():
    with pytest.warns(UserWarning, match="2 an explanation"):
        assert checked(("a\nb", "c\nd (Note: e)"), ("a", "(Note b")) == ["c\nd", "(Note b"]
