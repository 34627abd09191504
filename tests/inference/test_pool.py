"""Several processes say what one says, and end as they should."""

import re

import numpy as np
import pytest
from typer.testing import CliRunner

from keras_transformer import TranslatorPool, cli
from keras_transformer.inference.translator import Translator
from keras_transformer.text import SentencePieceTokenizer

WORDS = ["one", "two", "three", "four", "five"]
SHORT = dict(max_extra_length=4)


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(0)
    lines = [" ".join(rng.choice(WORDS, n)) for n in rng.integers(1, 6, 50)]
    return [*lines, "", "  "]


@pytest.fixture(scope="module")
def translator(tiny_transformer, texts):
    tokenizer = SentencePieceTokenizer.train(texts, texts, vocab_size=32, byte_fallback=False)
    size = tokenizer.source_vocab_size
    model = tiny_transformer(source_vocab_size=size, target_vocab_size=size, max_length=40)
    return Translator(model, tokenizer, "en", "de")


@pytest.fixture(scope="module")
def folder(translator, tmp_path_factory):
    folder = tmp_path_factory.mktemp("parallel")
    translator.save(folder)
    return folder


@pytest.fixture(scope="module")
def pool(folder):
    with TranslatorPool(folder, processes=2) as pool:
        yield pool


def test_a_pool_translates_as_the_translator_does(pool, translator, texts):
    expected = translator.translate(texts, beam_size=3, **SHORT)
    assert len(set(expected)) > 2
    assert pool.translate(texts, beam_size=3, **SHORT) == expected
    stream = pool.translate_stream(iter(texts), chunk_size=7, beam_size=3, **SHORT)
    assert list(stream) == expected
    assert pool.translate([]) == []


def test_nbest_has_the_same_texts_and_scores(pool, translator, texts):
    found = pool.nbest(texts[:9], beam_size=3, **SHORT)
    for ours, theirs in zip(found, translator.nbest(texts[:9], beam_size=3, **SHORT), strict=True):
        assert [one.text for one in ours] == [one.text for one in theirs]
        scores = [one.score for one in theirs]
        np.testing.assert_allclose([one.score for one in ours], scores, rtol=1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(beam_size=0), "beam_size must be a whole number of at least 1, got 0"),
        (dict(prefixes=["one"]), "prefixes must be left out, got ['one']"),
    ],
)
def test_bad_options_are_refused_and_the_pool_lives_on(pool, options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        pool.translate(["one"], **options)
    assert pool.translate([""]) == [""]


def test_bad_texts_are_refused(pool):
    with pytest.raises(ValueError, match="texts"):
        pool.translate("one two")


def test_bad_pools_are_refused(folder, tmp_path):
    with pytest.raises(ValueError, match="processes must be a whole number of at least 1, got 0"):
        TranslatorPool(folder, processes=0)
    with pytest.raises(ValueError, match="is not a saved translator"):
        TranslatorPool(tmp_path, processes=1)


def test_a_process_that_ends_is_told(folder):
    with TranslatorPool(folder, processes=1) as pool:
        pool._workers[0].kill()
        with pytest.raises(RuntimeError, match="a process of the pool has ended with status"):
            pool.translate(["one"])
    workers = pool._workers
    assert all(worker.poll() is not None for worker in workers)
    with pytest.raises(RuntimeError, match="has ended"):
        pool.translate(["one"])


def test_the_command_line_has_processes(folder, translator, texts):
    arguments = ["translate", str(folder), "--processes", "2", "--max-extra-length", "4"]
    result = CliRunner().invoke(cli.app, arguments, input="\n".join(texts) + "\n")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == translator.translate(texts, **SHORT)
