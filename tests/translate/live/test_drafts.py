"""Drafts: what they begin with, and where their words attend."""

import numpy as np
import pytest

from keras_transformer.analysis.alignment import attention
from keras_transformer.search import LIVE
from keras_transformer.translate.live.drafts import _continued, draft, source_distances
from tests.small_translator import SHORT


@pytest.mark.once("test_live_loop.py searches with prefixes under each")
def test_a_draft_begins_with_the_written_words(translator):
    search = translator.options({"beam_size": 1, **SHORT}, LIVE, num_hypotheses=1)
    free = draft(translator, search, ["one", "two"], [], True)
    assert free.words == translator.translate(["one two"], beam_size=1, **SHORT)[0].split()
    bound = draft(translator, search, ["one", "two"], ["six", "ten"], True)
    assert bound.words[:2] == ["six", "ten"]


def test_distances_are_those_of_the_attention(translator):
    """One decoder layer: its mean over the heads, over the tokens of the text."""
    source, words = "eight nine six one", ["one", "seven", "two"]
    expected = attention(translator, source, " ".join(words))
    columns = [i for i, (start, end) in enumerate(expected.source_spans) if start < end]
    best_T = expected.cross[-1].mean(axis=0)[:, columns].argmax(axis=1)
    ends, distances = np.cumsum([len(x) + 1 for x in words]), []
    for start, end in zip([0, *ends], ends, strict=False):
        tokens = [t for t, (a, b) in enumerate(expected.target_spans) if start <= a < b <= end]
        distances.append(min(len(columns) - 1 - best_T[t] for t in tokens))
    assert source_distances(translator, source, words) == distances
    assert source_distances(translator, source, []) == []


@pytest.mark.once("lists: no tensor")
def test_the_last_written_word_only_gets_punctuation():
    assert _continued(["der", "alte"], ["der", "alten", "Mann"]) == ["der", "alte", "Mann"]
    assert _continued(["der", "alte"], ["der", "alte,", "Mann"]) == ["der", "alte,", "Mann"]
    assert _continued(["der", "alte"], ["der"]) == ["der", "alte"]
    assert _continued([], ["der"]) == ["der"]


@pytest.mark.once("text: no tensor is read")
def test_a_full_translation_gets_no_more_words(translator):
    search = translator.options(SHORT, LIVE, num_hypotheses=1)
    written = ["seven"] * translator.config.max_length
    assert draft(translator, search, ["one"], written, False).words == written
