"""Texts become pieces and sentences in the page as in Python."""

import base64
import random

import pytest
import sentencepiece

from keras_transformer.text import SentencePieceTokenizer
from tests.export.translators import ENGLISH, MADE_UP

pytestmark = pytest.mark.once("the page's own code")

ENCODE = """async ([model, texts]) => {
    const { SentencePiece } = await import("./sentencepiece.js");
    const splitter = new SentencePiece(Uint8Array.from(atob(model), (x) => x.charCodeAt(0)));
    return texts.map((text) => splitter.encode(text)).map((x) => [x, splitter.decode(x)]);
}"""
ODD = "aäßé ﬁ①½…　\u00a0\u200b\u200d\t▁<s>ｱｶﾞ가각İſ한日本😀👨‍👩‍👧🇩🇪\u00ad\u0301e\u0308<0x41>>de<<BT"
KINDS = [
    dict(kind="bpe", byte_fallback=True),
    dict(kind="bpe", byte_fallback=False, lowercase=True),
    dict(kind="unigram", byte_fallback=True, lowercase=True),
    dict(kind="unigram", byte_fallback=False),
]


def texts():
    draw = random.Random(0)
    for _ in range(300):
        codes = (
            draw.choice([draw.randrange(33, 0x3000), draw.randrange(0xF900, 0x1F9FF)]) for _ in ODD
        )
        letters = [draw.choice([draw.choice(ODD), draw.choice(ENGLISH[0]), chr(x)]) for x in codes]
        yield "".join(letters[: draw.randrange(25)])


@pytest.mark.parametrize("options", KINDS, ids=lambda x: "-".join(map(str, x.values())))
def test_pieces_are_those_of_sentencepiece(modules, options):
    languages = dict(target_languages=["de", "en"], symbols=["<BT>"])
    tokenizer = SentencePieceTokenizer.train(
        ENGLISH, MADE_UP, vocab_size=320, **options, **languages
    )
    model, lines = tokenizer.source_model, ["", " ", *ENGLISH[:40], *texts()]
    encoded = modules.evaluate(ENCODE, [base64.b64encode(model).decode(), lines])
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    for text, (pieces, decoded) in zip(lines, encoded, strict=True):
        expected = processor.encode(text, out_type=str)
        assert pieces == expected, text
        assert decoded == processor.decode_pieces(expected).replace("▁", " ").strip(), text


SENTENCES = """async ([text, language]) => {
    const { partsOf } = await import("./sentences.js");
    return partsOf(text, language);
}"""


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("", []),
        (" \n ", []),
        ("One", ["One"]),
        ("One. Two!  Three?\n\nFour", ["One.", "Two!", "Three?", "Four"]),
        ("I saw Mr. Smith. He slept.", ["I saw Mr. Smith.", "He slept."]),
        ("a line\r\nbreak", ["a line", "break"]),
    ],
)
def test_sentences(modules, text, sentences):
    parts = modules.evaluate(SENTENCES, [text, "en"])
    assert "".join(parts) == text
    assert parts[1::2] == sentences
    assert not "".join(parts[::2]).strip()
