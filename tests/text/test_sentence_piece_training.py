"""Training of SentencePiece tokenizers: sizes of vocabularies, wrong options and texts."""

import functools
import re
import warnings

import pytest
import sentencepiece

from keras_transformer.text import SentencePieceTokenizer
from tests.text.sentences import ENGLISH, GERMAN


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_vocabulary_is_a_multiple_of_eight_that_really_exists(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tokenizer = SentencePieceTokenizer.train(ENGLISH, GERMAN, vocab_size=321, kind=kind)
    assert tokenizer.source_vocab_size == 328
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.source_model)
    assert processor.get_piece_size() == 328


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_small_corpus_gets_a_smaller_vocabulary_and_a_warning(kind):
    with pytest.warns(UserWarning, match="support .* pieces only, got vocab_size 8,000"):
        tokenizer = SentencePieceTokenizer.train(["hello world"], ["hallo Welt"], kind=kind)
    assert tokenizer.source_vocab_size < 400 and tokenizer.source_vocab_size % 8 == 0
    every_id = [[id_] for id_ in range(tokenizer.source_vocab_size)]
    assert tokenizer.decode_source(every_id)[-1] == ""
    ids = tokenizer.encode_source(["hello <unused0> Welt"])
    assert tokenizer.decode_source(ids) == ["hello <unused0> Welt"]


def test_sentinels_stand_behind_the_pieces_and_are_no_text():
    plain = SentencePieceTokenizer.train(ENGLISH, GERMAN, vocab_size=320)
    tokenizer = SentencePieceTokenizer.train(ENGLISH, GERMAN, vocab_size=320, sentinels=5)
    assert plain.sentinel_ids == () and tokenizer.source_vocab_size == 328
    assert tokenizer.sentinel_ids == tuple(range(320, 325))
    texts = ["<extra_id_0> is text", *ENGLISH]
    assert tokenizer.encode_source(texts) == plain.encode_source(texts)
    assert tokenizer.decode_source([[320, 324]]) == [""]
    with pytest.raises(ValueError, match="sentinels must be a whole number of at least 0, got -1"):
        SentencePieceTokenizer.train(ENGLISH, GERMAN, sentinels=-1)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_training_is_deterministic_and_quiet(kind, capfd):
    make = functools.partial(SentencePieceTokenizer.train, vocab_size=384, kind=kind)
    first, second = make(iter(ENGLISH), iter(GERMAN)), make(ENGLISH, GERMAN)
    assert first.source_model == second.source_model
    assert first.fingerprint() == second.fingerprint()
    assert make(GERMAN, ENGLISH[1:]).fingerprint() != first.fingerprint()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "word"}, r"kind must be one of \['bpe', 'unigram'\], got 'word'"),
        ({"vocab_size": 0}, "vocab_size must be an integer from 1 to 1,000,000, got 0"),
        ({"vocab_size": 10**7}, "vocab_size must be an integer from 1 to 1,000,000"),
        ({"vocab_size": 8000.0}, "vocab_size must be an integer"),
        ({"vocab_size": 100}, "vocab_size must be at least .* special pieces, 256 .* got 104"),
        ({"character_coverage": 0.5}, "character_coverage must be 0.98 to 1, got 0.5"),
    ],
)
def test_bad_training_options(options, message):
    with pytest.raises(ValueError, match=message):
        SentencePieceTokenizer.train(ENGLISH, GERMAN, **options)


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ([], [], "source_texts and target_texts must hold some text"),
        (["", " "], ["\n"], "got 3 empty lines"),
        ("one string", GERMAN, "source_texts must be a sequence of strings"),
        (ENGLISH, [*GERMAN, None], r"got NoneType at target_texts\[144\]"),
        (["x" * 5000], [], "lines of more than 4,192 bytes do not count"),
    ],
)
def test_bad_training_texts(source, target, message):
    with pytest.raises(ValueError, match=message):
        SentencePieceTokenizer.train(source, target)


def test_empty_target_of_a_separate_vocabulary():
    with pytest.raises(ValueError, match="target_texts must hold some text"):
        SentencePieceTokenizer.train(ENGLISH, [""], vocab_size=400, shared=False)


@pytest.mark.parametrize("byte_fallback", [True, False])
def test_a_vocabulary_that_is_too_small_names_the_least_that_works(byte_fallback):
    make = functools.partial(
        SentencePieceTokenizer.train, ENGLISH, GERMAN, byte_fallback=byte_fallback
    )
    with pytest.raises(ValueError, match=r"^vocab_size must be at least \d+ for ") as found:
        make(vocab_size=8)
    least = int(re.search(r"at least (\d+)", str(found.value))[1])
    assert make(vocab_size=least).source_vocab_size == least
    with pytest.raises(ValueError, match=f"at least {least} .* got {least - 8}"):
        make(vocab_size=least - 8)
