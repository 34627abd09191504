"""Forced beginnings, samples and word alignments of the command translate."""

from keras_transformer.analysis.alignment import align
from keras_transformer.cli.translations import translations, with_prefixes
from keras_transformer.text.word_spans import spaced_words
from keras_transformer.translate.engines.carried import ONNX
from keras_transformer.translate.engines.engine import Hypothesis
from keras_transformer.translate.engines.exported import ExportedEngine
from keras_transformer.translate.minimum_bayes_risk import translate_by_risk
from keras_transformer.translate.translator import Translator

LINES = ["one two", "", "three", "two two one"]
TEXT = "\n".join(LINES) + "\n"
SHORT = dict(max_extra_length=4)
GIVEN = ["--max-extra-length", 4]


def test_a_prefix_for_all_or_one_for_each(run, failure, translator, folder, tmp_path):
    expected = translator.translate(LINES, prefixes=["three"] * 4, **SHORT)
    found = run("translate", folder, "--prefix", "three", *GIVEN, stdin=TEXT).stdout.splitlines()
    assert found == expected and found[1] == ""
    assert all(x.startswith("three") for x in (found[0], *found[2:]))
    (tmp_path / "begun").write_text("one\n\n\ntwo\n")
    given = ["--prefix-file", tmp_path / "begun", *GIVEN]
    each = dict(prefixes=["one", "", "", "two"], **SHORT)
    for further in ((), ("--chunk-size", 1), ("--chunk-size", 3)):
        found = run("translate", folder, *given, *further, stdin=TEXT).stdout.splitlines()
        assert found == translator.translate(LINES, **each)
    found = run("translate", folder, *given, "-n", 2, stdin=TEXT).stdout.splitlines()
    lists = translator.nbest(LINES, num_hypotheses=2, **each)
    assert [x.split(" ||| ")[1] for x in found] == [x.text for row in lists for x in row]
    found = run("translate", folder, *given, "--mbr", 2, stdin=TEXT).stdout.splitlines()
    assert found == translate_by_risk(translator, LINES, 2, **each)
    given = ["--prefix", "one", "--engine", "ctranslate2", *GIVEN]
    found = run("translate", folder, *given, stdin=TEXT).stdout.splitlines()
    assert found == translator.translate(LINES, prefixes=["one"] * 4, **SHORT)


def test_prefixes_that_do_not_fit(run, folder, tmp_path):
    (tmp_path / "begun").write_text("one\n")
    result = run("translate", folder, "--prefix-file", tmp_path / "begun", stdin=TEXT, status=2)
    assert "stdin has 4, " in result.stderr and "begun has 1" in result.stderr
    result = run("translate", folder, "--prefix", "one " * 60, stdin=TEXT, status=2)
    assert "prefixes must have at most 38 tokens each" in result.stderr
    result = run("translate", folder, "--prefix", "a", "-i", "x", "-o", "o/", status=2)
    assert "--prefix must be left out if --output is a folder" in result.stderr


def test_samples(run, failure, translator, folder):
    options = dict(top_k=5, temperature=0.7, **SHORT)
    given = ["--sample", "--top-k", 5, "--temperature", 0.7, *GIVEN]
    for seed in (0, 3):
        found = run("translate", folder, *given, "--seed", seed, stdin=TEXT).stdout.splitlines()
        assert found == translator.sample(LINES, seed=seed, **options)
    found = run("translate", folder, *given, "--chunk-size", 3, stdin=TEXT).stdout.splitlines()
    assert found[3:] == translator.sample(LINES[3:], seed=3, **options)
    begun = run("translate", folder, *given, "--prefix", "one", stdin=TEXT).stdout.splitlines()
    assert begun == translator.sample(LINES, prefixes=["one"] * 4, **options)
    given = ["--mbr", 2, "--mbr-source", "samples", "--top-k", 5, "--seed", 3, *GIVEN]
    found = run("translate", folder, *given, stdin="one two\n").stdout.splitlines()
    options = dict(source="samples", top_k=5, seed=3, **SHORT)
    assert found == translate_by_risk(translator, ["one two"], 2, **options)
    for arguments, message in (
        (["--top-k", 3], "--top-k must be left out without --sample"),
        (["--sample", "--beam-size", 3], "--beam-size must be left out with --sample"),
        (["--sample", "-n", 3], "--num-hypotheses must be left out with --sample"),
        (["--sample", "--temperature", 0], "temperature must be above 0, got 0"),
        (
            ["--sample", "--engine", "ctranslate2"],
            'temperature must be left out for engine="ctranslate2"',
        ),
        (["--sample", "-i", "x", "-o", "o/"], "--sample must be left out if --output is a folder"),
    ):
        assert message in failure(run("translate", folder, *arguments, stdin="one\n", status=2))


def test_word_alignments(run, failure, translator, folder):
    texts = translator.translate(LINES, **SHORT)
    pairs = align(translator, LINES, texts, split=spaced_words, strict=False)
    links = [" ".join(f"{i}-{j}" for i, j in row) for row in pairs]
    assert any(links) and links[1] == ""
    found = run("translate", folder, "--alignments", *GIVEN, stdin=TEXT).stdout.splitlines()
    assert found == [f"{x} ||| {y}" for x, y in zip(texts, links, strict=True)]
    given = ["--alignments", "-n", 2, "--chunk-size", 3, *GIVEN]
    found = run("translate", folder, *given, stdin=TEXT).stdout.splitlines()
    rows = [line.split(" ||| ") for line in found]
    assert {len(row) for row in rows} == {4} and [row[0] for row in rows] == [*"0012233"]
    best = {row[0]: row for row in rows[::-1]}
    assert [best[str(i)][1::2] for i in range(4)] == [
        list(x) for x in zip(texts, links, strict=True)
    ]
    long = "one " * 50  # it is cut, as its translation is made of less
    result = run("translate", folder, "--alignments", *GIVEN, stdin=long)
    assert result.stdout.count("|||") == 1 and "at most 40 tokens" in result.stderr
    result = run("translate", folder, "--alignments", "--ensemble", folder, stdin="a\n", status=2)
    assert "--alignments must be left out with --ensemble" in failure(result)


class Graphs(ExportedEngine):
    """An engine like that of ONNX graphs."""

    carried = ONNX

    def nbest(self, texts, search):
        return [[Hypothesis(text, 0.0)] for text in texts]

    def score(self, *arguments):
        raise NotImplementedError


def test_an_exported_translator_refuses_by_name(run, failure, monkeypatch):
    engine, exported = Graphs(), Translator.__new__(Translator)
    exported._begin(engine, {}, ())
    exported._choose(engine.tokenizer, None, None)
    monkeypatch.setattr(Translator, "load", lambda *arguments, **options: exported)
    assert run("translate", "x", stdin="one\n").stdout == "one\n"
    for arguments, message in (
        (["--alignments"], "translator must be one with an encoder-decoder model"),
        (["--prefix", "one"], "prefixes must be left out for ONNX graphs"),
        (["--sample"], "temperature must be left out for ONNX graphs"),
    ):
        assert message in failure(run("translate", "x", *arguments, stdin="one\n", status=2))


def test_chunks_and_seeds():
    calls = []

    def translate(sources, **given):
        calls.append((sources, given))
        return [x.upper() for x in sources]

    pairs = list(enumerate(with_prefixes(iter("abc"), "p", None, "stdin")))
    assert list(translations(pairs[:2], translate, seed=5)) == ["A", "B"]
    assert list(translations(pairs[2:], translate, seed=5)) == ["C"]
    assert calls == [
        (["a", "b"], dict(prefixes=["p", "p"], seed=5)),
        (["c"], dict(prefixes=["p"], seed=7)),
    ]
    pairs = list(enumerate(with_prefixes(iter("d"), None, None, "x")))
    assert list(translations(pairs, translate)) == ["D"]
    assert calls[-1] == (["d"], {})
