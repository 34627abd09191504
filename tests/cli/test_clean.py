"""Command that cleans parallel text."""

import gzip
import importlib

import numpy as np
import pytest

from keras_transformer.translate.translator import Translator
from tests.tasks.small_metric import small_metric

module = importlib.import_module("keras_transformer.cli.clean")  # not the function

GOOD = [
    ("The children are playing in the garden.", "Die Kinder spielen im Garten."),
    ("The old man has lived here since 1990.", "Der alte Mann wohnt seit 1990 hier."),
    ("Where is the dog of the woman?", "Wo ist der Hund der Frau?"),
]
BAD = [
    ("empty", "A dog runs.", ""),
    ("identical", "A dog runs.", "A dog runs."),
    ("too_long", "one two three four five six seven eight nine", "eins zwei drei vier fünf sechs"),
    ("length_ratio", "one two three four five", "eins"),
    ("duplicate", "The children are playing  in the garden.", "Die Kinder spielen im Garten."),
    ("encoding", "The dog runs.", "Der Hund lÃ¤uft."),
    ("letters", "12 - 34", "zwölf und 34"),
    ("numbers", "It was 1990.", "Es war 1995."),
    ("question", "Is it a dog?", "Es ist ein Hund."),
    ("script", "It is a dog.", "Это собака."),
    ("language", "It is the old man.", "Les enfants jouent dans le jardin."),
    ("near_duplicate", "The children are playing in the garden!", "die Kinder spielen im Garten"),
]
LANGUAGES = ["--source-language", "en", "--target-language", "de"]


def lines(path):
    read = gzip.open if path.suffix == ".gz" else open
    with read(path, "rt", encoding="utf-8") as file:
        return file.read().splitlines()


def rows(path):
    return [tuple(line.split("\t")) for line in lines(path)]


def write(path, pairs):
    path.write_text("".join(f"{x}\t{y}\n" for x, y in pairs), "utf-8")
    return path


@pytest.fixture
def noisy(tmp_path):
    pairs = GOOD + [pair for _, *pair in BAD]
    return write(tmp_path / "noisy.tsv", pairs)


def test_each_reason(run, noisy, tmp_path):
    one, other, dropped = (tmp_path / x for x in ("new/a.en", "a.de.gz", "dropped.tsv"))
    given = ["-i", noisy, "-o", one, "-o", other, "--dropped", dropped]
    limits = ["--max-words", 8, "--near-duplicates", 0.7]
    result = run("clean", *given, *limits, *LANGUAGES)
    assert list(zip(lines(one), lines(other), strict=True)) == GOOD
    expected = [tuple(" ".join(x.split()) for x in row) for row in BAD]
    assert rows(dropped) == expected
    assert "kept 3 of 15 pairs; dropped 1 empty, 1 identical" in result.stderr
    assert result.stdout == ""
    assert sorted(x.name for x in tmp_path.iterdir()) == [
        *("a.de.gz", "dropped.tsv", "new", "noisy.tsv")
    ]


def test_reasons_can_be_skipped(run, noisy, tmp_path):
    skip = [x for reason in module.SKIPPABLE for x in ("--skip", reason)]
    output = tmp_path / "out.tsv"
    run("clean", "-i", noisy, "-o", output, "--max-words", 8, *LANGUAGES, *skip)
    assert len(rows(output)) == len(GOOD) + len(BAD) - 1  # an empty side is no pair


def test_what_is_no_unicode_is_dropped_and_written(run, tmp_path):
    source, dropped = tmp_path / "in.jsonl", tmp_path / "dropped.tsv"
    source.write_text('{"en": "A \\ud83d dog", "de": "Hund"}\n{"en": "a cat", "de": "Katze"}\n')
    for skip in ([], ["--skip", "encoding"]):
        output = tmp_path / "out.tsv"
        run("clean", "-i", source, "-o", output, "--dropped", dropped, *skip)
        assert rows(output) == [("a cat", "Katze")]
        assert dropped.read_text("utf-8") == "encoding\tA \\ud83d dog\tHund\n"


def test_without_languages_nothing_is_asked_of_them(run, tmp_path):
    source, target = tmp_path / "x.hsb", tmp_path / "x.ru"
    source.write_text("Dźěći hrajkaja w zahrodźe.\n", "utf-8")
    target.write_text("Дети играют в саду.\n", "utf-8")
    run("clean", "-i", source, "-i", target, "-o", tmp_path / "out.tsv")
    assert len(rows(tmp_path / "out.tsv")) == 1


@pytest.fixture
def scored(monkeypatch):
    """Translators whose score is the number of words of the text."""

    class Loaded:
        """A translator of many languages."""

        target_language = tokenizer = None

        def __init__(self, folder, others, precision):
            self.name = folder.name

        def between(self, source, target):
            assert self.name == f"{source}-{target}"
            return self

    monkeypatch.setattr("keras_transformer.cli.common.loaded", Loaded)

    def scores(forward, reverse, sources=(), targets=()):
        assert (forward.name, reverse.name) == ("en-de", "de-en")
        return [len(x.split()) / 100 for x in sources]

    monkeypatch.setattr("keras_transformer.translate.dual_cross_entropy.dual_scores", scores)
    codes = ["--source-language", "en", "--target-language", "de"]
    skipped = ["--skip", "language", "--skip", "script"]  # the words are made up
    return [*codes, *skipped, "--forward", "en-de", "--reverse", "de-en"]


@pytest.mark.parametrize("chunk", [2, 100])
def test_the_best_are_kept_in_order(run, tmp_path, scored, monkeypatch, chunk):
    monkeypatch.setattr(module, "CHUNK", chunk)
    sizes = [3, 1, 4, 2, 5]
    pairs = [("word " * n + "end", "wort " * n + str(i) + " ende") for i, n in enumerate(sizes)]
    noisy = write(tmp_path / "in.tsv", [*pairs, ("same", "same")])
    output, dropped = tmp_path / "out.tsv", tmp_path / "dropped.tsv"
    given = ["-i", noisy, "-o", output, "--dropped", dropped, *scored]
    result = run("clean", *given, "--keep", 0.6)
    assert rows(output) == [pairs[i] for i in (0, 2, 4)]
    assert rows(dropped) == [("identical", "same", "same")] + [("score", *pairs[i]) for i in (1, 3)]
    assert "kept 3 of 6 pairs; dropped 2 score, 1 identical" in result.stderr
    run("clean", *given, "--keep", 1)
    assert rows(output) == pairs


def test_scores_of_a_translator(run, failure, translator, folder, tmp_path):
    reverse = tmp_path / "reverse"
    Translator(translator.model, translator.tokenizer, "de", "en").save(reverse)
    pairs = [("one two", "two one"), ("three", "two"), ("two", "one three")]
    noisy, output = write(tmp_path / "in.tsv", pairs), tmp_path / "out.tsv"
    given = ["-i", noisy, "-o", output, "--forward", folder]
    run("clean", *given, "--reverse", reverse, "--keep", 0.5)
    assert len(rows(output)) == 2 and set(rows(output)) < set(pairs)
    assert "reverse must translate from de to en" in failure(
        run("clean", *given, "--reverse", folder, status=2)
    )


def test_pairs_of_low_similarity_are_dropped(run, tmp_path, monkeypatch):
    """The vectors of a stand-in embedder point where the first letter of the text does."""

    class Embedder:
        @classmethod
        def load(cls, folder):
            assert folder.name == "embedder"
            return cls()

        def embed(self, texts):
            return np.array([[ord(x[0]) == ord("a"), ord(x[0]) != ord("a")] for x in texts], "f")

    monkeypatch.setattr("keras_transformer.tasks.text_embedder.TextEmbedder", Embedder)
    pairs = [("a b", "a c"), ("a d", "b c"), ("same", "same"), ("b e", "c f"), ("b g", "a h")]
    noisy, output, dropped = (tmp_path / x for x in ("in.tsv", "out.tsv", "dropped.tsv"))
    files = ["-i", write(noisy, pairs), "-o", output, "--dropped", dropped]
    run("clean", *files, "--embedder", "embedder", "--min-similarity", 0.5)
    assert rows(output) == [pairs[0], pairs[3]]
    reasons = ["similarity", "identical", "similarity"]
    expected = zip(reasons, (pairs[i] for i in (1, 2, 4)), strict=True)
    assert rows(dropped) == [(reason, *pair) for reason, pair in expected]


def test_bad_options(run, failure, noisy, tmp_path):
    output = tmp_path / "out.tsv"

    def message(*options, inputs=(noisy,), outputs=(output,)):
        files = [*(x for i in inputs for x in ("-i", i)), *(x for o in outputs for x in ("-o", o))]
        line = failure(run("clean", *files, *options, status=2))
        assert not output.exists()
        return line

    assert "--skip must be one of identical, " in message("--skip", "empty")
    assert "go together" in message("--source-language", "en")
    assert "target_language must be a language that" in message(
        "--source-language", "en", "--target-language", "xx"
    )
    assert "threshold must be above 0 and below 1" in message("--near-duplicates", 1)
    assert "--forward and --reverse go together" in message("--forward", "a")
    assert "--keep needs both" in message("--keep", 0.5)
    for options in (["--embedder", "a"], ["--min-similarity", 0.5], ["--min-margin", 1]):
        assert "--embedder goes together with --min-similarity" in message(*options)
    assert "--keep must be above 0 and at most 1, got 1.5" in message("--keep", 1.5)
    assert "none.tsv does not exist" in message(inputs=[tmp_path / "none.tsv"])
    assert "--input takes one file or two, got 3" in message(inputs=[noisy] * 3)
    assert "--input names one side only, raw.en: give it twice" in message(inputs=["raw.en"])
    assert "one that ends in .tsv" in message(outputs=[tmp_path / "out.jsonl"])
    assert "must be a file to write" in message(outputs=[output, tmp_path])


def test_bad_input_with_an_embedder(run, failure, folder, noisy, tmp_path, monkeypatch):
    output = tmp_path / "out.tsv"
    one, two, empty = (tmp_path / x for x in ("one.de", "two.en", "empty.tsv"))
    one.write_text("a\n")
    two.write_text("a\nb\n")
    empty.write_text("")
    asked = ["-o", output, "--embedder", folder, "--min-margin", 0.5]
    assert "is not a saved text encoder but a translator" in failure(
        run("clean", "-i", noisy, *asked, status=2)
    )
    monkeypatch.setattr("keras_transformer.tasks.text_embedder.TextEmbedder.load", lambda x: None)
    for inputs, message in (
        ([empty], "empty.tsv must have at least one pair, got none"),
        ([two, one], "parallel files must have as many lines as each other"),
    ):
        result = run("clean", *(x for path in inputs for x in ("-i", path)), *asked, status=2)
        assert message in failure(result) and not output.exists()
    for limit in (-1, "nan"):
        run("clean", "-i", noisy, *asked, "--min-margin", limit, status=2)


def test_files_must_differ(run, failure, noisy, tmp_path):
    before = noisy.read_bytes()
    link = tmp_path / "link.tsv"
    link.hardlink_to(noisy)
    out = tmp_path / "out.tsv"
    for outputs in ([noisy], [link], [tmp_path / "x/../noisy.tsv"], [out, "--dropped", out]):
        result = run("clean", "-i", noisy, "-o", *outputs, status=2)
        assert "is given twice" in failure(result)
    assert noisy.read_bytes() == before and not out.exists()


@pytest.mark.parametrize("error", [ValueError("broken"), KeyboardInterrupt()])
def test_nothing_is_half_written(run, noisy, tmp_path, monkeypatch, error):
    def stopped(*paths, **languages):
        yield GOOD[0]
        raise error

    monkeypatch.setattr("keras_transformer.data.text_files.iterate_pairs", stopped)
    output = write(tmp_path / "out.tsv", [("old", "alt")])
    before = sorted(tmp_path.iterdir())
    status = 2 if isinstance(error, ValueError) else 130
    run("clean", "-i", noisy, "-o", output, "--dropped", tmp_path / "d/d.tsv", status=status)
    assert rows(output) == [("old", "alt")]
    assert sorted(tmp_path.iterdir()) == before


def test_nothing_left(run, failure, tmp_path):
    noisy = write(tmp_path / "in.tsv", [("same", "same"), ("", "a")])
    message = failure(run("clean", "-i", noisy, "-o", tmp_path / "out.tsv", status=2))
    assert "no pair is left" in message and "1 identical" in message
    assert not (tmp_path / "out.tsv").exists()


def test_pairs_below_a_limit_of_a_metric(run, failure, tmp_path):
    metric = small_metric("kiwi")
    metric.save(tmp_path / "kiwi")
    pairs = [("the dog", "der Hund"), ("two cats", "zwei Katzen"), ("a cat sleeps", "den Hund")]
    scores = metric.score(*map(list, zip(*pairs, strict=True))).tolist()
    limit = (min(scores) + sorted(scores)[1]) / 2
    noisy = write(tmp_path / "in.tsv", [*pairs, ("same", "same")])
    options = ["-i", noisy, "-o", tmp_path / "out.tsv", "--metric", tmp_path / "kiwi"]
    told = run("clean", *options, "--metric-limit", limit).stderr
    assert "dropped 1 identical, 1 metric" in told or "dropped 1 metric, 1 identical" in told
    assert rows(tmp_path / "out.tsv") == [
        x for x, y in zip(pairs, scores, strict=True) if y > limit
    ]
    assert "--metric and --metric-limit go together" in failure(run("clean", *options, status=2))
    small_metric("regression").save(tmp_path / "comet")
    options[-1:] = [tmp_path / "comet", "--metric-limit", 1]
    assert "references must be given" in failure(run("clean", *options, status=2))
