"""Reranking from the command line, and the weights that it finds."""

import pytest

from keras_transformer import CausalLM
from keras_transformer.models import GPT, GPTConfig
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.translate.reranking import Reranker, tune_weights
from keras_transformer.translate.translator import Translator

LINES = ["one two", "", "three", "two two one"]
SHORT = dict(max_extra_length=4)


@pytest.fixture(scope="module")
def folders(translator, tmp_path_factory):
    """A translator of the other direction and a language model."""
    folder = tmp_path_factory.mktemp("models")
    Translator(translator.model, translator.tokenizer, "de", "en").save(folder / "back")
    text = TextTokenizer.train(LINES, "bytes", 270)
    sizes = dict(d_model=16, d_ff=16, num_layers=1, num_heads=2, max_length=128)
    CausalLM(GPT(GPTConfig(270, **sizes)), text).save(folder / "writer")
    return folder


def test_the_options_are_those_of_a_reranker(run, translator, folder, folders):
    models = ["--rerank-reverse", folders / "back", "--rerank-language-model", folders / "writer"]
    weights = dict(reverse=0.5, language_model=0.2, coverage=0.1, length=-0.3)
    given = [x for name, value in weights.items() for x in ("--rerank-weight", f"{name}={value}")]
    loaded = dict(
        reverse=Translator.load(folders / "back"),
        language_model=CausalLM.load(folders / "writer"),
    )
    reranker = Reranker(translator, weights, **loaded)
    options = ["--rerank", 3, *models, *given, "--max-extra-length", 4, "--chunk-size", 3]
    found = run("translate", folder, *options, stdin="\n".join(LINES)).stdout.splitlines()
    assert found == reranker.translate(LINES, 3, **SHORT)


def test_weights_for_a_test_set(run, translator, folder, folders, tmp_path):
    for name, lines in dict(en=LINES, de=["two", "x", "three one two one", "two"]).items():
        (tmp_path / f"dev.{name}").write_text("\n".join(lines) + "\n")
    weights = ["--rerank-weight", "length=0.5", "--rerank-weight", "reverse=0"]
    options = [*weights, "--rerank-reverse", folders / "back", "--max-extra-length", 4]
    files = ["--source", tmp_path / "dev.en", "--reference", tmp_path / "dev.de"]
    result = run("tune-reranking", folder, *files, "--rerank", 3, *options)
    back = Translator.load(folders / "back")
    start = Reranker(translator, dict(length=0.5, reverse=0.0), reverse=back)
    expected = tune_weights(start, LINES, ["two", "x", "three one two one", "two"], 3, **SHORT)
    chosen = dict(x.split("=") for x in result.stdout.split()[1::2])
    assert {x: float(y) for x, y in chosen.items()} == expected.reranker.weights
    assert f"BLEU {expected.bleu:.2f}" in result.stderr
    # What it writes are options of translate.
    given = [*result.stdout.split(), "--rerank-reverse", folders / "back", "--max-extra-length", 4]
    found = run("translate", folder, "--rerank", 3, *given, stdin="two\n").stdout
    assert found == expected.reranker.translate(["two"], 3, **SHORT)[0] + "\n"


@pytest.mark.once("errors before any computation")
def test_bad_options(run, failure, folder, folders):
    length = ["--rerank-weight", "length=1"]
    for arguments, said in (
        (("--rerank", 3), "weights must be some of"),
        (("--rerank", 3, "--rerank-weight", "length"), "--rerank-weight must be NAME=NUMBER, got"),
        (("--rerank", 3, "--rerank-weight", "length=x"), "must be NAME=NUMBER, got 'length=x'"),
        (("--rerank", 3, "--rerank-weight", "length=nan"), "weight of length must be a finite"),
        (("--rerank", 3, "--rerank-weight", "reverse=1"), "reverse must have a model and a weight"),
        (
            ("--rerank", 3, "--rerank-weight", "reverse=1", "--rerank-reverse", folder),
            "reverse must be a translator from de to en, got 'en to de'",
        ),
        (("--rerank", 3, *length, "--beam-size", 5), "--beam-size must be left out with --rerank"),
        (("--rerank", 3, *length, "-n", 2), "--num-hypotheses must be left out with --rerank"),
        (("--rerank", 3, *length, "--mbr", 2), "--rerank must be left out with --mbr"),
        (length, "--rerank-weight must be left out without --rerank"),
        (("--rerank-reverse", folder), "--rerank-reverse must be left out without --rerank"),
        (
            ("--rerank", 3, *length, "-i", __file__, "-o", f"{folders}/out/"),
            "--rerank must be left out if --output is a folder",
        ),
    ):
        message = failure(run("translate", folder, *arguments, stdin="x", status=2))
        assert said in message, message
    assert not (folders / "out").exists()
    result = run("translate", folder, "--rerank", 1, *length, stdin="x", status=2)
    assert "--rerank" in result.stderr and "greater than or equal to 2" in result.stderr
