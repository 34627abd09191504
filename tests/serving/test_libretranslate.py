"""LibreTranslate's API, by the clients that people have."""

import io
import threading

import libretranslatepy
import pytest
from fastapi.testclient import TestClient

from keras_transformer.serving import Settings, answers, create_app, handlers


def test_libretranslates_own_client(served, catalogue, translators):
    with served(create_app(lambda: catalogue)) as url:
        api = libretranslatepy.LibreTranslateAPI(url)
        (expected,) = translators[0].translate(["one two three."])
        assert expected and api.translate("one two three.", "en", "de") == expected
        assert {x["language"] for x in api.detect("Das ist ein Haus.")} <= {"de", "en"}
        found = {x["code"]: x["targets"] for x in api.languages()}
        assert found == {"en": ["de", "fr"], "de": ["fr"], "fr": []}


def test_lists_white_space_and_sentences(client, translators, translated):
    expected = translators[0].translate(["one two.", "six nine!"])
    found = translated(client, q=["one two.  six nine!\n", "", " six nine!"])
    assert found == {
        "translatedText": [f"{expected[0]}  {expected[1]}\n", "", f" {expected[1]}"],
    }


def test_alternatives(client, translators, translated, refused):
    (expected,) = translators[0].nbest(["one two three"], num_hypotheses=4)
    found = translated(client, q="one two three", alternatives=3)
    assert [found["translatedText"], *found["alternatives"]] == [x.text for x in expected]
    assert "at most 3, got 4" in refused(client, 400, q="one", alternatives=4)
    several = refused(client, 400, q=[""] * 5000, alternatives=2)
    assert several == "texts times translations of each must be at most 10,000, got 5000 times 3"


def test_a_glossary(client, translators, translated, refused):
    def ask(q="one two.", **fields):
        return translated(client, q=q, **fields)["translatedText"]

    assert "nine" in ask(glossary={"two": "nine"}).lower()
    assert "nine" in ask("one <b>two</b>.", glossary={"two": ["x", "nine"]}, format="html").lower()
    assert ask(glossary={"seven": "nine"}) == translators[0].translate(["one two."])[0]
    form = {"q": "one two.", "source": "en", "target": "de", "glossary": '{"two": "nine"}'}
    assert "nine" in client.post("/translate", data=form).json()["translatedText"].lower()
    french = refused(client, 400, q="one", target="fr", glossary={"a": "b"})
    assert french == "a glossary needs a single saved translator for this pair of languages"
    assert "none of them empty" in refused(client, 400, q="one", glossary={"a": []})
    assert "glossary: Value error" in refused(client, 400, q="one", glossary="{")
    long = refused(client, 400, q="one two.", glossary={"two": "nine " * 50})
    assert long.startswith("glossary: the glossary for 'one two.' must be at most")


def test_quality_where_there_is_a_calibration(
    calibrated, client, estimator, translators, translated
):
    (expected,) = translators[0].translate(["one two."])
    (quality,) = estimator.estimate(translators[0], ["one two."], [expected])
    with TestClient(create_app(lambda: calibrated)) as own:
        one = translated(own, q="one two.")
        assert one["translatedText"] == expected
        assert one["quality"] == pytest.approx(quality, abs=1e-4)
        assert translated(own, q=["", "one two."])["quality"] == [None, one["quality"]]
        for fields in (dict(q=[""]), dict(q="one", target="en"), dict(q="one", format="html")):
            assert "quality" not in translated(own, **fields)
    assert "quality" not in translated(client, q="one two.")


def test_a_third_language_between(client, translators, translated):
    (german,) = translators[0].translate(["one two three"])
    (french,) = translators[1].translate([german])
    assert translated(client, q="one two three", target="fr")["translatedText"] == french
    assert translated(client, q="one", target="en")["translatedText"] == "one"


def test_the_language_may_be_found_out(client, translated):
    found = translated(client, q="Das ist ein Haus und kein Hund.", source="auto", target="fr")
    assert found["detectedLanguage"]["language"] == "de"


def test_html_keeps_its_tags(client, translated):
    source = '<p class="x">one <b>two</b> three.</p>\n<script>one</script><!-- two -->'
    found = translated(client, q=source, format="html")["translatedText"]
    assert found.startswith('<p class="x">') and "<b>" in found and "</b>" in found
    assert found.endswith("</p>\n<script>one</script><!-- two -->")


def test_forms_as_well_as_json(client, translated):
    fields = {"q": "one two", "source": "en", "target": "de"}
    assert client.post("/translate", data=fields).json() == translated(client, q="one two")


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"q": None}, "q: Input should be a valid string, got None"),
        ({"source": "xx"}, "source must be one of de, en, got 'xx'"),
        ({"target": "xx"}, "target must be one of de, fr from en, got 'xx'"),
        ({"format": "pdf"}, "format: Input should be 'text' or 'html', got 'pdf'"),
        ({"q": ""}, "q: Value error, must not be empty"),
        ({"q": []}, "q: Value error, must not be empty"),
        ({"q": "x" * 501}, "q must have at most 500 characters per text, got 501"),
        ({"alternatives": "x"}, "alternatives: Input should be a valid integer"),
    ],
    ids=lambda x: next(iter(x)) if isinstance(x, dict) else "",
)
def test_bad_fields(client, fields, message, refused):
    assert message in refused(client, 400, **{"q": "one", **fields})


def test_bad_bodies(client):
    for content, kind in [(b"{", "application/json"), (b"\xff", "text/plain"), (b"[1]", "x/y")]:
        response = client.post("/translate", content=content, headers={"Content-Type": kind})
        assert response.status_code == 400 and "error" in response.json()
    form = {"Content-Type": "application/x-www-form-urlencoded"}  # as curl's option -d says
    response = client.post("/translate", content=b'{"q": "one"}', headers=form)
    hint = "q: Field required; JSON needs the header Content-Type: application/json"
    assert response.status_code == 400 and response.json() == {"error": hint}
    surrogate = b'{"q": "\\ud800", "source": "en", "target": "de"}'
    response = client.post("/translate", content=surrogate)
    assert "half of a surrogate pair" in response.json()["error"]


def test_too_much_text(client, translated, refused):
    assert translated(client, q="x" * 500, target="en")
    assert translated(client, q=["x" * 500] * 3, target="en")  # the limit is for each
    assert refused(client, 413, q="x" * 200_000).startswith("a body must have at most")


ROWS = {  # LibreTranslate's ways: method, path, what is sent, and a predicate of the answer
    "codes in upper case": (
        "POST", "/translate", {"json": {"q": "one", "source": "EN", "target": "De"}},
        lambda x: x.is_success,
    ),
    "fields in the address": (
        "POST", "/translate?q=one&source=en&target=de", {}, lambda x: x.is_success,
    ),
    "lines of forms": (
        "POST", "/translate", {"data": {"q": "a\r\nb", "source": "en", "target": "en"}},
        lambda x: x.json()["translatedText"] == "a\nb",
    ),
    "fewer than no alternatives": (
        "POST", "/translate", {"data": {"q": "one", "source": "en", "target": "de",
        "alternatives": "-1"}}, lambda x: x.is_success and "alternatives" not in x.json(),
    ),
    "alternatives as text": (
        "POST", "/translate", {"data": {"q": "one two", "source": "en", "target": "de",
        "alternatives": "2"}}, lambda x: len(x.json()["alternatives"]) in (1, 2),
    ),
    "suggestions": (
        "POST", "/suggest", {"json": {}}, lambda x: x.status_code == 403 and "error" in x.json(),
    ),
    "specification": (
        "GET", "/spec", {}, lambda x: "/translate" in x.json()["paths"],
    ),
    "detection": (
        "POST", "/detect?q=Guten%20Morgen", {}, lambda x: x.json()[0]["language"] == "de",
    ),
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS)
def test_libretranslates_ways(client, row):
    method, path, sent, holds = ROWS[row]
    response = client.request(method, path, **sent)
    assert holds(response), response.text


def test_detect(client, refused):
    (best, *_) = client.post("/detect", json={"q": "Guten Morgen, mein Freund."}).json()
    assert best["language"] == "de" and 50 < best["confidence"] <= 100
    assert refused(client, 400, "/detect", q="").startswith("q: String should have at least 1")


def test_files(client, translators):
    (expected,) = translators[0].translate(["one two."])
    form = {"source": "en", "target": "de"}
    files = {"file": ("a b.txt", io.BytesIO(b"one two.\n"))}
    url = client.post("/translate_file", data=form, files=files).json()["translatedFileUrl"]
    found = client.get(url)
    assert found.text == expected + "\n" and "attachment" in found.headers["content-disposition"]
    page = {"file": ("a.html", io.BytesIO(b"<p title=one>two</p>"))}
    left = client.post("/translate_file", data=form, files=page).headers["X-Untranslated"]
    assert left == "attributes"
    assert client.get(url[:-1]).status_code == 404
    assert client.get("/download_file/..%2F..%2Fetc/passwd").status_code == 404
    for name, message in [
        ("a.exe", "file must be one of .txt"),
        ("a.docx", "document of its type"),
    ]:
        response = client.post("/translate_file", data=form, files={"file": (name, b"x")})
        assert response.status_code == 400 and message in response.json()["error"]


def test_files_with_a_glossary(client):
    form = {"source": "en", "target": "de", "glossary": '{"two": ["nine"]}'}
    files = {"file": ("a.txt", b"one two.")}
    url = client.post("/translate_file", data=form, files=files).json()["translatedFileUrl"]
    assert "nine" in client.get(url).text.lower()
    for fields, message in (
        ({"glossary": "{"}, "glossary: "),
        ({"glossary": '{"two": ""}'}, "glossary: "),
        ({"style": "formal"}, "a style needs a language model"),
        ({"target": "fr"}, "a glossary needs a single saved translator"),
    ):
        response = client.post("/translate_file", data=form | fields, files=files)
        assert response.status_code == 400 and message in response.json()["error"], response.text


def test_files_that_are_not_kept(catalogue):
    files, form = {"file": ("a.txt", b"one " * 20)}, {"source": "en", "target": "en"}
    with TestClient(create_app(lambda: catalogue, Settings(most_kept_bytes=100))) as client:

        def send():
            return client.post("/translate_file", data=form, files=files)

        first, second = (send().json()["translatedFileUrl"] for _ in range(2))
        assert client.get(first).status_code == 404  # it made room
        found = client.get(second)
        assert found.content == b"one " * 20 and found.headers["content-length"] == "80"
        client.app.state.service.is_stopping = True
        response = send()
        assert response.status_code == 503 and "send the file again" in response.json()["error"]
        assert response.headers["retry-after"]


def test_names_of_files_that_a_disk_does_not_take(client):
    form = {"source": "en", "target": "de"}
    for name in ("狗" * 300 + ".txt", ".txt.txt"):
        files = {"file": (name, b"one")}
        response = client.post("/translate_file", data=form, files=files)
        assert response.status_code == 200, response.text
        assert client.get(response.json()["translatedFileUrl"]).is_success
    assert client.get("/download_file/x/" + "a" * 5000).status_code == 404


def test_a_long_document_does_not_stop_the_server(client, monkeypatch, translated):
    begun, gate = threading.Event(), threading.Event()
    split = answers._split

    def slow(*arguments):
        begun.set()
        assert gate.wait(30)
        return split(*arguments)

    monkeypatch.setattr(answers, "_split", slow)
    for kind in ("text", "html"):
        begun.clear()
        gate.clear()
        received = []
        thread = threading.Thread(
            target=lambda: received.append(translated(client, q="one", format=kind))  # noqa: B023
        )
        thread.start()
        assert begun.wait(30)
        assert client.get("/health").is_success  # while it is taken apart
        gate.set()
        thread.join()
        assert received[0]["translatedText"]


def test_attention(client, translators, monkeypatch, refused):
    found = client.post("/attention", json={"q": "one two", "source": "en", "target": "de"}).json()
    assert found["translation"] == translators[0].translate(["one two"])[0]
    assert len(found["cross"][0][0]) == len(found["target_tokens"])
    assert len(found["cross"][0][0][0]) == len(found["source_tokens"])
    assert abs(sum(found["cross"][0][0][0]) - 1) < 1e-2
    assert found["input_tokens"][1:] == found["target_tokens"][:-1]
    fields = {"q": "one", "source": "en", "target": "fr"}
    assert "needs a single saved translator" in refused(client, 400, "/attention", **fields)
    monkeypatch.setattr(handlers, "MOST_WEIGHTS", 20)
    fields = {"q": "one two", "source": "en", "target": "de"}
    assert "q must be shorter" in refused(client, 400, "/attention", **fields)
