"""Limits of a server."""

from fastapi.testclient import TestClient

from keras_transformer.serving import Settings, create_app


def test_keys_and_rates(catalogue, translated, refused):
    settings = Settings(api_key="ключ", requests_per_minute=4)
    with TestClient(create_app(lambda: catalogue, settings)) as client:
        assert "api_key" in refused(client, 403, q="one")
        assert "api_key" in refused(client, 403, q="one", api_key="other")
        assert translated(client, q="one", api_key="ключ")
        assert client.get("/languages").is_success
        refused(client, 403, "/v1/models/en-de:predict", inputs=["one"])
        assert "slow down" in refused(client, 429, q="one", api_key="ключ")


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
