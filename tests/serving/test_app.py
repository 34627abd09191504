"""The server: its errors, its counts, its models swapped, its end."""

import threading

import httpx
import pytest
from fastapi.testclient import TestClient

from keras_transformer.serving import Catalogue, Settings, create_app
from keras_transformer.serving.waiting import QueueFullError


@pytest.mark.once("requests and answers: the translator alone knows tensors")
def test_pages_of_other_hosts_may_send_the_key(catalogue):
    headers = {
        "Origin": "http://example.org",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type",
    }
    for settings, allowed in (
        (Settings(), False),
        (Settings(allowed_origins=("http://example.org",)), True),
        (Settings(api_key="x"), True),
    ):
        with TestClient(create_app(lambda: catalogue, settings)) as client:
            assert client.options("/translate", headers=headers).is_success == allowed


@pytest.mark.once("requests and answers: the translator alone knows tensors")
def test_what_fails_is_said_as_json(catalogue, monkeypatch):
    app = create_app(lambda: catalogue)
    with TestClient(app, raise_server_exceptions=False) as client:
        monkeypatch.setattr(app.state.service, "detector", None)
        response = client.post("/detect", json={"q": "one"})
        assert response.status_code == 500 and "failed" in response.json()["error"]
        assert response.headers["x-request-id"] and response.headers["content-security-policy"]
        assert 'path="/detect",status="500"' in client.get("/metrics").text


@pytest.mark.once("requests and answers: the translator alone knows tensors")
def test_what_monitors_ask(client, translated):
    assert client.get("/health").json() == {"status": "ok"}
    assert client.get("/ready").json() == {"status": "ok"}
    asked = client.head("/health")
    assert asked.status_code == 200 and asked.content == b""
    translated(client, q="one")
    response = client.get("/metrics")
    assert "frame-ancestors 'none'" in response.headers["content-security-policy"]
    text = response.text
    assert 'requests_total{path="/translate",status="200"}' in text
    assert "keras_transformer_waiting_tokens 0.0" in text
    settings = client.get("/frontend/settings").json()
    assert settings["charLimit"] == 500 and settings["alternatives"] == 3
    assert ".docx" in settings["supportedFilesFormat"]


@pytest.mark.once("requests and answers: the translator alone knows tensors")
def test_a_server_that_cannot_compute_says_so(catalogue, monkeypatch):
    app = create_app(lambda: catalogue)
    with TestClient(app) as client:
        service = app.state.service
        service.is_stopping = True
        assert client.get("/health").is_success  # it answers what it accepted
        response = client.get("/ready")
        assert response.status_code == 503 and "is stopping" in response.json()["error"]
        service.is_stopping = False
        monkeypatch.setattr(service.batcher, "is_alive", lambda: False)
        for path in ("/health", "/ready"):
            response = client.get(path)
            assert response.status_code == 503 and "has ended" in response.json()["error"]


@pytest.mark.once("requests and answers: the translator alone knows tensors")
def test_first_translations_are_computed_while_the_server_runs(folders):
    catalogue, begin = Catalogue.load(folders[:1], warm_up=False), threading.Event()
    (first,) = catalogue.cold
    catalogue.cold = [lambda: begin.wait() and first()]
    app = create_app(lambda: catalogue)
    with TestClient(app) as client:
        assert client.get("/health").is_success
        response = client.get("/ready")
        assert response.status_code == 503 and "first translations" in response.json()["error"]
        begin.set()
        assert client.post("/translate", json=dict(q="one", source="en", target="de")).is_success
        assert client.get("/ready").is_success
    assert not Catalogue.load(folders[:1]).cold


@pytest.mark.once("requests and answers: the translator alone knows tensors")
def test_a_first_translation_that_fails(folders, caplog):
    def fail():
        raise ValueError("no numbers")

    catalogue = Catalogue.load(folders[:1], warm_up=False)
    catalogue.cold = [fail]
    app = create_app(lambda: catalogue)
    with TestClient(app) as client:
        app.state.service.batcher.call(lambda: None).result()  # after the first translations
        response = client.get("/health")
        assert response.status_code == 503 and "cannot translate" in response.json()["error"]
    assert "ValueError: no numbers" in caplog.text


@pytest.mark.once("requests and answers: the translator alone knows tensors")
def test_a_full_queue_and_a_long_wait(catalogue, monkeypatch, refused):
    app = create_app(lambda: catalogue, Settings(timeout=0.2))
    with TestClient(app) as client:
        batcher = app.state.service.batcher
        gate = threading.Event()
        busy = batcher.call(lambda: gate.wait(10))
        assert "not finished within 0.2 seconds" in refused(client, 504, q="one")
        gate.set()
        assert busy.result(10)

        def refuse(*arguments):
            raise QueueFullError("7 of at most 7 tokens are waiting")

        monkeypatch.setattr(batcher, "submit", refuse)
        assert refused(client, 429, q="one") == "slow down: 7 of at most 7 tokens are waiting"


@pytest.mark.once("requests and answers: the translator alone knows tensors")
def test_a_file_of_more_than_may_wait(catalogue):
    with TestClient(create_app(lambda: catalogue, Settings(most_waiting=50))) as client:
        form = {"source": "en", "target": "de"}
        files = {"file": ("a.txt", b"one two. " * 100)}
        response = client.post("/translate_file", data=form, files=files)
        assert response.status_code == 413
        assert "a request must have at most 25 tokens" in response.json()["error"]


@pytest.mark.once("requests and answers: the translator alone knows tensors")
def test_models_are_swapped_without_losing_a_request(catalogue, folders, translated, refused):
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


@pytest.mark.once("requests and answers: the translator alone knows tensors")
def test_openapi_and_its_page_stay_on_the_host(client):
    assert "/translate" in client.get("/openapi.json").json()["paths"]
    page = client.get("/docs").text
    assert "https://" not in page and "swagger" in page


@pytest.mark.once("requests and answers: the translator alone knows tensors")
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
        while len(app.state.service.batcher._waiting) < 4:
            pass
        threading.Timer(0.3, gate.set).start()
    for thread in threads:
        thread.join()
    (expected,) = translators[0].translate(["one two."])
    assert answers == [{"translatedText": expected}] * 4
