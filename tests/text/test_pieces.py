"""Texts as the pieces of a vocabulary: ids, places in the text, symbols, bytes."""

import json

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from keras_transformer.text import SentencePieceTokenizer
from keras_transformer.text.pieces import (
    SPACE,
    FastPieces,
    SentencePieces,
    decoded,
    encoded,
    has_words,
    offsets,
)
from tests.text.sentences import ENGLISH, UNICODE, trained

TAGS = ">>[a-z]+<<"


@pytest.fixture(scope="module")
def model():
    return trained().source_model


@pytest.fixture(scope="module")
def processor(model):
    return sentencepiece.SentencePieceProcessor(model_proto=model)


@pytest.fixture(scope="module")
def pieces(processor, model):
    """The pieces of a model in reverse order, and two symbols."""
    own = [processor.id_to_piece(i) for i in reversed(range(len(processor)))]
    return SentencePieces(model, [*own, ">>de<<", ">>fr<<"], own.index("<unk>"), TAGS)


def test_the_vocabulary_numbers_the_pieces(pieces, processor):
    last = len(processor) - 1
    for text in ENGLISH + UNICODE:
        assert pieces.encode(text) == [last - i for i in processor.encode(text)]


def test_pieces_that_the_vocabulary_lacks(model, processor):
    text = "The dog sees the ball."
    known = processor.encode(text, out_type=str)[:2]
    found = SentencePieces(model, ["<unk>", *known], 0).encode(text)
    assert found[:2] == [1, 2] and set(found[2:]) <= {0, 1, 2} and 0 in found


def test_symbols_cut_a_text(pieces):
    german, french = (pieces.pieces.index(x) for x in (">>de<<", ">>fr<<"))
    plain = pieces.encode("The dog")
    assert pieces.encode(">>de<<The dog") == [german, *plain]
    assert pieces.encode("The dog>>fr<<>>de<<") == [*plain, french, german]
    assert pieces.encode(">>xx<<")[0] == pieces.unk_id
    assert pieces.unk_id not in pieces.encode(">>d e<<")


@pytest.mark.once("text: no tensor is read")
def test_words_that_are_pieces():
    texts = ["one two", "two one"]
    options = dict(vocab_size=32, byte_fallback=False, symbols=["<sep>"])
    tokenizer = SentencePieceTokenizer.train(texts, texts, **options)
    assert has_words(tokenizer, ["<sep>"]) and not has_words(tokenizer, ["<sep>", "<tag>"])
    hidden = type("Exported", (), {"pieces_of": lambda self, side: int("no list")})
    assert not has_words(hidden(), ["<sep>"])


def test_what_looks_like_a_piece_is_spelled_out(model):
    own = SentencePieces(model, trained().pieces_of("source"), 1)
    assert 3 not in own.encode("a </s> b")
    assert own.decode(own.encode("a </s> b")) == "a </s> b"


@given(st.text(alphabet="adeThg .½日>><<", max_size=20))
def test_places_follow_each_other_and_cover_the_text(text):
    own = SentencePieces(trained().source_model, trained().pieces_of("source"), 1, TAGS)
    places = own.offsets(text)
    assert len(places) == len(own.encode(text))
    assert all(0 <= begin <= end <= len(text) for begin, end in places)
    assert places == sorted(places)
    covered = {i for begin, end in places for i in range(begin, end)}
    assert {i for i, letter in enumerate(text) if letter != " "} <= covered


def test_places_after_a_symbol(pieces):
    text = "The dog>>de<<sees"
    places = pieces.offsets(text)
    ids = pieces.encode(text)
    place = ids.index(pieces.pieces.index(">>de<<"))
    assert places[place] == (7, 13)
    assert places[place - 1][1] == 7 and places[place + 1][0] == 13
    assert places[-1][1] == len(text)


def test_all_bytes_of_a_character_are_at_its_place(processor):
    places = offsets(processor, "a日b")
    pieces = processor.encode("a日b", out_type=str)
    assert [x for x, piece in zip(places, pieces, strict=True) if piece.startswith("<0x")] == [
        (1, 2)
    ] * 3


def test_the_surfaces_of_a_text_are_its_bytes(pieces):
    surfaces = pieces.surfaces()
    for text in [*ENGLISH[:5], "naïve 日本 ½", "🐶!"]:
        written = b"".join(surfaces[i] for i in pieces.encode(text)).decode()
        assert written.replace(SPACE, " ").strip() == pieces.decode(pieces.encode(text))
    assert surfaces[pieces.pieces.index("</s>")] == b""


@pytest.mark.parametrize("content", [b"no model", None])
def test_what_is_no_model(content):
    with pytest.raises(ValueError, match="must be the bytes of a SentencePiece model"):
        SentencePieces(content, ["a"], 0)


def test_a_tokenizer_json():
    vocabulary = {"[UNK]": 0, "the": 1, "dog": 2, "do": 4, "##g": 5, "[SEP]": 7}
    added = dict(
        id=7, content="[SEP]", single_word=False, lstrip=False, rstrip=False, normalized=False,
        special=True,
    )  # fmt: skip
    model = dict(
        type="WordPiece", unk_token="[UNK]", continuing_subword_prefix="##",
        max_input_chars_per_word=9, vocab=vocabulary,
    )  # fmt: skip
    content = dict(
        version="1.0", truncation=None, padding=None, added_tokens=[added], normalizer=None,
        pre_tokenizer={"type": "Whitespace"}, post_processor=None,
        decoder={"type": "WordPiece", "prefix": "##", "cleanup": True}, model=model,
    )  # fmt: skip
    pieces = FastPieces(json.dumps(content).encode())
    assert pieces.pieces == ["[UNK]", "the", "dog", "", "do", "##g", "", "[SEP]"]
    assert pieces.encode("the dog cat") == [1, 2, 0]
    assert pieces.offsets("the dog") == [(0, 3), (4, 7)]
    assert pieces.decode([1, 4, 5, 7]) == "the dog"
    assert 7 not in pieces.encode("[SEP]")  # as text


def test_a_broken_tokenizer_json():
    with pytest.raises(ValueError, match=r"tokenizer\.json cannot be read"):
        FastPieces(b"{}")


def test_text_that_is_no_unicode(pieces):
    with pytest.raises(ValueError, match="texts must be valid Unicode"):
        pieces.encode("b\ud83d")


@pytest.mark.once("text: no tensor is read")
def test_many_texts_and_one_have_the_same_ids(processor, monkeypatch):
    texts = ["one two", "", "  two", "Über \N{SNOWMAN}", *ENGLISH[:20]]
    alone = encoded(processor, texts)
    again = decoded(processor, alone)
    monkeypatch.setattr("keras_transformer.text.pieces.THREADED", 3)  # in threads
    assert encoded(processor, texts) == alone == processor.encode(texts, add_eos=True)
    assert decoded(processor, [*alone, []]) == [*again, ""] == processor.decode([*alone, []])
