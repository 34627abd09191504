"""The benchmark of texts' length: its texts, and a run on few and short ones."""

import sys

import pytest

from benchmarks import contest, text_length

pytestmark = pytest.mark.once("no backend takes part")


def test_texts_and_exponents():
    units = text_length.units()
    assert {"!", "。(", "\u200d?", "e\u0301!"} <= set(units) and len(units) > 4000
    assert text_length.repeated("ab", 5) == "ababa"
    assert text_length.exponent([10, 1000], [1.0, 100.0]) == pytest.approx(1)
    assert text_length.exponent([10, 1000], [1.0, 10_000.0]) == pytest.approx(2)


def test_a_run_on_short_texts(monkeypatch):
    monkeypatch.setattr(text_length, "units", lambda: [text_length.WORDS])
    monkeypatch.setattr(text_length, "SHORT", (10, 100))
    monkeypatch.setattr(text_length, "LONG", (1000,))
    monkeypatch.setattr(sys, "argv", ["text_length"])
    reports = []
    monkeypatch.setattr(contest, "report", lambda *parts: reports.append(parts))
    text_length.main()
    ((_, _, (note, table), save),) = reports
    assert "1 texts" in note and not save
    assert [line.split(" | ")[0] for line in table.splitlines()[2:3]] == ["| sentences"]
    assert table.count("\n") == 2 + 6 - 1
