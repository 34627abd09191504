"""Paths that the page serves, and those that a route has for other methods."""

import pytest

pytestmark = pytest.mark.once("paths: no tensor is read")


@pytest.mark.parametrize(
    "method,path,allowed",
    [
        ("GET", "/translate", "POST"),
        ("HEAD", "/translate_file", "POST"),
        ("PUT", "/detect", "POST"),
        ("GET", "/v1/classify", "POST"),
        ("GET", "/v1/models/en-de:predict", "POST"),
        ("GET", "/v1/models/en-de/versions/1:predict", "POST"),
        ("POST", "/v1/models/en-de", "GET"),
        ("POST", "/languages", "GET"),
        ("POST", "/health", "GET, HEAD"),
        ("POST", "/nothing", "GET, HEAD"),
    ],
)
def test_other_methods(client, method, path, allowed):
    answer = client.request(method, path)
    assert (answer.status_code, answer.headers["Allow"]) == (405, allowed)
    message = f"{method} is not allowed here: use {allowed}"
    assert method == "HEAD" or answer.json() == {"error": message}


def test_other_methods_of_openais_api(client):
    for path in ("/v1/chat/completions", "/v1/completions", "/v1/embeddings"):
        answer = client.get(path)
        assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")
        error = answer.json()["error"]
        assert error["type"] == "invalid_request_error" and "use POST" in error["message"]


def test_files(client):
    assert "<html" in client.get("/").text and client.get("/nothing").status_code == 404
