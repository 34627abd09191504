"""Searches asked of CTranslate2: batches, lengths to look at, ends without a look."""

import pytest

from keras_transformer.search import Search
from keras_transformer.translate.engines.ctranslate2_search import STEP, Row, RowSearch, shares

TEXTS = ["one two", "three", "eight nine six one five five two", "two", "six six six one"] * 3


@pytest.fixture
def asked(theirs, monkeypatch):
    """What is asked of CTranslate2: of each call the numbers of rows and of tokens, and options."""
    calls, beams = [], theirs._engine.beams

    def spy(rows, beam_size, length, **options):
        calls.append((len(rows), max(len(x.source) for x in rows), length, options))
        return beams(rows, beam_size, length, **options)

    monkeypatch.setattr(theirs._engine, "beams", spy)
    return calls


def rows_of(translator, texts, limit=30):
    engine, ids = translator._engine, translator.tokenizer.encode_source(texts)
    return [Row(engine._tokens("source", x), (), limit) for x in ids]


def found_by(translator, search, tokens_per_batch=4096, growth=1.0):
    rows = rows_of(translator, TEXTS)
    RowSearch(translator._engine, search, tokens_per_batch, growth).run(rows)
    return [row.found and [x.ids for x in row.found] for row in rows]


@pytest.mark.once("made of parts that are tested under each backend")
def test_a_wrong_guess_of_the_length_costs_only_time(theirs, asked):
    search = Search(num_hypotheses=3)
    expected = found_by(theirs, search)
    looks = len(asked)
    assert found_by(theirs, search, growth=0.01) == expected
    assert len(asked) - looks != looks
    assert found_by(theirs, search, growth=9.0) == expected
    assert {length % STEP for _, _, length, _ in asked} <= {0, 29 % STEP}


def test_batches_have_a_token_budget(theirs, asked):
    expected = found_by(theirs, Search(num_hypotheses=1))
    asked.clear()
    assert found_by(theirs, Search(num_hypotheses=1), tokens_per_batch=16) == expected
    assert all(rows * tokens <= 16 for rows, tokens, *_ in asked)
    assert max(rows for rows, *_ in asked) > 1


def test_a_best_sum_needs_no_look(theirs, asked):
    found = found_by(theirs, Search(length_penalty=0.0, num_hypotheses=1))
    (rows, _, _, options), *others = asked
    assert rows == len(TEXTS) and options["length_penalty"] == 0
    # Only those whose best beam does not end by itself are looked at.
    looked = max(sum(x[0] for x in others if x[2] == length) for length in range(30))
    assert looked < len(TEXTS)
    plain = found_by(theirs, Search(length_penalty=1e-6, num_hypotheses=1))
    assert found == plain


def test_greedy_search_is_cut_at_the_limit(theirs, asked):
    rows = rows_of(theirs, TEXTS, limit=4)
    RowSearch(theirs._engine, Search(beam_size=1), 4096, 1.0).run(rows)
    assert len(asked) == 1
    assert all(len(row.found[0].ids) <= 4 and row.found[0].ended for row in rows)


@pytest.mark.once("numbers alone")
def test_shares():
    assert list(shares([], 8)) == []
    found = list(shares([3, 1, 4], 8))
    assert sorted(i for one in found for i in one) == [0, 1, 2] and 2 in found[0]
