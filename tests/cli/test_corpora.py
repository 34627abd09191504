"""Corpora from the command line: which output is a folder, many inputs, failures, progress."""

import json
import re
import sys

import pytest

from keras_transformer import corpora
from keras_transformer.cli import corpora as module
from keras_transformer.corpora import Outcome, ShardError
from keras_transformer.corpora.job_options import NAMES


@pytest.fixture
def called(monkeypatch):
    """What the commands call, and with what; no process is started"""
    calls = []

    def record(name):
        def job(**arguments):
            arguments.pop("report")(outcome := Outcome(shards=3, lines=30, done=3, found=1))
            calls.append((name, arguments))
            return outcome

        return job

    for name in ("translate_corpus", "score_corpus"):
        monkeypatch.setattr(corpora, name, record(name))
    return calls


def test_a_folder_as_output_makes_a_corpus(run, folder, tmp_path, called):
    new = f"{tmp_path}/new/"
    options = ["--processes", 2, "--shard", "1/4", "--beam-size", 2, "--precision", "bfloat16"]
    result = run("translate", folder, "-i", "a", "b", "--input", "c", *options, "-o", new)
    assert "3 of 3 shards are in" in result.stderr and "1 of them by earlier runs" in result.stderr
    run("translate", folder, "-i", "a", "-o", tmp_path, "-n", 2)
    (name, given), (_, other) = called
    assert name == "translate_corpus" and set(NAMES) < set(given) and given["output"] == new
    assert given["inputs"] == ["a", "b", "c"] and other["inputs"] == ["a"]
    assert (given["processes"], given["shard"], given["beam_size"]) == (2, "1/4", 2)
    assert given["precision"] == "bfloat16" and given["num_hypotheses"] is None
    assert other["num_hypotheses"] == 2 and other["processes"] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--processes", 2], '--processes needs a folder as --output, such as "out/", got 2'),
        (["-i", "a", "b"], "--input must be one file, unless --output is a folder"),
        (["-o", "out/"], "--input must be given when --output is a folder"),
        (["-i", "a", "-o", "out/", "--chunk-size", 1], "--chunk-size must be left out"),
    ],
)
def test_options_of_the_other_kind_are_refused(run, failure, folder, arguments, message, called):
    assert message in failure(run("translate", folder, *arguments, status=2))
    assert not called


def test_options_out_of_range_are_refused(run, folder, called):
    given = ["-i", "a", "-o", "out/"]
    result = run("translate", folder, *given, "--executor", "spark", status=2)
    assert "executor must be one of ('local', 'ray'), got 'spark'" in result.stderr
    result = run("score", folder, *given, "--shard", "4/4", status=2)
    assert "shard must be part and number of parts" in result.stderr


def test_pairs_are_scored(run, folder, called):
    run("score", folder, "-i", "a.en", "b.en", "--target", "a.de", "b.de", "-o", "out", "--strict")
    result = run("score", folder, "-i", "a.tsv", "-o", "out", "--source-field", "en", "--only-plan")
    assert "3 shards of 30 lines are planned" in result.stderr
    (name, given), (_, other) = called
    assert name == "score_corpus" and given["strict"] and given["inputs"] == ["a.en", "b.en"]
    assert given["targets"] == ["a.de", "b.de"] and other["targets"] is None
    assert other["source_field"] == "en" and other["target_field"] == "target"


def test_failed_shards_are_named_and_the_status_says_so(run, folder, monkeypatch):
    outcome = Outcome(3, 30, done=2, failed={"shard-00000001 (lines 11 to 20 of a)": "no memory"})
    outcome.warnings, outcome.warning = 7, "a text is cut"

    def fail(**arguments):
        raise ShardError(outcome)

    monkeypatch.setattr(corpora, "translate_corpus", fail)
    lines = run("translate", folder, "-i", "a", "-o", "out/", status=1).stderr.splitlines()
    assert lines == [
        "keras-transformer: warning: 7 warnings, the first: a text is cut",
        "keras-transformer: 2 of 3 shards are in out/",
        "keras-transformer: failed: shard-00000001 (lines 11 to 20 of a): no memory",
    ]


def test_progress_is_one_line(monkeypatch, capsys):
    outcome = Outcome(40, 4000, done=10, translated=500, seconds=10.0, failed={"shard-3": "bad"})
    outcome.left = 190_000
    monkeypatch.setattr(module, "_PAUSE", 0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    with module._shown() as report:
        report(outcome)
    line = capsys.readouterr().err
    assert line.endswith("10 of 40 shards, 1 failed, 50 lines/s, 1:03:20 left\n")


def test_a_bad_line_is_named(run, failure, folder, tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps({"txt": "one"}))
    result = run("translate", folder, "-i", tmp_path / "a.jsonl", "-o", f"{tmp_path}/o/", status=2)
    assert re.search(r"a.jsonl, line 1: expected text in 'text'", failure(result))
