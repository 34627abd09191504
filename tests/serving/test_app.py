"""The server, by the clients that people have."""

import io
import threading

import httpx
import libretranslatepy
import pytest
from fastapi.testclient import TestClient

from keras_transformer.serving import Catalogue, Settings, create_app, translation
from keras_transformer.serving.batching import QueueFullError


def translated(client, **fields):
    response = client.post("/translate", json={"source": "en", "target": "de", **fields})
    assert response.status_code == 200, response.text
    return response.json()


def refused(client, status, path="/translate", **fields):
    fields = {"source": "en", "target": "de", **fields} if path == "/translate" else fields
    response = client.post(path, json=fields)
    assert response.status_code == status, response.text
    return response.json()["error"]


def test_libretranslates_own_client(served, catalogue, translators):
    with served(create_app(lambda: catalogue)) as url:
        api = libretranslatepy.LibreTranslateAPI(url)
        (expected,) = translators[0].translate(["one two three."])
        assert expected and api.translate("one two three.", "en", "de") == expected
        assert {x["language"] for x in api.detect("Das ist ein Haus.")} <= {"de", "en"}
        found = {x["code"]: x["targets"] for x in api.languages()}
        assert found == {"en": ["de", "fr"], "de": ["fr"], "fr": []}


def test_lists_white_space_and_sentences(client, translators):
    expected = translators[0].translate(["one two.", "six nine!"])
    found = translated(client, q=["one two.  six nine!\n", "", " six nine!"])
    assert found == {
        "translatedText": [f"{expected[0]}  {expected[1]}\n", "", f" {expected[1]}"],
    }


def test_alternatives(client, translators):
    (expected,) = translators[0].nbest(["one two three"], num_hypotheses=4)
    found = translated(client, q="one two three", alternatives=3)
    assert [found["translatedText"], *found["alternatives"]] == [x.text for x in expected]
    assert "at most 3, got 4" in refused(client, 400, q="one", alternatives=4)


def test_a_third_language_between(client, translators):
    (german,) = translators[0].translate(["one two three"])
    (french,) = translators[1].translate([german])
    assert translated(client, q="one two three", target="fr")["translatedText"] == french
    assert translated(client, q="one", target="en")["translatedText"] == "one"


def test_the_language_may_be_found_out(client):
    found = translated(client, q="Das ist ein Haus und kein Hund.", source="auto", target="fr")
    assert found["detectedLanguage"]["language"] == "de"


def test_html_keeps_its_tags(client):
    source = '<p class="x">one <b>two</b> three.</p>\n<script>one</script><!-- two -->'
    found = translated(client, q=source, format="html")["translatedText"]
    assert found.startswith('<p class="x">') and "<b>" in found and "</b>" in found
    assert found.endswith("</p>\n<script>one</script><!-- two -->")


def test_forms_as_well_as_json(client):
    fields = {"q": "one two", "source": "en", "target": "de"}
    assert client.post("/translate", data=fields).json() == translated(client, q="one two")


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"q": None}, "q: Input should be a valid string, got None"),
        ({"source": "xx"}, "source must be one of de, en, got 'xx'"),
        ({"target": "xx"}, "target must be one of de, fr from en, got 'xx'"),
        ({"format": "pdf"}, "format: Input should be 'text' or 'html', got 'pdf'"),
        ({"alternatives": -1}, "alternatives: Input should be greater than or equal to 0, got -1"),
    ],
    ids=lambda x: next(iter(x)) if isinstance(x, dict) else "",
)
def test_bad_fields(client, fields, message):
    assert message in refused(client, 400, **{"q": "one", **fields})


def test_bad_bodies(client):
    for content, kind in [(b"{", "application/json"), (b"\xff", "text/plain"), (b"[1]", "x/y")]:
        response = client.post("/translate", content=content, headers={"Content-Type": kind})
        assert response.status_code == 400 and "error" in response.json()
    surrogate = b'{"q": "\\ud800", "source": "en", "target": "de"}'
    response = client.post("/translate", content=surrogate)
    assert "half of a surrogate pair" in response.json()["error"]


def test_too_much_text(client):
    assert translated(client, q="x" * 500, target="en")
    assert "at most 500 characters" in refused(client, 413, q="x" * 501)
    assert "at most 500 characters" in refused(client, 413, q=[""] * 501)
    assert refused(client, 413, q="x" * 100_000).startswith("a body may have")


def test_detect(client):
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
    assert client.get(url[:-1]).status_code == 404
    assert client.get("/download_file/..%2F..%2Fetc/passwd").status_code == 404
    for name, message in [
        ("a.exe", "file must be one of .txt"),
        ("a.docx", "document of its kind"),
    ]:
        response = client.post("/translate_file", data=form, files={"file": (name, b"x")})
        assert response.status_code == 400 and message in response.json()["error"]


def test_names_of_files_that_a_disk_does_not_take(client):
    form = {"source": "en", "target": "de"}
    for name in ("狗" * 300 + ".txt", ".txt.txt"):
        files = {"file": (name, b"one")}
        response = client.post("/translate_file", data=form, files=files)
        assert response.status_code == 200, response.text
        assert client.get(response.json()["translatedFileUrl"]).is_success
    assert client.get("/download_file/x/" + "a" * 5000).status_code == 404


def test_files_behind_a_proxy_with_a_prefix(catalogue):
    app = create_app(lambda: catalogue, Settings(most_characters=10))
    # uvicorn puts the prefix before the paths again.
    with TestClient(app, root_path="/prefix") as client:
        files = {"file": ("a.html", b"<!--" + b"x" * 200_000 + b"-->")}
        form = {"source": "en", "target": "de"}
        response = client.post("/prefix/translate_file", data=form, files=files)
        assert response.status_code == 200, response.text
        assert client.get(response.json()["translatedFileUrl"]).is_success
        assert client.post("/prefix/translate", content=b"x" * 200_000).status_code == 413


def test_a_long_document_does_not_stop_the_server(client, monkeypatch):
    begun, gate = threading.Event(), threading.Event()
    split = translation._split

    def slow(*arguments):
        begun.set()
        assert gate.wait(30)
        return split(*arguments)

    monkeypatch.setattr(translation, "_split", slow)
    for kind in ("text", "html"):
        begun.clear()
        gate.clear()
        answers = []
        thread = threading.Thread(
            target=lambda: answers.append(translated(client, q="one", format=kind))  # noqa: B023
        )
        thread.start()
        assert begun.wait(30)
        assert client.get("/health").is_success  # while it is taken apart
        gate.set()
        thread.join()
        assert answers[0]["translatedText"]


def test_browsers_of_other_hosts_may_give_the_key(client):
    headers = {
        "Origin": "http://example.org",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type",
    }
    assert client.options("/translate", headers=headers).is_success


def test_what_fails_is_said_as_json(catalogue, monkeypatch):
    app = create_app(lambda: catalogue)
    with TestClient(app, raise_server_exceptions=False) as client:
        monkeypatch.setattr(app.state.service, "detector", None)
        response = client.post("/detect", json={"q": "one"})
        assert response.status_code == 500 and "failed" in response.json()["error"]


def test_tensorflow_servings_form(client, translators):
    texts = ["one two.", "six"]
    expected = translators[0].translate(texts)
    path = "/v1/models/en-de:predict"
    for body, name in [
        ({"instances": texts}, "predictions"),
        ({"instances": [{"texts": x} for x in texts]}, "predictions"),
        ({"inputs": texts}, "outputs"),
        ({"inputs": {"texts": texts}, "signature_name": "translate"}, "outputs"),
    ]:
        assert client.post(path, json=body).json() == {name: expected}
    form = {"Content-Type": "application/x-www-form-urlencoded"}  # as curl -d says
    response = client.post(path, content=b'{"instances": ["six"]}', headers=form)
    assert response.json() == {"predictions": expected[1:]}
    assert client.post(path.replace(":", "/versions/1:"), json={"inputs": texts}).is_success
    assert "not both" in refused(client, 400, path)
    assert "one of en-de, de-fr" in refused(client, 404, "/v1/models/x:predict", inputs=[])
    status = client.get("/v1/models/en-de").json()["model_version_status"][0]
    assert status["state"] == "AVAILABLE"
    signature = client.get("/v1/models/en-de/metadata").json()["metadata"]["signature_def"]
    assert set(signature["signature_def"]["serving_default"]["inputs"]) == {"texts"}


def test_attention(client, translators, monkeypatch):
    found = client.post("/attention", json={"q": "one two", "source": "en", "target": "de"}).json()
    assert found["translation"] == translators[0].translate(["one two"])[0]
    assert len(found["cross"][0][0]) == len(found["target_tokens"])
    assert len(found["cross"][0][0][0]) == len(found["source_tokens"])
    assert abs(sum(found["cross"][0][0][0]) - 1) < 1e-2
    assert found["input_tokens"][1:] == found["target_tokens"][:-1]
    fields = {"q": "one", "source": "en", "target": "fr"}
    assert "no pictures" in refused(client, 400, "/attention", **fields)
    monkeypatch.setattr(translation, "MOST_WEIGHTS", 20)
    fields = {"q": "one two", "source": "en", "target": "de"}
    assert "q must be shorter" in refused(client, 400, "/attention", **fields)


def test_what_monitors_ask(client):
    assert client.get("/health").json() == {"status": "ok"}
    asked = client.head("/health")
    assert asked.status_code == 200 and asked.content == b""
    translated(client, q="one")
    text = client.get("/metrics").text
    assert 'requests_total{path="/translate",status="200"}' in text
    assert "keras_transformer_waiting_tokens 0.0" in text
    settings = client.get("/frontend/settings").json()
    assert settings["charLimit"] == 500 and settings["alternatives"] == 3
    assert ".docx" in settings["supportedFilesFormat"]


def test_keys_and_rates(catalogue):
    settings = Settings(api_key="ключ", requests_per_minute=4)
    with TestClient(create_app(lambda: catalogue, settings)) as client:
        assert "api_key" in refused(client, 403, q="one")
        assert "api_key" in refused(client, 403, q="one", api_key="other")
        assert translated(client, q="one", api_key="ключ")
        assert client.get("/languages").is_success
        refused(client, 403, "/v1/models/en-de:predict", inputs=["one"])
        assert "slow down" in refused(client, 429, q="one", api_key="ключ")


def test_a_full_queue_and_a_long_wait(catalogue, monkeypatch):
    app = create_app(lambda: catalogue, Settings(timeout=0.2))
    with TestClient(app) as client:
        batcher = app.state.service.batcher
        gate = threading.Event()
        busy = batcher.call(lambda: gate.wait(10))
        assert "not done within 0.2 seconds" in refused(client, 504, q="one")
        gate.set()
        assert busy.result(10)

        def refuse(*arguments):
            raise QueueFullError("7 tokens wait, 7 may")

        monkeypatch.setattr(batcher, "submit", refuse)
        assert refused(client, 429, q="one") == "slow down: 7 tokens wait, 7 may"


def test_a_file_of_more_than_may_wait(catalogue):
    with TestClient(create_app(lambda: catalogue, Settings(most_waiting=50))) as client:
        form = {"source": "en", "target": "de"}
        files = {"file": ("a.txt", b"one two. " * 100)}
        response = client.post("/translate_file", data=form, files=files)
        assert response.status_code == 413
        assert "a request may have 50 tokens" in response.json()["error"]


def test_models_are_swapped_without_losing_a_request(catalogue, folders):
    loaded = []

    def load():
        loaded.append(catalogue if not loaded else Catalogue.load(folders[:1]))
        return loaded[-1]

    app = create_app(load)
    with TestClient(app) as client:
        gate = threading.Event()
        app.state.service.batcher.call(lambda: gate.wait(10))
        answers = []
        fields = dict(q="one two", target="fr")
        thread = threading.Thread(target=lambda: answers.append(translated(client, **fields)))
        thread.start()
        while not app.state.service.batcher.waiting:
            pass
        client.portal.call(app.state.service.reload)
        assert "target must be one of de from en" in refused(client, 400, **fields)
        gate.set()
        thread.join()
        assert answers[0]["translatedText"]


def test_openapi_and_its_page_stay_on_the_host(client):
    assert "/translate" in client.get("/openapi.json").json()["paths"]
    page = client.get("/docs").text
    assert "https://" not in page and "swagger" in page


def test_a_stopping_server_answers_what_it_accepted(served, catalogue, translators):
    app = create_app(lambda: catalogue)
    with served(app) as url:
        gate = threading.Event()
        app.state.service.batcher.call(lambda: gate.wait(10))
        answers = []

        def ask():
            body = {"q": "one two.", "source": "en", "target": "de"}
            answers.append(httpx.post(f"{url}/translate", json=body, timeout=20).json())

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        while len(app.state.service.batcher._jobs) < 4:
            pass
        threading.Timer(0.3, gate.set).start()
    for thread in threads:
        thread.join()
    (expected,) = translators[0].translate(["one two."])
    assert answers == [{"translatedText": expected}] * 4
