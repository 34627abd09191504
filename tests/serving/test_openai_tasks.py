"""Embeddings and transcriptions by OpenAI's client, as it is installed."""

import io
import wave
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import openai
import pytest

from keras_transformer.serving import Settings, create_app

TEXTS = ["a good film", "bad", "the bad film the film", "a"]


@pytest.fixture(scope="module")
def client(tools, served):
    with served(create_app(lambda: tools, Settings(most_characters=500))) as url:
        yield openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)


def wav(samples):
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(16000)
        out.writeframes((samples * 32767).astype("<i2").tobytes())
    return file.getvalue()


def test_embeddings_are_those_of_the_object(client, tools):
    expected = tools.tools["classes"].tools["embed"].embed(TEXTS)
    ask = client.embeddings.create
    whole = ask(model="classes", input=TEXTS)  # the client asks for base64
    found = np.array([x.embedding for x in whole.data])
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert whole.usage.prompt_tokens == whole.usage.total_tokens == 5 + 3 + 7 + 3
    (one,) = ask(model="classes", input=TEXTS[0], encoding_format="float").data
    np.testing.assert_allclose(one.embedding, expected[0], atol=1e-5)
    with ThreadPoolExecutor(32) as pool:
        several = list(pool.map(lambda i: ask(model="classes", input=TEXTS[i % 4]), range(32)))
    for i, one in enumerate(several):
        np.testing.assert_allclose(one.data[0].embedding, expected[i % 4], atol=1e-5)


def test_transcriptions_are_those_of_the_object(client, tools):
    tool = tools.tools["speech"].tools["transcribe"]
    generator = np.random.default_rng(0)
    files = [wav(0.1 * generator.standard_normal(n).clip(-9, 9)) for n in (3840, 1500, 9000)]
    expected = [tool.transcribe([io.BytesIO(x)], language="de")[0] for x in files]
    ask = client.audio.transcriptions.create

    def text(i):
        file = ("x.wav", files[i % 3])
        return ask(model="speech", file=file, language="de").text

    with ThreadPoolExecutor(32) as pool:
        assert list(pool.map(text, range(32))) == [expected[i % 3] for i in range(32)]
    options = dict(model="speech", file=("x.wav", files[0]), language="de")
    assert ask(**options, response_format="text") == expected[0] + "\n"
    verbose = ask(**options, response_format="verbose_json")
    assert verbose.text == expected[0] and float(verbose.duration) == 0.24


def test_refusals(client):
    speak, embed = client.audio.transcriptions.create, client.embeddings.create
    bad, unknown = openai.BadRequestError, openai.NotFoundError
    sound = "x.wav", wav(np.zeros(1600))
    for create, options, kind, param in (
        (embed, dict(model="classes", input=""), bad, "input"),
        (embed, dict(model="classes", input=[[1, 2]]), bad, "input"),
        (embed, dict(model="classes", input="a", dimensions=8), bad, "dimensions"),
        (embed, dict(model="speech", input="a"), unknown, "model"),
        (embed, dict(model="none", input="a"), unknown, "model"),
        (speak, dict(model="speech", file=("x.wav", b"no sound")), bad, "file"),
        (speak, dict(model="speech", file=sound, language="xx"), bad, "language"),
        (speak, dict(model="speech", file=sound, response_format="srt"), bad, "response_format"),
        (speak, dict(model="speech", file=sound, temperature=0.5), bad, "temperature"),
        (speak, dict(model="classes", file=sound), unknown, "model"),
    ):
        with pytest.raises(kind) as caught:
            create(**options)
        assert caught.value.param.startswith(param), caught.value


def test_models_are_listed(client, tools):
    assert [model.id for model in client.models.list()] == list(tools.tools)
    assert client.models.retrieve("speech").owned_by == "keras_transformer"
