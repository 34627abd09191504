"""Tokens as clients see them: they spell the reply, at their offsets, in their bytes."""

import pytest

from keras_transformer.language.reply import Event
from keras_transformer.language.stops import Stops
from keras_transformer.serving.token_texts import TokenTexts
from keras_transformer.text.text_tokenizer import TextTokenizer
from tests.pretrained_files import llama_tokenizer

TEXTS = ["there is no cat here", "to be or not to be, is it no?", "größer 日本 € a"] * 3


def of_style(style):
    if style in ("bytes", "wordpiece"):
        return TextTokenizer.train(TEXTS, style, 300)
    return llama_tokenizer(TEXTS, style)


def tokens_of(tokenizer, prompt, ids, stop=(), top=()):
    """The text of a reply and its tokens."""
    names = TokenTexts(tokenizer)
    pieces, text, tokens = names.pieces(prompt, Stops(stop)), "", []
    for token in ids:
        event = Event(0, token, -1.0, tuple((x, -1.0 - i) for i, x in enumerate(top)), None, 0)
        given, found = names.add(event, pieces)
        text += given
        tokens.append(found)
    return text + pieces.rest(), tokens


@pytest.mark.parametrize("style", ["llama", "metaspace", "gemma", "bytes", "wordpiece"])
@pytest.mark.parametrize("prompt", [0, 1, 3, 4])
def test_tokens_spell_the_reply(style, prompt):
    tokenizer = of_style(style)
    (ids,) = tokenizer.encode([" ".join(TEXTS) + " ёж 😀!"])
    text, tokens = tokens_of(tokenizer, ids[:prompt], ids[prompt:])
    assert len(tokens) == len(ids) - prompt
    raw = b"".join(bytes(x.bytes) for x in tokens if x.id not in tokenizer.added_ids)
    assert raw == text.encode()
    for token in tokens:
        if token.text.startswith("bytes:"):  # of a character that other tokens complete
            raw = text.encode()[len(text[: token.offset].encode()) :]
            assert bytes(token.bytes) in raw
        elif token.id not in tokenizer.added_ids:
            assert text[token.offset : token.offset + len(token.text)] == token.text
    offsets = [token.offset for token in tokens]
    assert offsets == sorted(offsets) and offsets[0] == 0


def test_the_space_of_a_token_is_kept():
    tokenizer = of_style("llama")
    (ids,) = tokenizer.encode(["there is no cat"])
    text, tokens = tokens_of(tokenizer, ids[:2], ids[2:])
    assert text == " is no cat"
    assert [x.text for x in tokens] == [" is", " no", " cat"]
    assert [x.offset for x in tokens] == [0, 3, 6]


def test_the_bytes_of_a_part_of_a_character():
    tokenizer = of_style("llama")
    (prompt,), ids = (
        tokenizer.encode(["to"]),
        [tokenizer.id_of(f"<0x{x:02X}>") for x in "😀".encode()],
    )
    text, tokens = tokens_of(tokenizer, prompt, [*ids, tokenizer.id_of("a")])
    assert text == "😀a" and [x.offset for x in tokens] == [0, 0, 0, 0, 1]
    assert tokens[0].text == "bytes:\\xf0" and tokens[1].bytes == (0x9F,)


def test_most_probable_tokens_in_their_context():
    tokenizer = of_style("llama")
    (prompt,) = tokenizer.encode(["to"])
    top = [tokenizer.id_of(x) for x in ("▁a", "a", "<0x61>", "</s>", "<0xF0>")]
    _, (token,) = tokens_of(tokenizer, prompt, [top[0]], top=top)
    assert [x.text for x in token.top] == [" a", "a", "a", "</s>", "bytes:\\xf0"]
    assert [x.id for x in token.top] == top and token.top[0].bytes == (32, 97)


def test_a_special_token_adds_no_text():
    tokenizer = of_style("bytes")
    (ids,) = tokenizer.encode(["to"])
    text, tokens = tokens_of(tokenizer, [], [*ids, 0, *ids])
    assert text == "toto" and tokens[len(ids)].text == "<|endoftext|>"
    assert [x.offset for x in tokens][len(ids) :] == [
        2,
        *(2 + x.offset for x in tokens[: len(ids)]),
    ]
