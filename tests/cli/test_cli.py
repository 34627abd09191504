"""The command line: lines in, lines out, and one line for what was wrong."""

import functools
import gzip
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from keras_transformer import cli
from keras_transformer.checkpoints import save_weights, weights_of, write_weights
from keras_transformer.cli import folders
from keras_transformer.models import enable_lora
from keras_transformer.text import SentencePieceTokenizer
from keras_transformer.translator import Translator
from training.translation import train

load = functools.cache(Translator.load)

LINES = ["one two", "", "three", "two two one"]
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def translator(tiny_transformer):
    texts = ["one two three", "three two one", "two"]
    tokenizer = SentencePieceTokenizer.train(texts, texts, vocab_size=24, byte_fallback=False)
    size = tokenizer.source_vocab_size
    model = tiny_transformer(source_vocab_size=size, target_vocab_size=size, max_length=40)
    return Translator(model, tokenizer, "en", "de")


@pytest.fixture(scope="module")
def folder(translator, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli") / "translator"
    translator.save(folder)
    return folder


@pytest.fixture
def run(monkeypatch):
    """`run(*arguments, stdin="")` -> the result; a failure must be asked for by `status`."""
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    monkeypatch.setattr(Translator, "load", load)  # and compile once

    def call(*arguments, stdin="", status=0):
        result = CliRunner().invoke(cli.app, [str(a) for a in arguments], input=stdin)
        assert result.exit_code == status, result.output
        return result

    return call


def failure(result):
    """The one line on stderr."""
    [line] = result.stderr.splitlines()
    assert line.startswith("keras-transformer: ") and result.stdout == ""
    return line


def test_translates_stdin_to_stdout_line_by_line(run, translator, folder):
    expected = translator.translate(LINES, max_extra_length=4)
    assert any(expected) and len(set(expected)) > 1
    for end, chunk_size in [("\n", 2048), ("\r\n", 2)]:
        options = ["--max-extra-length", 4, "--chunk-size", chunk_size]
        result = run("translate", folder, *options, stdin=end.join(LINES) + end)
        assert result.stdout == "".join(line + "\n" for line in expected)
        assert result.stderr == ""
    assert run("translate", folder, stdin="").stdout == ""


def test_translates_a_file_plain_or_packed_to_a_file(run, translator, folder, tmp_path):
    options = dict(beam_size=2, length_penalty=0.0, max_extra_length=4, tokens_per_batch=16)
    expected = "".join(line + "\n" for line in translator.translate(LINES, **options))
    text = "\n".join(LINES) + "\n"
    (tmp_path / "in.txt").write_text(text)
    with gzip.open(tmp_path / "in.txt.gz", "wt") as file:
        file.write(text)
    arguments = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    for name in ("in.txt", "in.txt.gz"):
        out = tmp_path / f"{name}.out"
        result = run("translate", folder, "-i", tmp_path / name, "-o", out, *arguments)
        assert result.stdout == "" and out.read_text() == expected


def test_nbest_lines_carry_index_and_score(run, translator, folder):
    found = translator.nbest(LINES, num_hypotheses=2, max_extra_length=4)
    options = ["-n", 2, "--max-extra-length", 4, "--chunk-size", 3]
    lines = run("translate", folder, *options, stdin="\n".join(LINES)).stdout.splitlines()
    expected = [(i, h) for i, hypotheses in enumerate(found) for h in hypotheses]
    assert len(lines) == len(expected) == 7  # an empty line has one translation
    for line, (index, hypothesis) in zip(lines, expected, strict=True):
        i, text, score = line.split(" ||| ")
        assert (int(i), text) == (index, hypothesis.text)
        assert float(score) == pytest.approx(hypothesis.score, abs=1e-3)


def test_a_translation_never_breaks_its_line(run, folder, monkeypatch):
    monkeypatch.setattr(
        Translator, "translate_stream", lambda self, texts, **options: iter(["a\nb\r\nc"])
    )
    assert run("translate", folder, stdin="one").stdout == "a b  c\n"


def test_a_line_too_long_is_cut_with_a_warning_or_refused(run, folder):
    long = "one " * 50
    arguments = ["translate", folder, "--max-extra-length", 2]
    result = run(*arguments, stdin=f"two\n{long}\n")
    assert len(result.stdout.splitlines()) == 2
    assert "keras-transformer: warning: texts must have at most 40 tokens" in result.stderr
    result = run(*arguments, "--strict", stdin=long, status=2)
    assert "at most 40 tokens" in failure(result)


def test_a_failure_leaves_the_old_output(run, folder, tmp_path):
    out = tmp_path / "out.txt"
    out.write_text("old\n")
    (tmp_path / "in.txt").write_bytes(b"one\ntwo\xff\n")
    result = run("translate", folder, "-i", tmp_path / "in.txt", "-o", out, status=2)
    assert "in.txt, line 2: invalid UTF-8" in failure(result)
    assert out.read_text() == "old\n" and len(list(tmp_path.iterdir())) == 2


def test_says_which_line_of_stdin_is_no_text(run, folder):
    result = run("translate", folder, stdin=b"one\n\xff\n", status=2)
    assert "stdin, line 2: invalid UTF-8" in failure(result)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["translate", "absent"], "absent is no saved translator"),
        (["translate", "FOLDER", "--input", "absent.txt"], "absent.txt"),
        (["translate", "FOLDER", "-n", "5"], "num_hypotheses must be at most beam_size=4"),
        (["evaluate", "FOLDER"], "either --source"),
        (["evaluate", "FOLDER", "--source", "a", "--corpus", "grammar"], "either --source"),
        (["evaluate", "FOLDER", "--corpus", "a", "--reference", "b"], "--reference belongs to"),
        (["evaluate", "FOLDER", "--source", "a", "--data-folder", "b"], "--data-folder belongs"),
        (["evaluate", "FOLDER", "--corpus", "absent"], "name must be one of"),
        (["evaluate", "FOLDER", "--corpus=grammar", "--test-set=x"], "must be one of ['test']"),
        (["evaluate", "FOLDER", "--source", "absent.tsv"], "absent.tsv"),
        (["average", "absent", "--out", "out"], "absent"),
        (["info", "absent"], "absent is no saved translator"),
        (["train", "--recipe", "absent"], "absent"),
    ],
)
def test_bad_input_gets_one_line(run, folder, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    arguments = [str(folder) if a == "FOLDER" else a for a in arguments]
    assert message in failure(run(*arguments, stdin="one\n", status=2))


def test_debug_shows_where_an_error_arose(run, monkeypatch):
    result = run("--debug", "info", "absent", status=1)
    assert isinstance(result.exception, ValueError)
    monkeypatch.setenv("KERAS_TRANSFORMER_DEBUG", "1")
    assert isinstance(run("info", "absent", status=1).exception, ValueError)


@pytest.mark.parametrize(
    "arguments", [[], ["absent"], ["translate"], ["translate", "x", "--beam-size", "0"]]
)
def test_wrong_usage_ends_with_2(run, arguments):
    assert "Usage:" in run(*arguments, status=2).stderr


@pytest.mark.parametrize("command", ["train", "translate", "evaluate", "export", "average", "info"])
def test_help_teaches_by_examples(run, command):
    assert f"  {command} " in run("--help").stdout
    assert f"keras-transformer {command} " in run(command, "-h").stdout


def test_train_is_the_function_of_the_script():
    assert train in [command.callback for command in cli.app.registered_commands]


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
    run("evaluate", folder, *files, "--test-set", "mine", "--beam-size", 1, "--lowercase")
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics.keys() == {"other", "dev", "mine"} and metrics["mine"]["beam_size"] == 1
    assert "case:lc" in metrics["mine"]["bleu_signature"]
    shown = run("info", folder).stdout
    assert "1.50" in shown and "exact_match" in shown


def test_evaluates_a_known_corpus_as_papers_do(run, folder, tmp_path):
    pytest.importorskip("sacremoses")
    for name in ("train", "val", "test_2016_flickr", "test_2017_flickr"):
        (tmp_path / f"{name}.en").write_text("one two\n")
        (tmp_path / f"{name}.de").write_text("three\n")
    corpus = ["--corpus", "multi30k", "--data-folder", tmp_path, "--moses"]
    run("evaluate", folder, *corpus, "--max-extra-length", 4)
    run("evaluate", folder, *corpus, "--max-extra-length", 4, "--test-set", "test_2017_flickr")
    metrics = json.loads((folder / "metrics.json").read_text())
    for name in ("test_2016_flickr", "test_2017_flickr"):
        assert "tok:none" in metrics[name]["published_bleu_signature"]


def test_export_hands_its_options_on(run, folder, monkeypatch):
    calls = []

    def record(*arguments, **options):
        calls.append((arguments, options))
        return Path("out/7")

    monkeypatch.setitem(folders.EXPORTERS, folders.Format.SAVED_MODEL, record)
    options = ["--version", 7, "--beam-size", 2, "--length-penalty", 1, "--max-extra-length", 9]
    result = run("export", folder, "out", *options, "--jit-compile", "--overwrite")
    assert result.stdout == f"{Path('out/7')}\n"
    [((given, out), options)] = calls
    assert (given, out) == (folder, Path("out"))
    assert options == dict(
        version=7,
        beam_size=2,
        length_penalty=1.0,
        max_extra_length=9,
        jit_compile=True,
        overwrite=True,
    )


@pytest.mark.parametrize("name", ["hugging-face", "ctranslate2", "onnx"])
def test_export_in_another_format(run, folder, monkeypatch, name):
    calls = []
    monkeypatch.setitem(
        folders.EXPORTERS, folders.Format(name), lambda *x, **y: calls.append((x, y))
    )
    options = ["--quantization", "int8"] if name == "ctranslate2" else []
    run("export", folder, "out", "--format", name, *options)
    expected = dict(overwrite=False) | (dict(quantization="int8") if options else {})
    assert calls == [((folder, Path("out")), expected)]
    result = run("export", folder, "out", "--format", name, "--beam-size", 2, status=2)
    assert f"--beam-size is no option of --format {name}" in result.stderr


def test_export_says_in_one_line_what_is_in_its_way(run, folder, tmp_path):
    (tmp_path / "out" / "1").mkdir(parents=True)
    if not importlib.util.find_spec("tensorflow_text"):
        pytest.skip("exporting needs tensorflow-text")
    assert "choose another version" in failure(run("export", folder, tmp_path / "out", status=2))


def test_averages_to_a_file_or_a_translator(run, translator, folder, tmp_path):
    write_weights(tmp_path / "epoch-1" / "weights.safetensors", translator.model)
    weights = weights_of(translator.model)
    other = tmp_path / "other.safetensors"
    save_weights(other, {name: value + 2 for name, value in weights.items()})
    checkpoints = [tmp_path / "epoch-1", other]
    run("average", *checkpoints, "--out", tmp_path / "mean.safetensors")
    shutil.copytree(folder, tmp_path / "run")
    run("average", *checkpoints, "--out", tmp_path / "mean", "--translator", tmp_path / "run")
    mean = weights_of(Translator.load(tmp_path / "mean").model)
    for name, value in weights.items():
        np.testing.assert_allclose(mean[name], value + 1, atol=1e-6)
    run("average", tmp_path / "mean.safetensors", "--out", tmp_path / "same.safetensors")
    same = (tmp_path / "same.safetensors").read_bytes()
    assert same == (tmp_path / "mean.safetensors").read_bytes()


def test_a_checkpoint_of_lora_becomes_a_translator(run, translator, folder, tmp_path):
    shutil.copytree(folder, tmp_path / "run")
    trained = Translator.load.__wrapped__(tmp_path / "run")
    enable_lora(trained.model, rank=2)
    for weight in trained.model.trainable_weights:
        weight.assign(np.full(weight.shape, 0.5, "float32"))
    write_weights(tmp_path / "epoch-1" / "weights.safetensors", trained.model)
    out = ["--out", tmp_path / "merged", "--translator", tmp_path / "run"]
    checkpoint = tmp_path / "epoch-1"
    assert "give one" in failure(run("average", checkpoint, checkpoint, *out, status=2))
    run("average", checkpoint, *out)
    before, after = weights_of(translator.model), weights_of(Translator.load(out[1]).model)
    name = "encoder/block_0/feed_forward/hidden/kernel"
    np.testing.assert_allclose(after.pop(name), before.pop(name) + 2 * 0.5 * 0.5, atol=1e-6)
    assert before.keys() == after.keys()


def test_info_shows_sizes_and_versions(run, translator, folder):
    shown = run("info", folder).stdout
    for value in ("en -> de", f"{translator.model.count_params():,}", "SentencePieceTokenizer"):
        assert value in shown
    assert run("--version").stdout.startswith("keras-transformer ")


def test_in_a_pipe_whose_reader_leaves(folder):
    command = [sys.executable, "-m", "keras_transformer.cli", "translate", str(folder)]
    process = subprocess.Popen(
        [*command, "--chunk-size", "1", "--beam-size", "1", "--max-extra-length", "2"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env=os.environ | {"KERAS_TRANSFORMER_DEBUG": "1"},
    )
    process.stdin.write(b"one two\n")
    process.stdin.flush()
    assert process.stdout.readline().endswith(b"\n")  # answered before the input ends
    process.stdout.close()
    _, errors = process.communicate(b"two\n" * 100)
    assert process.returncode == 1
    assert b"Traceback" not in errors and b"BrokenPipe" not in errors
