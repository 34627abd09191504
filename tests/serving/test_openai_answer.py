"""Events of replies become one answer, or chunks of it."""

import asyncio

import pytest

from keras_transformer.language.reply import Event
from keras_transformer.search import Generation
from keras_transformer.serving.openai_answer import OpenAIAnswer
from keras_transformer.serving.openai_forms import ChatForm, CompletionForm
from keras_transformer.serving.replies import ReplyJob
from keras_transformer.serving.token_texts import TokenTexts
from keras_transformer.text.text_tokenizer import TextTokenizer
from tests.pretrained_files import llama_tokenizer


class Replies:
    """Says at once what a reply says: `script` of each job."""

    def __init__(self, *scripts):
        self.scripts, self.cancelled = scripts, []

    def submit(self, client, jobs):
        self.client = client
        for job, script in zip(jobs, self.scripts, strict=True):
            job.reused = 1
            for event in script:
                job.listen(event)

    def cancel(self, jobs):
        self.cancelled += jobs


@pytest.fixture(scope="module")
def tokenizer():
    return TextTokenizer.train(["to be or not to be"] * 4, kind="bytes", vocab_size=257)


@pytest.fixture
def say(tokenizer):
    def script(text, end=None):
        (ids,) = tokenizer.encode([text])
        ends = [None] * (len(ids) - 1) + ["length" if end == "length" else None]
        events = [Event(0, x, -1.0, (), y, 1) for x, y in zip(ids, ends, strict=True)]
        return events + ([Event(0, 0, -1.0, (), "stop", 1)] if end == "stop" else [])

    return script


def answer(tokenizer, replies, count=1, n=1, stop=(), top=None):
    jobs = [ReplyJob([7, 8], Generation(), 0) for _ in range(count)]
    form = CompletionForm("poet", top)
    return OpenAIAnswer(replies, TokenTexts(tokenizer), jobs, n, stop, form), jobs


def test_whole(tokenizer, say):
    replies = Replies(say("to be", "stop"), say("or no", "length"))
    one, _ = answer(tokenizer, replies, count=2, n=2)

    async def run():
        one.begin("me")
        found = await one.whole()
        one.close()
        return found

    found = asyncio.run(run())
    assert [x["text"] for x in found["choices"]] == ["to be", "or no"]
    assert [x["finish_reason"] for x in found["choices"]] == ["stop", "length"]
    assert found["usage"] == {
        "prompt_tokens": 2,  # that of both replies
        "completion_tokens": 10,
        "total_tokens": 12,
        "prompt_tokens_details": {"cached_tokens": 1},
    }
    assert replies.client == "me" and not replies.cancelled


def test_chunks_and_a_stop_text(tokenizer, say):
    replies = Replies(say("to be or not"), say("to be", "length"))
    one, jobs = answer(tokenizer, replies, count=2, stop=["e o"], top=0)

    async def run():
        one.begin("me")
        return [chunk async for chunk in one.chunks(with_usage=True)]

    *chunks, last = asyncio.run(run())
    texts, ends, tokens = ["", ""], [None, None], [[], []]
    for chunk in chunks:
        (choice,) = chunk["choices"]
        assert chunk["usage"] is None
        texts[choice["index"]] += choice["text"]
        ends[choice["index"]] = choice["finish_reason"]
        tokens[choice["index"]] += choice["logprobs"]["text_offset"]
    assert texts == ["to b", "to be"] and ends == ["stop", "length"]
    assert tokens == [list(range(7)), list(range(5))]
    assert replies.cancelled == jobs[:1]
    assert last["choices"] == [] and last["usage"]["completion_tokens"] == 12


def test_what_fails_is_raised_and_the_rest_ends(tokenizer, say):
    replies = Replies([*say("to"), RuntimeError("no memory")], say("to"))
    one, jobs = answer(tokenizer, replies, count=2)

    async def run():
        one.begin("me")
        try:
            return await one.whole()
        finally:
            one.close()

    with pytest.raises(RuntimeError, match="no memory"):
        asyncio.run(run())
    assert replies.cancelled == jobs


@pytest.mark.parametrize("form,expected", [(CompletionForm, " is it"), (ChatForm, "is it")])
def test_a_completion_continues_its_prompt_and_a_reply_is_a_text_of_its_own(form, expected):
    tokenizer = llama_tokenizer(["there is it", "is it"] * 4)
    (prompt,), (ids,) = (tokenizer.encode([x], framed=x[0] == "t") for x in ("there", "is it"))
    for stop in ([], [" it"]):
        script = [Event(0, x, -1.0, (), None, 0) for x in ids[:-1]]
        script.append(Event(0, ids[-1], -1.0, (), "length", 0))
        job = ReplyJob(prompt, Generation(), 0)
        one = OpenAIAnswer(Replies(script), TokenTexts(tokenizer), [job], 1, stop, form("poet", 0))

        async def run(one=one):
            one.begin("me")
            return (await one.whole())["choices"][0]

        choice = asyncio.run(run())
        text = choice["message"]["content"] if form is ChatForm else choice["text"]
        assert text == (expected.removesuffix(" it") if stop else expected)
        if form is CompletionForm:
            assert choice["logprobs"]["tokens"] == [" is", " it"]
            assert choice["logprobs"]["text_offset"] == [0, 3]
