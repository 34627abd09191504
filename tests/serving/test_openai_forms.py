"""Answers in OpenAI's forms, parsed by the classes of its client."""

import pytest
from openai.types import Completion
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from keras_transformer.inference.reply import Event
from keras_transformer.serving.openai_forms import ChatForm, CompletionForm, Names, usage
from keras_transformer.text.text_tokenizer import TextTokenizer


@pytest.fixture(scope="module")
def names():
    return Names(TextTokenizer.train(["to be or not to be"] * 4, kind="bytes", vocab_size=257))


def events(names, text):
    (ids,) = names._tokenizer.encode([text])
    return [
        Event(0, token, -0.5 - i, ((token, -0.5 - i), (3, -4.0)), None, 0)
        for i, token in enumerate(ids)
    ]


def test_the_text_of_tokens(names):
    assert [names.of(event.token) for event in events(names, "be")] == ["b", "e"]
    assert names.of(0) == "<|endoftext|>"


def test_a_chat(names):
    form = ChatForm("poet", names, 2)
    found = form.whole([form.choice(0, "bé", events(names, "bé"), "stop")], usage(5, 2, 3))
    answer = ChatCompletion.model_validate(found)
    assert answer.id.startswith("chatcmpl-") and answer.model == "poet"
    choice = answer.choices[0]
    assert choice.message.content == "bé" and choice.finish_reason == "stop"
    first, *halves = choice.logprobs.content
    assert (first.token, first.bytes, first.logprob) == ("b", [98], -0.5)
    assert [x.logprob for x in first.top_logprobs] == [-0.5, -4.0]
    assert [x.bytes for x in halves] == [None, None]  # halves of a character
    assert answer.usage.total_tokens == 8
    assert answer.usage.prompt_tokens_details.cached_tokens == 2


def test_a_chat_in_chunks(names):
    form = ChatForm("poet", names, None)
    first = ChatCompletionChunk.model_validate(form.chunk([form.first(1)]))
    assert first.choices[0].delta.role == "assistant" and first.choices[0].index == 1
    part = form.chunk([form.part(0, "b", [], None, 0)])
    assert ChatCompletionChunk.model_validate(part).choices[0].delta.content == "b"
    last = ChatCompletionChunk.model_validate(form.chunk([form.part(0, "", [], "length", 1)]))
    assert last.choices[0].delta.content is None and last.choices[0].finish_reason == "length"
    assert last.id == first.id
    total = ChatCompletionChunk.model_validate(form.chunk([], usage=usage(1, 0, 2)))
    assert total.choices == [] and total.usage.completion_tokens == 2


def test_a_completion(names):
    form = CompletionForm("poet", names, 2)
    assert form.first(0) is None
    found = form.whole([form.choice(0, "be", events(names, "be"), "length")], usage(1, 0, 2))
    choice = Completion.model_validate(found).choices[0]
    assert choice.text == "be" and choice.logprobs.tokens == ["b", "e"]
    assert choice.logprobs.token_logprobs == [-0.5, -1.5]
    assert choice.logprobs.text_offset == [0, 1]
    assert list(choice.logprobs.top_logprobs[0].values()) == [-0.5, -4.0]
    part = form.chunk([form.part(0, "e", events(names, "e"), None, 1)])
    # The client does not validate: its class of whole answers is that of chunks, too.
    assert Completion.construct(**part).choices[0].logprobs.text_offset == [1]
