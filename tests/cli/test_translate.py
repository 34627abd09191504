"""Lines in, lines out, and how good they are."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from keras_transformer.text.glossary import Glossary
from keras_transformer.translate.minimum_bayes_risk import translate_by_risk
from keras_transformer.translate.translator import Translator

ROOT = Path(__file__).parents[2]
LINES = ["one two", "", "three", "two two one"]


def test_translates_stdin_to_stdout_line_by_line(run, translator, folder):
    expected = translator.translate(LINES, max_extra_length=4)
    assert any(expected) and len(set(expected)) > 1
    for end, chunk_size in [("\n", 2048), ("\r\n", 2)]:
        options = ["--max-extra-length", 4, "--chunk-size", chunk_size]
        result = run("translate", folder, *options, stdin=end.join(LINES) + end)
        assert result.stdout == "".join(line + "\n" for line in expected)
        assert result.stderr == ""
    assert run("translate", folder, stdin="").stdout == ""


def test_translates_texts_of_the_command_line(run, translator, folder, tmp_path):
    expected = translator.translate(LINES, max_extra_length=4)
    result = run("translate", folder, "--max-extra-length", 4, *LINES)
    assert result.stdout == "".join(line + "\n" for line in expected)
    (tmp_path / "in.txt").write_text("one\n")
    for options in (["-i", tmp_path / "in.txt"], ["--text-field", "text"]):
        message = run("translate", folder, "one", *options, status=2).stderr
        assert "must be left out with texts on the command line" in message
    out = ["-i", tmp_path / "in.txt", "-o", f"{tmp_path}/out/"]
    message = run("translate", folder, "one", *out, status=2).stderr
    assert "TEXT must be left out when --output is a folder, got ['one']" in message


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


def test_a_document_keeps_its_format(run, failure, translator, folder, tmp_path):
    (expected,) = translator.translate(["the dog"], beam_size=2)
    page, result = tmp_path / "page.md", tmp_path / "new" / "page.md"
    page.write_bytes(b"# the dog\r\n\n```\nthe dog\n```\n")
    done = run("translate", folder, "-i", page, "-o", result, "--beam-size", 2)
    restored = result.read_bytes().decode().replace("\\", "")  # of marks that the model wrote
    assert restored == f"# {expected}\r\n\n```\nthe dog\n```\n".replace("\\", "")
    assert "not translated: code" in done.stderr
    for more, message in [
        ([], "--output must be the file to write, for a document, got None"),
        (["-o", "a.html"], "--output must be a file that ends with .md, got 'a.html'"),
        (["-o", page], "--output must be another file than --input"),
    ]:
        assert message in failure(run("translate", folder, "-i", page, *more, status=2))


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


def test_the_engine_is_chosen(run, translator, folder, tmp_path):
    expected = translator.translate(LINES, beam_size=1, max_extra_length=4)
    given = ["--beam-size", 1, "--max-extra-length", 4, "--engine", "ctranslate2"]
    result = run("translate", folder, *given, stdin="\n".join(LINES))
    assert result.stdout.splitlines() == expected
    assert (folder / ".ctranslate2" / "model.bin").is_file()
    result = run("translate", folder, "--engine", "marian", stdin="one", status=2)
    assert (
        "engine must be one of ('keras', 'ctranslate2', 'litert', 'inductor', 'auto'), got 'marian'"
        in result.stderr
    )
    given = ["--min-length", 2, "--engine", "ctranslate2"]
    result = run("translate", folder, *given, stdin="one", status=2)
    assert 'min_length must be left out for engine="ctranslate2"' in result.stderr


def test_a_translator_gets_the_options_that_are_given(run, folder, monkeypatch):
    given = []

    class Exported:
        def translate(self, texts, **options):
            given.append(options)
            return texts

    monkeypatch.setattr(Translator, "load", lambda folder, **options: Exported())
    run("translate", folder, "--beam-size", 4, "--length-penalty", 1, stdin="one")
    options = dict(beam_size=4, length_penalty=1)  # also one that has its default: others may hold
    assert given == [dict(tokens_per_batch=4096, strict=False, **options)]


def test_a_translation_never_breaks_its_line(run, folder, monkeypatch):
    monkeypatch.setattr(Translator, "translate", lambda self, texts, **options: ["a\nb\r\nc"])
    assert run("translate", folder, stdin="one").stdout == "a b  c\n"


def test_a_line_too_long_is_cut_with_a_warning_or_refused(run, failure, folder):
    long = "one " * 50
    arguments = ["translate", folder, "--max-extra-length", 2]
    result = run(*arguments, stdin=f"two\n{long}\n")
    assert len(result.stdout.splitlines()) == 2
    assert "keras-transformer: warning: texts must have at most 40 tokens" in result.stderr
    result = run(*arguments, "--strict", stdin=long, status=2)
    assert "at most 40 tokens" in failure(result)


def test_a_failure_leaves_the_old_output(run, failure, folder, tmp_path):
    out = tmp_path / "out.txt"
    out.write_text("old\n")
    (tmp_path / "in.txt").write_bytes(b"one\ntwo\xff\n")
    result = run("translate", folder, "-i", tmp_path / "in.txt", "-o", out, status=2)
    assert "in.txt, line 2: invalid UTF-8" in failure(result)
    assert out.read_text() == "old\n" and len(list(tmp_path.iterdir())) == 2


def test_the_output_is_another_file(run, failure, folder, tmp_path):
    (tmp_path / "x.en").write_text("one two\n")
    (tmp_path / "x.de").symlink_to(tmp_path / "x.en")
    given = "-i", tmp_path / "x.en", "-o", tmp_path / "x.de"
    message = f"--output must be another file than --input, got '{tmp_path}/x.de'"
    assert message in failure(run("translate", folder, *given, status=2))
    assert (tmp_path / "x.en").read_text() == "one two\n"


def test_says_which_line_of_stdin_is_no_text(run, failure, folder):
    result = run("translate", folder, stdin=b"one\n\xff\n", status=2)
    assert "stdin, line 2: invalid UTF-8" in failure(result)


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


def test_an_ensemble(run, failure, folder, translator, tmp_path):
    plain = run("translate", folder, stdin="one two\n").stdout
    assert run("translate", folder, "--ensemble", folder, stdin="one two\n").stdout == plain
    (tmp_path / "x.en").write_text("one\n")
    arguments = "--source", tmp_path / "x.en", "--reference", tmp_path / "x.en", "--test-set", "e"
    assert "bleu" in run("evaluate", folder, "--ensemble", folder, *arguments).stdout
    metrics = folder / "metrics.json"
    assert not metrics.exists() or "e" not in json.loads(metrics.read_text())
    output = ("--input", tmp_path / "x.en", "--output", f"{tmp_path}/out/")
    message = failure(run("translate", folder, "--ensemble", folder, *output, status=2))
    assert "--ensemble must be left out if --output is a folder" in message


def test_minimum_bayes_risk(run, failure, folder, translator):
    found = run("translate", folder, "--mbr", 3, stdin="one two\ntwo\n").stdout.splitlines()
    assert found == translate_by_risk(translator, ["one two", "two"], 3)
    options = "--mbr", 3, "--mbr-source", "samples"
    found = run("translate", folder, *options, stdin="one two\n").stdout.splitlines()
    assert found == translate_by_risk(translator, ["one two"], 3, source="samples")
    for arguments, said in (
        (
            ("--beam-size", 5),
            "--beam-size must be left out with --mbr, which names the number, got",
        ),
        (("--num-hypotheses", 2), "--num-hypotheses must be left out with --mbr"),
        (
            ("--mbr-source", "samples", "--length-penalty", 1),
            "--length-penalty must be left out with --mbr-source samples, got 1.0",
        ),
        (("--mbr-source", "x"), "source must be one of ('samples', 'nbest'), got 'x'"),
    ):
        message = failure(run("translate", folder, "--mbr", 3, *arguments, stdin="x", status=2))
        assert said in message


def test_a_glossary(run, failure, folder, translator, tmp_path):
    terms = tmp_path / "terms.tsv"
    terms.write_text("# numbers\ntwo\tthree one\nthree\tone one\ttwo\n")
    given = ["--glossary", terms, "--max-extra-length", 8]
    lines = run("translate", folder, *given, stdin="one two\nthree\n").stdout.splitlines()
    assert "three one" in lines[0]
    assert "one one" in lines[1] or "two" in lines[1].split()
    glossary = Glossary({"two": ["three one"], "three": ["one one", "two"]})
    options = dict(constraint=glossary, max_extra_length=8)
    assert lines == translator.translate(["one two", "three"], **options)
    terms.write_text("two\n")
    result = run("translate", folder, *given, stdin="one\n", status=2)
    assert "terms.tsv, line 1: must have a source term, a tab and a target" in failure(result)
    terms.write_text("two\tzebra\n")
    result = run("translate", folder, *given, stdin="one\n", status=2)
    assert "a term of the glossary must be text that the vocabulary" in failure(result)
    terms.write_text("two\tone\n")
    result = run("translate", folder, *given, "--shortlist", stdin="two\n", status=2)
    assert "--shortlist must be left out with --glossary" in failure(result)
    result = run("translate", folder, *given, "--engine", "ctranslate2", stdin="two\n", status=2)
    assert "--engine must be keras or auto with --glossary" in failure(result)
    samples = ["--mbr", 2, "--mbr-source", "samples"]
    result = run("translate", folder, "--glossary", terms, *samples, stdin="two\n", status=2)
    assert "--glossary must be left out with --mbr-source samples" in failure(result)
    result = run("translate", folder, *given, "-i", terms, "-o", f"{tmp_path}/o/", status=2)
    assert "--glossary must be left out if --output is a folder" in failure(result)


def test_sentences_with_those_before_them(run, failure, folder, translator, monkeypatch):
    given = ["--context-sentences", 1]
    result = run("translate", folder, *given, stdin="two\n", status=2)
    assert "translator must be a saved one that was trained with context_sentences" in failure(
        result
    )
    for flag in (["--mbr", 2], ["--rerank", 2], ["--num-hypotheses", 2]):
        result = run("translate", folder, *given, *flag, stdin="two\n", status=2)
        assert f"{flag[0]} must be left out with --context-sentences" in failure(result)
    result = run("translate", folder, *given, "-i", "x", "-o", "o/", status=2)
    assert "--context-sentences must be left out if --output is a folder" in failure(result)
    result = run("translate", folder, *given, stdin="a <sep> b\n", status=2)
    assert "texts must be text without <sep>" in failure(result)
    monkeypatch.setattr(
        "keras_transformer.translate.document_translation.reads_context", lambda x: True
    )
    found = run("translate", folder, *given, stdin="one\ntwo\n\nthree\n").stdout
    # The words of the test never have the separator in their translations: all are made alone.
    one, two, three = translator.translate(["one", "two", "three"])
    assert found == f"{one}\n{two}\n\n{three}\n"


def test_terms_in_the_source(run, failure, folder, translator, tmp_path, monkeypatch):
    terms = tmp_path / "terms.tsv"
    terms.write_text("two\tthree\n", "utf-8")
    result = run("translate", folder, "--inline-terms", stdin="two\n", status=2)
    assert "--inline-terms must be left out without --glossary" in failure(result)
    given = ["--glossary", terms, "--inline-terms"]
    result = run("translate", folder, *given, stdin="two\n", status=2)
    assert "--inline-terms must be left out for a model that was trained" in failure(result)
    monkeypatch.setattr("keras_transformer.text.glossary.reads_terms", lambda tokenizer: True)
    found = run("translate", folder, *given, stdin="one two\n").stdout
    written = Glossary({"two": ["three"]}).inlined("one two")
    assert found == translator.translate([written])[0] + "\n"
