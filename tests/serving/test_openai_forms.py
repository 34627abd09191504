"""Answers in OpenAI's forms, parsed by the classes of its client."""

import pytest
from openai.types import Completion
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from keras_transformer.language.reply import Event
from keras_transformer.serving.openai_forms import ChatForm, CompletionForm, usage
from keras_transformer.serving.token_texts import Token, TokenTexts
from keras_transformer.text.text_tokenizer import TextTokenizer


@pytest.fixture(scope="module")
def names():
    return TokenTexts(TextTokenizer.train(["to be or not to be"] * 4, kind="bytes", vocab_size=257))


def tokens(names, text):
    (ids,) = names._tokenizer.encode([text])
    pieces = names.pieces([], [])
    events = [
        Event(0, token, -0.5 - i, ((token, -0.5 - i), (3, -4.0)), None, 0)
        for i, token in enumerate(ids)
    ]
    return [names.add(event, pieces)[1] for event in events]


def test_a_chat(names):
    form = ChatForm("poet", 2)
    found = form.whole([form.choice(0, "bé", tokens(names, "bé"), "stop")], usage(5, 2, 3))
    answer = ChatCompletion.model_validate(found)
    assert answer.id.startswith("chatcmpl-") and answer.model == "poet"
    choice = answer.choices[0]
    assert choice.message.content == "bé" and choice.finish_reason == "stop"
    first, *halves = choice.logprobs.content
    assert (first.token, first.bytes, first.logprob) == ("b", [98], -0.5)
    assert [x.logprob for x in first.top_logprobs] == [-0.5, -4.0]
    assert [x.bytes for x in halves] == [[0xC3], [0xA9]]  # halves of a character
    assert answer.usage.total_tokens == 8
    assert answer.usage.prompt_tokens_details.cached_tokens == 2


def test_a_chat_in_chunks(names):
    form = ChatForm("poet", None)
    first = ChatCompletionChunk.model_validate(form.chunk([form.first(1)]))
    assert first.choices[0].delta.role == "assistant" and first.choices[0].index == 1
    part = form.chunk([form.part(0, "b", [], None)])
    assert ChatCompletionChunk.model_validate(part).choices[0].delta.content == "b"
    last = ChatCompletionChunk.model_validate(form.chunk([form.part(0, "", [], "length")]))
    assert last.choices[0].delta.content is None and last.choices[0].finish_reason == "length"
    assert last.id == first.id
    total = ChatCompletionChunk.model_validate(form.chunk([], usage=usage(1, 0, 2)))
    assert total.choices == [] and total.usage.completion_tokens == 2


def test_a_completion(names):
    form = CompletionForm("poet", 2)
    assert form.first(0) is None
    found = form.whole([form.choice(0, "be", tokens(names, "be"), "length")], usage(1, 0, 2))
    choice = Completion.model_validate(found).choices[0]
    assert choice.text == "be" and choice.logprobs.tokens == ["b", "e"]
    assert choice.logprobs.token_logprobs == [-0.5, -1.5]
    assert choice.logprobs.text_offset == [0, 1]
    assert list(choice.logprobs.top_logprobs[0].values()) == [-0.5, -4.0]
    part = form.chunk([form.part(0, "e", tokens(names, "be")[1:], None)])
    # The client does not validate: its class of whole answers is that of chunks, too.
    assert Completion.construct(**part).choices[0].logprobs.text_offset == [1]


def test_two_tokens_of_one_text_are_kept_apart():
    top = tuple(Token(i, text, (97,), -i) for i, text in ((4, "a"), (5, "b"), (9, "a")))
    token = Token(9, "a", (97,), -9.0, 0, top)
    choice = CompletionForm("poet", 3).choice(0, "a", [token], None)
    assert choice["logprobs"]["top_logprobs"] == [{"a": -4, "b": -5, "token_id:9": -9}]
    found = ChatForm("poet", 3).choice(0, "a", [token], None)["logprobs"]["content"][0]
    assert [x["logprob"] for x in found["top_logprobs"]] == [-4, -5, -9]
