"""The command `evaluate`: on files, on a known corpus, and what it leaves of metrics.json."""

import json

import pytest

from tests.tasks.small_metric import small_metric


def test_evaluates_files_and_keeps_other_entries(run, translator, folder, tmp_path):
    (folder / "metrics.json").write_text('{"other": {"bleu": 1.5}}')
    sources = ["one two", "three"]
    references = translator.translate(sources, max_extra_length=4)
    for name, lines in {"dev.en": sources, "dev.de": references}.items():
        (tmp_path / name).write_text("".join(line + "\n" for line in lines))
    files = ["--source", tmp_path / "dev.en", "--reference", tmp_path / "dev.de"]
    result = run("evaluate", folder, *files, "--max-extra-length", 4)
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["other"] == {"bleu": 1.5}
    dev = metrics["dev"]
    assert dev["exact_match"] == 100 and dev["sentences"] == 2 and dev["ter"] == 0
    assert dev["perplexity"] > 1 and dev["seconds"] > 0 and dev["tokens_per_second"] > 0
    for name in dev:
        assert name in result.stdout
    assert "replaces" not in result.stderr
    again = run("evaluate", folder, *files, "--max-extra-length", 4).stderr
    assert "replaces the scores of 'dev' in metrics.json; --test-set NAME keeps both" in again
    run("evaluate", folder, *files, "--test-set", "mine", "--beam-size", 1, "--lowercase")
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics.keys() == {"other", "dev", "mine"} and metrics["mine"]["beam_size"] == 1
    assert "case:lc" in metrics["mine"]["bleu_signature"]
    shown = run("info", folder).stdout
    assert "1.50" in shown and "exact_match" in shown


@pytest.mark.once("the metric has its own tests")
def test_a_learned_metric_is_added(run, folder, tmp_path):
    small_metric("kiwi").save(tmp_path / "kiwi")
    (tmp_path / "dev.tsv").write_text("one two\tthree\n")
    files = ["--source", tmp_path / "dev.tsv", "--max-extra-length", 4]
    printed = run("evaluate", folder, *files, "--metric", tmp_path / "kiwi").stdout
    metrics = json.loads((folder / "metrics.json").read_text())["dev"]
    translation = run("translate", folder, "one two", "--max-extra-length", 4).stdout[:-1]
    expected = small_metric("kiwi").score(["one two"], [translation])[0]
    assert metrics["metric_kiwi"] == pytest.approx(expected, abs=1e-5) and "metric_kiwi" in printed


def test_evaluates_a_known_corpus_as_papers_do(run, folder, tmp_path):
    pytest.importorskip("sacremoses")
    pytest.importorskip("rouge_score")
    for name in ("train", "val", "test_2016_flickr", "test_2017_flickr"):
        (tmp_path / f"{name}.en").write_text("one two\n")
        (tmp_path / f"{name}.de").write_text("three\n")
    corpus = ["--corpus", "multi30k", "--data-folder", tmp_path, "--moses"]
    run("evaluate", folder, *corpus, "--max-extra-length", 4)
    test_2017 = ["--test-set", "test_2017_flickr", "--rouge"]
    run("evaluate", folder, *corpus, "--max-extra-length", 4, *test_2017)
    metrics = json.loads((folder / "metrics.json").read_text())
    for name in ("test_2016_flickr", "test_2017_flickr"):
        assert "tok:none" in metrics[name]["published_bleu_signature"]
    assert (
        0 <= metrics["test_2017_flickr"]["rougeL"] <= metrics["test_2017_flickr"]["rouge1"] <= 100
    )
    assert "rouge1" not in metrics["test_2016_flickr"]
