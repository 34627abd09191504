"""The route of live translation, step by step as a page or a program would ask."""

import json

import pytest

from keras_transformer.translate.live import WaitK, continue_translation, translate_live

pytestmark = pytest.mark.once("the search of translate_live, which each backend runs")


def events_of(client, **fields):
    answer = client.post("/live", json={"source": "en", "target": "de", **fields})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    *events, last = [x.removeprefix("data: ") for x in answer.text.split("\n\n")[:-1]]
    assert last == "[DONE]"
    return [json.loads(x) for x in events]


def test_steps_are_those_of_a_live_translation(client, translators):
    words = "one two six nine".split()
    written = ""
    for i in range(1, len(words)):
        fields = dict(q=" ".join(words[:i]), written=written, k=2)
        events = events_of(client, **fields)
        assert all(not x["ends_sentence"] for x in events)
        written += "".join(x["text"] for x in events)
    (last,) = events_of(client, q=" ".join(words), written=written, k=2, final=True)
    expected = list(translate_live(translators[0], words, WaitK(2)))
    before = "".join(x.text for x in expected if x.num_read < len(words))
    assert written == before and last["ends_sentence"]
    rest = continue_translation(translators[0], " ".join(words), written, WaitK(2), True)
    assert last["text"] == rest


def test_several_sentences(client, translators):
    events = events_of(client, q="one two. six nine! ten", policy="align-att")
    assert [x["ends_sentence"] for x in events[:2]] == [True, True]
    expected = translators[0].translate(["one two.", "six nine!"], beam_size=1)
    assert [" ".join(x["text"].split()) for x in events[:2]] == expected
    assert events_of(client, q="") == events_of(client, q=" \n") == []


def test_bad_requests(client):
    for fields, message in (
        ({"target": "xx"}, "target must be one of"),
        ({"target": "fr"}, "live translation from en to fr needs one translator"),
        ({"policy": "local-agreement"}, "policy: Input should be 'wait-k' or 'align-att'"),
        ({"k": 0}, "k: Input should be greater than or equal to 1"),
        ({"q": "x" * 501}, "q must have at most 500 characters per text, got 501"),
    ):
        answer = client.post("/live", json={"q": "one", "source": "en", "target": "de", **fields})
        assert answer.status_code == 400 and message in answer.json()["error"], answer.text
