"""Ray's actors translate what one process does; a GPU that is not there is told at once."""

import sys

import pytest

from keras_transformer import translate_corpus


def test_ray_translates_as_one_process_does(folder, source, expected, search, joined, tmp_path):
    pytest.importorskip("ray.data", reason="Ray is not installed")
    options = dict(executor="ray", shard_lines=8, **search)
    outcome = translate_corpus(folder, source, tmp_path / "out", **options)
    assert outcome.done == outcome.shards == 4 and joined(tmp_path / "out") == expected


def test_more_gpus_than_the_cluster_has_are_refused(folder, source, tmp_path, monkeypatch):
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    nodes = [{"Alive": True, "Resources": {"CPU": 64.0, **gpus}} for gpus in ({"GPU": 3.0}, {})]
    monkeypatch.setattr(ray, "nodes", lambda: [*nodes, nodes[0]])
    options = dict(executor="ray", shard_lines=1, processes=20, min_processes=3)
    message = r"gpus must be few enough for 3 actors on machines with \[3.0, 0, 3.0\] GPUs, got 2"
    with pytest.raises(ValueError, match=message):
        translate_corpus(folder, source, tmp_path / "out", gpus=2, **options)


def test_a_missing_ray_is_named(folder, source, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match='executor="ray" needs the extra "ray": pip install'):
        translate_corpus(folder, source, tmp_path / "out", executor="ray")
