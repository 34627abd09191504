"""A worker's answers, with a model and without one."""

import errno
import json
import os
import warnings

import pytest

from keras_transformer.corpora import worker as module
from keras_transformer.corpora.shards import counted, split
from keras_transformer.corpora.worker import METHODS, Worker
from keras_transformer.translate.translator import Translator
from tests.small_translator import MAX_LENGTH, SHORT, TEXTS


@pytest.fixture
def worker(tmp_path, monkeypatch):
    """`worker(method, run)`: a worker without a model; `method(texts)` returns lines"""
    monkeypatch.setattr(Translator, "load", lambda folder, **loading: folder)

    def make(method, run="run"):
        call = lambda model, records, options: method([text for (text,) in records])  # noqa: E731
        monkeypatch.setitem(METHODS, "test", call)
        (tmp_path / "out").mkdir(exist_ok=True)
        output = str(tmp_path / "out")
        job = dict(method="test", model="", loading={}, options={}, suffix=".txt", run=run)
        return Worker({**job, "output": output})

    return make


@pytest.fixture
def shard(tmp_path):
    (tmp_path / "a").write_text("one\ntwo\n")
    (shard,) = split([[counted(str(tmp_path / "a"), ("text",), 5)]], 5)
    return shard


def fail(error):
    def method(texts):
        raise error

    return method


def test_a_shard_is_written_once(worker, shard):
    calls = []
    one = worker(lambda texts: calls.append(texts) or [text.upper() for text in texts])
    assert one.do(shard) == one.do(shard) == {"number": 0, "lines": 2}
    assert one.results.path(shard).read_text() == "ONE\nTWO\n" and len(calls) == 1


def test_the_third_failure_sets_a_shard_apart(worker, shard):
    one = worker(fail(RuntimeError("no memory")))
    for _ in range(3):
        with pytest.raises(RuntimeError, match="no memory"):
            one.do(shard)
    assert one.do(shard)["error"] == "RuntimeError: no memory"
    assert (one.results.folder / "shard-00000000.failed.json").exists()
    assert "error" not in worker(lambda texts: texts, run="next").do(shard)
    assert len(list(one.results.folder.iterdir())) == 2  # the shard and its note


def test_what_no_attempt_can_change_is_not_tried_again(worker, shard):
    assert worker(fail(ValueError("texts too long"))).do(shard)["error"] == "texts too long"
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert "No space left on device" in worker(fail(full)).do(shard)["stop"]
    full.filename = "out/shard"
    assert worker(fail(full)).do(shard)["stop"] == "No space left on device: out/shard"


def test_a_model_that_cannot_be_loaded_stops_the_job(worker, shard, monkeypatch):
    one = worker(lambda texts: texts)
    monkeypatch.setattr(Translator, "load", lambda folder, **loading: fail(ValueError("no"))([]))
    assert one.do(shard)["stop"] == "no"


def test_a_gpu_that_is_not_there_stops_the_job(worker, shard, monkeypatch):
    monkeypatch.setattr(module, "count_gpus", lambda: 0)
    one = worker(lambda texts: texts)
    one.job["gpus"] = 1
    assert one.do(shard)["stop"].startswith("gpus must be 0")


def test_warnings_are_counted(worker, shard):
    def method(texts):
        for text in texts:
            warnings.warn(f"{text} is cut", stacklevel=1)
        return texts

    answer = worker(method).do(shard)
    assert answer["warnings"] == 2 and answer["warning"] == "one is cut"


def test_lines_are_those_of_the_translator(translator):
    records = [(text,) for text in TEXTS]
    options = dict(**SHORT, beam_size=2)
    expected = translator.translate(TEXTS, **options)
    assert module.translated(translator, records, options) == expected
    lines = module.ranked(translator, records, {**options, "num_hypotheses": 2})
    for line, text in zip(lines, expected, strict=True):
        first, *_ = found = json.loads(line)
        assert len(found) <= 2 and first["text"] == text and first["score"] < 0


def test_scores_have_lengths_and_null_for_what_is_too_long(translator):
    pairs = [("one two", "three"), ("ten " * MAX_LENGTH, "one"), ("six", "")]
    found = [json.loads(x) for x in module.scored(translator, pairs, {})]
    scores = translator.score(*zip(*(pairs[i] for i in (0, 2)), strict=True))
    assert [found[i]["log_probability"] for i in (0, 2)] == pytest.approx(scores, abs=1e-3)
    assert found[1]["log_probability"] is None and found[1]["source_tokens"] > MAX_LENGTH
    assert found[2]["target_tokens"] == 1  # EOS
    with pytest.raises(ValueError, match="at most 40 tokens"):
        module.scored(translator, pairs, {"strict": True})
