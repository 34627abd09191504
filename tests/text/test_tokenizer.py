"""Where the ids of a text stand in it: whatever the tokenizer makes of the text before."""

import functools
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from keras_transformer.text import (
    KerasHubTokenizer,
    MarianTokenizer,
    SentencePieceTokenizer,
    WordTokenizer,
    read_tokenizer,
)

TEXTS = ["The old man sees the dog.", "Ein Hund schläft hier.", "I see 3 dogs, don't I?"] * 20
MULTILINGUAL = {"m2m_100": ("en", "de"), "nllb": ("eng_Latn", "deu_Latn"), "t5": (None, None)}
OURS = {"bpe": {}, "unigram": dict(byte_fallback=False, kind="unigram"), "lower": {}}
KINDS = (*OURS, "words", "hub", "marian", *MULTILINGUAL)


@pytest.fixture(scope="module")
def made(marian_files, tokenizer_files, tmp_path_factory):
    """`made(kind)`: a tokenizer, and whether it has pieces for all characters."""

    @functools.cache
    def make(kind):
        folder = tmp_path_factory.mktemp(kind)
        if kind in OURS:
            options = dict(vocab_size=340, lowercase=kind == "lower") | OURS[kind]
            return SentencePieceTokenizer.train(TEXTS, TEXTS, **options)
        if kind == "words":
            return WordTokenizer.train(TEXTS, TEXTS)
        if kind == "hub":
            keras_hub = pytest.importorskip("keras_hub")
            proto = make("bpe").source_model
            return KerasHubTokenizer(keras_hub.tokenizers.SentencePieceTokenizer(proto=proto))
        if kind == "marian":
            return MarianTokenizer.read(marian_files(folder, TEXTS, TEXTS))
        config = tokenizer_files(kind, folder, TEXTS)
        return read_tokenizer(folder, config).between(*MULTILINGUAL[kind])

    return make


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25, deadline=None)
@given(text=st.text(st.characters(exclude_categories=["C"]), max_size=12).map("The dog {}.".format))
@example("  Two  spaces\u3000and a ﬁne café … ½  ")
@example("日本語 the 日本語")
@example("😀")
@example("")
def test_spans_never_fall_and_cover_the_text(made, kind, text):
    tokenizer = made(kind)
    (ids,) = tokenizer.encode_source([text])
    frame = tokenizer.source_frame
    spans = tokenizer.spans("source", text)
    assert len(spans) == len(ids) - sum(map(len, frame))
    covered = set()
    for (start, end), (later, last) in zip([(0, 0), *spans], spans, strict=False):
        assert 0 <= start <= later <= last <= len(text) and end <= last
        piece = text[later:last]
        assert piece == piece.strip()
        covered.update(range(later, last))
    if kind == "hub":  # known by its decoded text alone, which normalization has changed
        return
    for i, character in enumerate(text):
        if unicodedata.category(character)[0] in "LNPS":
            assert i in covered, (i, character)


@pytest.mark.parametrize("kind", KINDS)
def test_spans_of_words(made, kind):
    tokenizer, text = made(kind), "The old  dog sees 3"
    (ids,) = tokenizer.encode_target([text])
    joined = [text[start:end] for start, end in tokenizer.spans("target", text)]
    assert "".join(joined) == text.replace(" ", "")
    for word in ("The", "dog"):  # a piece is of one word
        assert any(word.startswith(piece) and piece for piece in joined)
    assert len(joined) == len(ids) - sum(map(len, tokenizer.target_frame))


def test_bytes_of_a_character_share_its_span(made):
    spans = made("bpe").spans("source", "a 犬")
    assert [span for span in spans if span[0] < span[1]] == [(0, 1)] + [(2, 3)] * 3
    spans = made("bpe").spans("source", "a…")  # three dots to the model
    assert spans[-3:] == [(1, 2)] * 3


@pytest.mark.parametrize("kind", ["bpe", "marian", "nllb"])
def test_normalized_text(made, kind):
    text = "see…  ﬁne"
    spans = made(kind).spans("source", text)
    assert {text[a:b] for a, b in spans} & {"…", "ﬁ"}
    assert (0, 0) not in spans[1:] and spans[-1][1] == len(text)


def test_a_tag_in_the_text_is_one_id(made):
    spans = made("marian").spans("source", ">>fra<<A dog")
    assert spans[0] == (0, 7) and spans[-1][1] == 12


def test_another_than_a_text_is_refused(made):
    with pytest.raises(ValueError, match="text must hold strings, got int"):
        made("words").spans("source", 3)
