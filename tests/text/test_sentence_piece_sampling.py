"""Subword sampling of SentencePiece tokenizers: seeds, processes, the same texts."""

import functools
import multiprocessing
import threading

import numpy as np
import pytest

from tests.text.sentences import ENGLISH, GERMAN, UNICODE, trained


def sample(tokenizer, seed, results):
    results.put(tokenizer.encode_source(ENGLISH + UNICODE, sampling=0.2, seed=seed))


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_sampling_depends_on_the_seed_alone(kind):
    tokenizer = trained(kind)
    texts = ENGLISH + UNICODE
    encode = functools.partial(tokenizer.encode_source, texts, sampling=0.2)
    expected = encode(seed=5)
    assert expected != tokenizer.encode_source(texts) != encode(seed=6) != expected
    encode(seed=None)
    assert encode(seed=np.int64(5)) == expected

    drawn = []
    thread = threading.Thread(target=lambda: drawn.append(encode(seed=5)))
    thread.start()
    thread.join()
    assert drawn == [expected]


def test_sampling_is_the_same_in_another_process():
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    for kind in ("bpe", "unigram"):
        process = context.Process(target=sample, args=(trained(kind), 5, results))
        process.start()
        assert results.get(timeout=60) == trained(kind).encode_source(
            ENGLISH + UNICODE, sampling=0.2, seed=5
        )
        process.join()


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_sampled_ids_spell_the_same_texts(kind):
    tokenizer = trained(kind)
    texts = ENGLISH + GERMAN + UNICODE
    plain = tokenizer.decode_target(tokenizer.encode_target(texts))
    rows = tokenizer.encode_target(texts, sampling=0.5, seed=1)
    assert tokenizer.decode_target(rows) == plain
    assert all(row[-1] == tokenizer.eos_id for row in rows)
