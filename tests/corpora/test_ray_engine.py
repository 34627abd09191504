"""Ray's actors translate what one process does; a GPU that is not there is told at once."""

import sys

import pytest

from keras_transformer import translate_corpus


def test_ray_translates_as_one_process_does(folder, source, expected, search, joined, tmp_path):
    pytest.importorskip("ray.data", reason="Ray is not installed")
    options = dict(engine="ray", shard_lines=8, **search)
    outcome = translate_corpus(folder, source, tmp_path / "out", **options)
    assert outcome.done == outcome.shards == 4 and joined(tmp_path / "out") == expected


def test_more_gpus_than_the_cluster_has_are_refused(folder, source, tmp_path, monkeypatch):
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    monkeypatch.setattr(ray, "cluster_resources", lambda: {"CPU": 64.0, "GPU": 8.0})
    options = dict(engine="ray", shard_lines=1, processes=20, min_processes=10)
    with pytest.raises(ValueError, match=r"gpus must be at most 0.8 for 10 actors.*got 1"):
        translate_corpus(folder, source, tmp_path / "out", gpus=1, **options)


def test_a_missing_ray_is_named(folder, source, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match='engine="ray" needs the extra "ray": pip install'):
        translate_corpus(folder, source, tmp_path / "out", engine="ray")
