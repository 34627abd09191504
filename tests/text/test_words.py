"""Words as ids: known ones, classes of rare ones, a round trip."""

import pytest

from keras_transformer.text import WordTokenizer, load_tokenizer
from keras_transformer.text.words import word_class

TOKENIZER = WordTokenizer.train(["the cat sat", "the dog Painted", "the cat wanted"], ["(S XX )"])


def test_classes_by_hand():
    by_hand = {"painted": "<a~ed>", "Painted": "<A~ed>", "NASDAQ": "<AA~aq>", "cat": "<a>"}
    by_hand |= {"1,200": "<0>", "mid-1990s": "<a0->", "%": "<>", "A": "<A>"}
    by_hand |= {"long-term": "<a-~rm>", "-LRB-": "<A>"}
    assert {word: word_class(word) for word in by_hand} == by_hand


def test_rare_words_are_their_class():
    words = TOKENIZER.pieces_of("source")
    assert words == ["<pad>", "<unk>", "<s>", "</s>", "<a>", "cat", "the"]
    (ids,) = TOKENIZER.encode_source(["the cat sat Wanted"])
    assert [words[i] for i in ids] == ["the", "cat", "<a>", "<unk>", "</s>"]
    assert TOKENIZER.encode_target(["(S XX ) (NP"]) == [[4, 6, 5, 1, 3]]
    assert TOKENIZER.encode_source(["</s>"]) == TOKENIZER.encode_target(["</s>"]) == [[1, 3]]
    assert TOKENIZER.decode_target([[2, 4, 6, 5, 3, 5]]) == ["(S XX )"]
    assert TOKENIZER.source_vocab_size == TOKENIZER.target_vocab_size == 8


def test_sampling_makes_source_words_their_class():
    text = " ".join(["cat"] * 400)
    (ids,) = TOKENIZER.encode_source([text], sampling=0.25, seed=1)
    assert set(ids) == {3, 4, 5} and 60 < ids.count(4) < 140
    assert TOKENIZER.encode_source([text], sampling=0.25, seed=1) == [ids]
    assert TOKENIZER.encode_target(["XX XX"], sampling=0.9, seed=1) == [[6, 6, 3]]


def test_a_round_trip(tmp_path):
    TOKENIZER.save(tmp_path)
    loaded = load_tokenizer(tmp_path)
    assert loaded.fingerprint() == TOKENIZER.fingerprint()
    assert loaded.encode_source(["the dog"]) == TOKENIZER.encode_source(["the dog"])
    (tmp_path / "source.json").write_text('["<pad>", "<unk>", "<s>", "</s>", "dog"]')
    with pytest.raises(ValueError, match="are not those that were saved"):
        load_tokenizer(tmp_path)


def test_bad_input():
    with pytest.raises(ValueError, match="min_count must be a whole number of at least 1, got 0"):
        WordTokenizer.train(["a"], ["b"], min_count=0)
