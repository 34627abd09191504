"""Jobs from start to end, with workers in this process: resume, parts, failures, bad arguments."""

import errno
import json
import os
import re

import pytest

from keras_transformer.corpora import ShardError, job, score_corpus, translate_corpus
from keras_transformer.corpora.worker import METHODS, Worker
from keras_transformer.translate.translator import Translator


@pytest.fixture(autouse=True)
def asked(monkeypatch, translator):
    """The shards that were asked for; no process is started"""
    numbers = []

    def executor(values, shards, options):
        worker = Worker(json.loads(json.dumps(values)))
        for shard in shards:
            numbers.append(shard.number)
            while True:
                try:
                    yield worker.do(shard)
                    break
                except Exception:
                    worker = Worker(values)

    monkeypatch.setitem(job.EXECUTORS, "local", executor)
    monkeypatch.setattr(Translator, "load", lambda folder, **loading: translator)
    return numbers


def test_a_job_is_done_once(folder, source, expected, search, joined, tmp_path, asked):
    states = []
    report = lambda outcome: states.append((outcome.done, outcome.seconds_left))  # noqa: E731
    outcome = translate_corpus(
        folder, source, tmp_path / "out", shard_lines=10, report=report, **search
    )
    assert joined(tmp_path / "out") == expected and asked == [0, 1, 2, 3]
    assert outcome.lines == outcome.translated == 32 and outcome.rate > 0
    assert [done for done, _ in states] == [0, 1, 2, 3, 4]
    assert states[0][1] is None and states[-1][1] == 0
    (tmp_path / "out" / "shard-00000002.txt").write_text("damaged")
    outcome = translate_corpus(folder, source, tmp_path / "out", shard_lines=10, **search)
    assert asked[4:] == [2] and outcome.found == 3
    assert joined(tmp_path / "out") == expected


def test_parts_do_their_own_shards(folder, source, expected, search, joined, tmp_path, asked):
    options = dict(shard_lines=5, **search)
    plan = translate_corpus(folder, source, tmp_path / "out", only_plan=True, **options)
    assert plan.shards == 7 and asked == []
    for part in ("1/3", "0/3", "2/3"):
        translate_corpus(folder, source, tmp_path / "out", shard=part, **options)
    assert asked == [1, 4, 0, 3, 6, 2, 5] and joined(tmp_path / "out") == expected


def test_a_shard_that_fails_is_set_apart_and_the_others_are_done(
    folder, source, search, tmp_path, monkeypatch, asked
):
    method = METHODS["translate"]

    def failing(translator, records, options):
        if ("ten one ten",) in records:
            raise RuntimeError("no memory")
        return method(translator, records, options)

    monkeypatch.setitem(METHODS, "translate", failing)
    options = dict(shard_lines=4, **search)
    with pytest.raises(ShardError, match="4 of 8 shards failed.*RuntimeError: no memory") as told:
        translate_corpus(folder, source, tmp_path / "out", **options)
    assert told.value.outcome.done == 4
    assert next(iter(told.value.outcome.failed)).startswith("shard-00000001 (lines 5 to 8 of ")
    monkeypatch.setitem(METHODS, "translate", method)
    outcome = translate_corpus(folder, source, tmp_path / "out", **options)
    assert outcome.done == 8 and not list((tmp_path / "out").glob("*.failed.json"))


def test_scores_and_nbest_are_json(folder, source, search, tmp_path, translator, lines):
    options = dict(shard_lines=20)
    translate_corpus(folder, source, tmp_path / "n", num_hypotheses=2, **options, **search)
    shards = sorted((tmp_path / "n").glob("shard-*.jsonl"))
    found = [json.loads(x) for shard in shards for x in shard.read_text().splitlines()]
    assert len(found) == len(lines) and len(found[0]) == 2
    score_corpus(folder, source, tmp_path / "scores", targets=source, **options)
    shards = sorted((tmp_path / "scores").glob("shard-*.jsonl"))
    found = [json.loads(x) for shard in shards for x in shard.read_text().splitlines()]
    scores = [one["log_probability"] for one in found]
    assert scores == pytest.approx(translator.score(lines, lines), abs=1e-3)


def test_bad_arguments_are_refused_before_any_work(folder, source, tmp_path):
    def refused(message, inputs=source, model=folder, **options):
        with pytest.raises((ValueError, OSError), match=re.escape(message)):
            translate_corpus(model, inputs, tmp_path / "out", **options)
        assert not (tmp_path / "out").exists()

    refused("beam_size must be a whole number of at least 1, got 0", beam_size=0)
    refused("num_hypotheses must be at most beam_size=4, got 5", num_hypotheses=5)
    refused("tokens_per_batch must be a whole number", tokens_per_batch=0)
    refused("inputs: there is no file or folder nowhere", inputs="nowhere")
    refused("is not a saved model: it has no config.json", model=tmp_path)
    with pytest.raises(TypeError, match="sampling is not an option here"):
        translate_corpus(folder, source, tmp_path / "out", sampling=1)
    with pytest.raises(ValueError, match="targets must have a file for each of the inputs"):
        score_corpus(folder, source, tmp_path / "out", targets=[source, source])


def test_a_full_disk_stops_the_job(folder, source, tmp_path, monkeypatch):
    def full(number):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    translate_corpus(folder, source, tmp_path / "out", only_plan=True)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: .*shard-00000000.txt"):
        translate_corpus(folder, source, tmp_path / "out")
    left = {x.name for x in (tmp_path / "out").iterdir()}
    assert "manifest.json" in left and not [x for x in left if "shard" in x]


def test_a_model_that_cannot_be_loaded_is_told(folder, source, tmp_path, monkeypatch):
    def load(folder, **loading):
        raise ValueError("target_language must be one of 2 codes")

    monkeypatch.setattr(Translator, "load", load)
    with pytest.raises(ValueError, match="target_language must be one of 2 codes"):
        translate_corpus(folder, source, tmp_path / "out")
