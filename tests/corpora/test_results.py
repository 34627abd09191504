"""A shard is written whole or not at all, and its failures are counted."""

import errno
import json
import os

import pytest

from keras_transformer.corpora.results import Results
from keras_transformer.corpora.shards import Shard

SHARD = Shard(12, 0, 2, (("a.txt", ("text",), 0),))


@pytest.fixture
def results(tmp_path):
    return Results(tmp_path, ".txt", "run")


def names(folder):
    return sorted(x.name for x in folder.iterdir())


def test_a_shard_is_done_when_lines_and_hash_are_those_noted(results, tmp_path):
    assert not results.is_done(SHARD)
    results.write(SHARD, ["eins", "zwei"])
    assert names(tmp_path) == ["shard-00000012.json", "shard-00000012.txt"]
    path = results.path(SHARD)
    assert path.read_bytes() == b"eins\nzwei\n" and results.is_done(SHARD)
    assert json.loads((tmp_path / "shard-00000012.json").read_text())["lines"] == 2
    for damaged in (b"eins\nzwey\n", b"eins\n", b""):
        path.write_bytes(damaged)
        assert not results.is_done(SHARD)
    results.write(SHARD, ["eins", "zwei"])
    (tmp_path / "shard-00000012.json").write_text("{")
    assert not results.is_done(SHARD)


def test_the_lines_must_be_those_of_the_shard(results, tmp_path):
    with pytest.raises(RuntimeError, match="became 1 lines"):
        results.write(SHARD, ["eins"])
    assert names(tmp_path) == []


def test_a_full_disk_leaves_nothing(results, tmp_path, monkeypatch):
    def full(number):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: .*shard-00000012.txt"):
        results.write(SHARD, ["eins", "zwei"])
    assert names(tmp_path) == []


def test_attempts_are_counted_and_the_last_error_is_kept(results, tmp_path):
    results.begin(SHARD)
    results.failed(SHARD, "no\nmemory")
    results.begin(SHARD)
    assert results.attempts(SHARD) == 2
    other = Results(tmp_path, ".txt", "another run")
    assert other.attempts(SHARD) == 0
    other.begin(SHARD)
    assert results.set_apart(SHARD) == "the worker process died"
    note = json.loads((tmp_path / "shard-00000012.failed.json").read_text())
    assert note["attempts"] == 2 and note["shard"].startswith("shard-00000012 (lines 1 to 2 of a")
    assert results.attempts(SHARD) == 0
    results.begin(SHARD)
    results.failed(SHARD, "no\nmemory")
    assert results.set_apart(SHARD) == "no memory"
    results.write(SHARD, ["eins", "zwei"])
    assert results.is_done(SHARD)
    noted = tmp_path / "shard-00000012.json"
    for name in ("lines", "bytes", "sha256"):
        whole = noted.read_text()
        noted.write_text(whole.replace(name, "other"))
        assert not results.is_done(SHARD)
        noted.write_text(whole)
    assert not (tmp_path / "shard-00000012.failed.json").exists()
    results.clean([])
    assert (left := list(tmp_path.glob(".*"))) and "another run" in left[0].name
    results.clean([SHARD])
    assert not list(tmp_path.glob(".*"))
