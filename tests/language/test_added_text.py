"""The text of a reply, piece by piece."""

import pytest
import transformers

from keras_transformer.language.added_text import Pieces, context_of, continuations
from keras_transformer.language.stops import Stops
from keras_transformer.text.text_tokenizer import TextTokenizer
from tests.pretrained_files import llama_tokenizer

pytestmark = pytest.mark.once("knows no tensors")


@pytest.fixture(scope="module")
def tokenizer():
    return TextTokenizer.train(["to be or not to be"] * 4, kind="bytes", vocab_size=257)


def pieces(tokenizer, text, stop=()):
    """The pieces of a text of one token a byte, the rest last, and whether it was stopped."""
    (ids,) = tokenizer.encode([text])
    assert len(ids) == len(text.encode())
    one = Pieces(tokenizer, stop=Stops(stop))
    return [*(one.add(token) for token in ids), one.rest()], one.stopped


def test_characters_are_whole(tokenizer):
    found, stopped = pieces(tokenizer, "aé€😀b")
    assert found == ["a", "", "é", "", "", "€", "", "", "", "😀", "b", ""] and not stopped


def test_a_stop_text_is_no_part(tokenizer):
    found, stopped = pieces(tokenizer, "to be END or", stop=["END", "xx"])
    assert "".join(found) == "to be " and stopped
    assert found[6:9] == ["", "", ""]  # it may begin


def test_what_only_begins_like_a_stop_text_comes_later(tokenizer):
    found, stopped = pieces(tokenizer, "to ENough EN", stop=["END"])
    assert found[3:6] == ["", "", "ENo"]
    assert found[-1] == "EN" and "".join(found) == "to ENough EN" and not stopped


def test_a_part_of_a_character_does_not_part_a_stop_text(tokenizer):
    found, stopped = pieces(tokenizer, "to né or", stop=["né"])
    assert found == ["t", "o", " ", "", "", "", "", "", "", ""] and stopped
    found, stopped = pieces(tokenizer, "to nö", stop=["né"])
    assert found == ["t", "o", " ", "", "", "nö", ""] and not stopped


TEXTS = ["there is no cat here", "to be or not to be, is it no?", "größer 日本 😀 €"] * 3
STYLES = ["llama", "metaspace", "gemma", "bytes", "wordpiece"]


def of_style(style):
    if style in ("bytes", "wordpiece"):
        return TextTokenizer.train(TEXTS, style, 300)
    return llama_tokenizer(TEXTS, style)


@pytest.mark.parametrize("style", STYLES)
def test_a_continuation_is_what_transformers_prints_after_the_prompt(style, tmp_path):
    tokenizer = of_style(style)
    tokenizer.save(tmp_path)
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    (spelled,) = tokenizer.encode([" ".join(TEXTS)])
    prompts = [[], spelled[:1], spelled[:3], spelled[:5], spelled * 3]
    new = [spelled[i : i + 9] for i in range(2, len(spelled), 5)]
    both = [(prompt, more) for prompt in prompts for more in new]
    found = continuations(tokenizer, *zip(*both, strict=True))
    spaces = 0
    for (prompt, more), text in zip(both, found, strict=True):
        before, after = (
            theirs.decode(x, skip_special_tokens=True) for x in (prompt, prompt + more)
        )
        if after.startswith(before):  # the prompt ends in a whole character
            assert before + text == after
            spaces += len(prompt) > 1 and text.startswith(" ")
        pieces = Pieces(tokenizer, prompt)
        streamed = "".join([*map(pieces.add, more), pieces.rest()])
        assert streamed.rstrip("\ufffd") == text.rstrip("\ufffd")
    assert spaces


@pytest.mark.parametrize("style", STYLES[:3])
def test_a_character_that_the_prompt_begins(style):
    tokenizer = of_style(style)
    ids = [tokenizer.id_of(f"<0x{byte:02X}>") for byte in "😀".encode()]
    (begun,) = tokenizer.encode(["to"])
    assert continuations(tokenizer, [begun + ids[:2]], [ids[2:]]) == ["😀"]
    one = Pieces(tokenizer, begun + ids[:2])
    assert [one.add(ids[2]), one.add(ids[3]), one.rest()] == ["", "😀", ""]


def test_a_stop_text_with_the_space_before_it():
    tokenizer = of_style("llama")
    (ids,), (more,) = (
        tokenizer.encode(["there is"]),
        tokenizer.encode(["no cat here"], framed=False),
    )
    one = Pieces(tokenizer, ids, stop=Stops([" cat"]))
    assert "".join([*map(one.add, more), one.rest()]) == " no" and one.stopped
    assert one.length == len(" no cat")


@pytest.mark.parametrize("style", STYLES)
def test_the_work_for_a_token_does_not_grow(style):
    tokenizer = of_style(style)
    text = " ".join(TEXTS) + " 日本語で😀€! "
    (ids,) = tokenizer.encode([text * 10], framed=False)
    broken = [tokenizer.id_of(f"<0x{x:02X}>") for x in b"\x80\xf0"] if style == "llama" else []
    counts, decode = [], tokenizer.decode

    class Counting:
        def decode(self, rows, **options):
            counts.append(sum(map(len, rows)))
            return decode(rows, **options)

    pieces = Pieces(Counting(), ids[:9], Stops(["no such text"]))
    found = "".join([*map(pieces.add, ids[9:]), pieces.rest()])
    for token in 200 * broken:
        pieces.add(token)
    assert max(counts) < 150
    (expected,) = continuations(tokenizer, [ids[:9]], [ids[9:]])
    assert found == expected


def test_few_ids_of_a_long_prompt_are_decoded():
    tokenizer = of_style("llama")
    (ids,) = tokenizer.encode(["to be " * 500])
    assert len(context_of(tokenizer, ids)) == 8
    space = [tokenizer.id_of("▁")]
    assert context_of(tokenizer, space * 3) == space * 3
