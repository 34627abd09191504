"""The benchmark of cleaning: its kinds of noise, and a run on little text."""

import random
import sys

import pytest

from benchmarks import cleaning, contest
from tests.docs import data_sets

pytestmark = pytest.mark.once("no backend takes part")

PAIRS = [
    (f"The man from house {i} walks to house {i}.", f"Der Mann aus Haus {i} läuft zu Haus {i}.")
    for i in range(44)
]


def test_each_kind_is_noise():
    french = [f"L'homme numéro {i} marche sur l'herbe verte." for i in range(22)]
    noise = cleaning.kinds(PAIRS[:22], french, PAIRS[22:], random.Random(0))
    assert len(noise) == cleaning.KINDS
    good = dict(zip([x for x, _ in PAIRS[:22]], zip([y for _, y in PAIRS], french, strict=False),
                    strict=True))  # fmt: skip
    for name, pairs in noise.items():
        assert len(pairs) == 2 and not set(pairs) & set(PAIRS), name
    assert all(good[x][1] == y for x, y in noise["French"])
    assert all(good[y][0] == x for x, y in noise["swapped sides"])
    assert all("lÃ¤uft" in y and good[x] for x, y in noise["broken encoding"])


def test_what_a_filter_finds():
    found = cleaning.measured(PAIRS[:4], {"a": [("x", "")] * 2, "b": [("x", ""), ("x", "y")]},
                              lambda x, y: None if y else "empty")  # fmt: skip
    assert found == {"": 0, "a": 1, "b": 0.5}


def test_a_run(tmp_path, monkeypatch, capsys):
    data_sets.write(tmp_path, PAIRS)
    for part in ("train", "val", "test_2016_flickr", "test_2017_flickr"):
        file = tmp_path / f"multi30k/{part}.de.gz"  # German takes the place of French
        file.with_name(f"{part}.fr.gz").write_bytes(file.read_bytes())
    monkeypatch.setattr(contest, "report", lambda name, title, parts, save: print(*parts))
    sizes = ["--clean", "10", "--noisy", "2"]
    monkeypatch.setattr(sys, "argv", ["cleaning", "--data-folder", f"{tmp_path}/multi30k", *sizes])
    cleaning.main()
    table = {row.split("|")[1].strip(): row for row in capsys.readouterr().out.splitlines()
             if row.startswith("|")}  # fmt: skip
    assert "untranslated 100.0" in table["length, identical"]
    assert "broken encoding 100.0" in table["encoding"]
    assert "| 0.00 |" in table["language"]
    assert {"near_duplicate", "all, in order"} <= table.keys()
