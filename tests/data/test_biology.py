"""Files of proteins and DNA: what is in them, and what is wrong with them."""

import os
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from keras_transformer.data.biology import (
    overlapping_words,
    read_fasta,
    read_splice_junctions,
    read_structures,
)

FILES = {
    "sequences": ">a\nMKV\n>b\nGG\nA\n>c\nWY\n",
    "mask": ">a\n011\n>b\n111\n>c\n10\n",
    "sampled": ">a SET=train VALIDATION=False\nCHH\n>b SET=train VALIDATION=True\nEEC\n"
    ">c SET=test VALIDATION=False\nHC\n",
}


def archive(path, **changes):
    with zipfile.ZipFile(path, "w") as file:
        for name, text in (FILES | changes).items():
            file.writestr(f"splits/{name}.fasta", text)
    return path


def test_fasta():
    assert read_fasta([">a x", "AC", "", "GT ", ">b"]) == {"a x": "ACGT", "b": ""}
    with pytest.raises(ValueError, match="x.fasta, line 1 must be a header, got 'AC'"):
        read_fasta(["AC"], "x.fasta")
    with pytest.raises(ValueError, match="line 2: the header 'a' occurs twice"):
        read_fasta([">a", ">a"])


def test_structures(tmp_path):
    assert read_structures(archive(tmp_path / "x.zip")) == {
        "train": [("MKV", "-HH")],
        "validation": [("GGA", "EEC")],
        "test": [("WY", "H-")],
    }


@pytest.mark.parametrize(
    "changes,message",
    [
        (dict(mask=">a\n01\n>b\n111\n>c\n10\n"), "'a SET=train VALIDATION=False' must have a part"),
        (dict(sequences=">a\nMKV\n>b\nGGA\n"), "'c SET=test VALIDATION=False' must have a part"),
        (dict(sampled=">a SET=dev\nCHH\n"), "'a SET=dev' must have a part, residues and a mask"),
        (dict(sampled=">a SET=test\nCXH\n"), "'a SET=test' must have structures in 'CEH', got 'X'"),
    ],
)
def test_archives_that_are_not_whole(changes, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        read_structures(archive(tmp_path / "x.zip", **changes))


def test_no_archive(tmp_path):
    (tmp_path / "x.zip").write_text("x")
    with pytest.raises(ValueError, match="x.zip must be a complete zip file"):
        read_structures(tmp_path / "x.zip")
    with zipfile.ZipFile(tmp_path / "y.zip", "w"):
        pass
    with pytest.raises(ValueError, match="y.zip is not FLIP's archive of structures"):
        read_structures(tmp_path / "y.zip")


def test_splice_junctions(tmp_path):
    path = tmp_path / "splice.data"
    path.write_text("EI,   ONE,    ACGT\n\nN, TWO, ACGN\nIE,THREE,ACGT\n")
    assert read_splice_junctions(path) == {"ACGT": "EI", "ACGN": "N"}
    for text, message in (
        ("EI, ACGT\n", "line 1 must be class, name, bases, got 'EI, ACGT'"),
        ("EI, x, ACGT\nN, y, ACG\n", "line 2 must have 4 bases like the first, got 3"),
        ("\n", "must have a sequence, got none"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            read_splice_junctions(path)


@pytest.mark.skipif("KT_DATA" not in os.environ, reason="KT_DATA is not set")
def test_the_real_files():
    data = Path(os.environ["KT_DATA"])
    parts = read_structures(data / "protein-flip-ss" / "splits.zip")
    assert {part: len(rows) for part, rows in parts.items()} == {
        "train": 9712,
        "validation": 1080,
        "test": 364,
    }
    assert not {x for x, _ in parts["train"]} & {x for x, _ in parts["test"]}
    found = Counter(letter for _, structure in parts["train"] for letter in structure)
    assert set(found) == set("CEH-")
    assert len(read_splice_junctions(data / "dna-splice" / "splice.data.gz")) == 3005


def test_overlapping_words():
    assert overlapping_words(" ACGTA\n", 3) == "ACG CGT GTA"
    assert overlapping_words("ACGTA", 1) == "A C G T A"
    assert overlapping_words("AC", 3) == "AC" and overlapping_words("", 3) == ""
