"""Tokenizers of one text: there and back, as `transformers` reads them, and bad input."""

import gzip
import os
from pathlib import Path

import pytest
import transformers
from hypothesis import given
from hypothesis import strategies as st

from keras_transformer.text.text_tokenizer import TextTokenizer

TEXTS = ["To be, or not to be:\n that is the question.", "Whether 'tis nobler in the mind"]


@pytest.mark.parametrize("kind", ["bytes", "characters"])
def test_there_and_back(kind, tmp_path):
    tokenizer = TextTokenizer.train(TEXTS, kind, 300)
    assert tokenizer.decode(tokenizer.encode(TEXTS)) == TEXTS
    tokenizer.save(tmp_path)
    again = TextTokenizer.read(tmp_path)
    assert again.fingerprint() == tokenizer.fingerprint()
    assert again.encode(TEXTS) == tokenizer.encode(TEXTS)
    fast = transformers.PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    assert [fast.encode(text) for text in TEXTS] == tokenizer.encode(TEXTS)


BYTES = TextTokenizer.train(TEXTS, "bytes", 300)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_bytes_spell_any_text(text):
    assert BYTES.decode(BYTES.encode([text, f"{text}<|endoftext|>"])) == [
        text,
        f"{text}<|endoftext|>",
    ]


def test_word_pieces_are_framed(tmp_path):
    tokenizer = TextTokenizer.train(TEXTS, "wordpiece", 100)
    (ids,) = tokenizer.encode(["To be"])
    assert ids[0] == tokenizer.id_of("[CLS]") and ids[-1] == tokenizer.id_of("[SEP]")
    assert tokenizer.decode([ids]) == ["to be"]
    tokenizer.save(tmp_path)
    assert TextTokenizer.read(tmp_path).encode(["To be"]) == [ids]


@pytest.mark.skipif("KT_DATA" not in os.environ, reason="KT_DATA is not set")
def test_the_files_of_gpt2_and_bert(tmp_path):
    data = Path(os.environ["KT_DATA"]) / "tokenizers"
    for name, files in {
        "gpt2": {"encoder.json.gz": "vocab.json", "vocab.bpe.gz": "merges.txt"},
        "bert-base-uncased": {"vocab.txt.gz": "vocab.txt"},
    }.items():
        folder = tmp_path / name
        folder.mkdir()
        for source, target in files.items():
            content = (data / name / source).read_bytes()
            (folder / target).write_bytes(gzip.decompress(content))
    texts = [*TEXTS, "Größe 12½ 犬 don't", "  two  spaces "]
    ours = TextTokenizer.read(tmp_path / "gpt2")
    theirs = transformers.GPT2Tokenizer.from_pretrained(tmp_path / "gpt2")
    assert ours.encode(texts) == [theirs.encode(text) for text in texts]
    assert ours.decode(ours.encode(texts)) == texts
    assert ours.encode(["Hello world"]) == [[15496, 995]]
    ours = TextTokenizer.read(tmp_path / "bert-base-uncased")
    theirs = transformers.BertTokenizer.from_pretrained(tmp_path / "bert-base-uncased")
    assert ours.encode(texts) == [theirs.encode(text) for text in texts]
    assert ours.encode(["Hello world"]) == [[101, 7592, 2088, 102]]


def test_bad_input(tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no tokenizer: there is neither"):
        TextTokenizer.read(tmp_path)
    with pytest.raises(ValueError, match="tokenizer.json cannot be read"):
        TextTokenizer(b"{")


PIECES = TextTokenizer.train(TEXTS, "wordpiece", 100)


def test_words_without_pieces_have_a_place():
    (ids, starts), (empty, none) = PIECES.encode_words([["to", " ", "be", "\u200b"], []])
    assert len(ids) == 4 and starts == [1, 2, 2, 3]  # the last at [SEP], not at [CLS]
    assert len(empty) == 2 and none == []


def test_a_vocabulary_without_a_piece_for_unknown_words():
    content = PIECES.content.replace(b"[UNK]", b"[ONE]")
    content = content.replace(b'"unk_token":"[ONE]"', b'"unk_token":"[UNK]"')
    tokenizer = TextTokenizer(content)
    assert tokenizer.encode(["to be"])
    with pytest.raises(ValueError, match="texts must be ones that the tokenizer can encode: Word"):
        tokenizer.encode(["犬"])


@pytest.mark.parametrize(
    "texts,message",
    [
        (["to be"], r"texts\[0\] must be a sequence of strings, got the one string 'to be'"),
        ([["to"], ["to", 3]], r"texts\[1\] must hold strings, got int at texts\[1\]\[1\]"),
        ([["\ud800"]], "texts must be valid Unicode, got a lone surrogate"),
        ([[""]], r"texts must have at least one piece each, got none in \[''\]"),
    ],
)
def test_bad_words_are_named(texts, message):
    with pytest.raises(ValueError, match=message):
        BYTES.encode_words(texts)


@pytest.mark.parametrize(
    "pairs,max_length,message",
    [
        (["ab"], 12, r"pairs\[0\] must be a sequence of strings, got the one string 'ab'"),
        ([("a", "b", "c")], 12, r"pairs\[0\] must be two texts, got \('a', 'b', 'c'\)"),
        ([("a", None)], 12, r"pairs\[0\] must hold strings, got NoneType"),
        ([("a", "b"), ("to be", "or not")], 5, "max_length must be .* at least 6, got 5"),
        ([("to be", "or not")], 0, "max_length must be .* at least 6, got 0"),
        ([("to be", "or not")], 6.0, "max_length must be .* at least 6, got 6.0"),
    ],
)
def test_bad_pairs_are_named(pairs, max_length, message):
    with pytest.raises(ValueError, match=message):
        PIECES.encode_pairs(pairs, max_length)


def test_pairs_that_just_fit():
    ((ids, types, places),) = PIECES.encode_pairs([("to be", "or not")], 6)
    assert len(ids) == 6 and types == [0, 0, 0, 0, 1, 1] and places[4][0] == 0
