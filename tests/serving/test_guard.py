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


def test_what_needs_the_key_and_what_tells_it_to_nobody(catalogue):
    with TestClient(create_app(lambda: catalogue, Settings(api_key="secret"))) as client:
        for path in ("/metrics", "/v1/models/en-de", "/v1/models/x", "/v1/models/en-de/metadata"):
            assert client.get(path).status_code == 403
        key = {"Authorization": "Bearer secret"}
        assert client.get("/metrics", headers=key).is_success
        for fields in ({"api_key": "secret"}, {"q": "one", "api_key": ["secret"]}):
            response = client.post("/translate", json={"source": "en", "target": "de"} | fields)
            assert response.status_code == 400 and "secret" not in response.text


def test_bad_requests_count_too(catalogue):
    with TestClient(create_app(lambda: catalogue, Settings(requests_per_minute=2))) as client:
        codes = [client.post("/translate", content=b"{").status_code for _ in range(3)]
        assert codes == [400, 400, 429]
        assert "slow down" in client.post("/v1/models/en-de:predict", json={}).json()["error"]
        assert client.get("/health").is_success
        refusal = client.post("/translate", content=b"{")
        assert refusal.headers["x-request-id"]
        assert 'requests_total{path="refused",status="429"} 3.0' in client.get("/metrics").text


def test_forms_of_other_pages_are_refused(catalogue):
    form = {"q": "one", "source": "en", "target": "de"}
    with TestClient(create_app(lambda: catalogue)) as client:
        for headers, status in [
            ({"Origin": "http://evil.example"}, 403),
            ({"Origin": "null"}, 403),
            ({"Origin": "http://testserver"}, 200),
            ({"Origin": "https://own.example", "Sec-Fetch-Site": "same-origin"}, 200),  # a proxy
            ({"Origin": "http://testserver", "Sec-Fetch-Site": "cross-site"}, 403),
            ({}, 200),
        ]:
            response = client.post("/translate", data=form, headers=headers)
            assert response.status_code == status, (headers, response.text)
    allowed = Settings(allowed_origins=("http://evil.example",))
    with TestClient(create_app(lambda: catalogue, allowed)) as client:
        headers = {"Origin": "http://evil.example"}
        assert client.post("/translate", data=form, headers=headers).is_success


def test_names_that_a_page_points_to_this_machine_are_refused(catalogue):
    """DNS rebinding: for the browser such a page and the server are one site."""
    known = ("127.0.0.1", "[::1]:80", "localhost", "a.localhost", "box:5000", "", "10.0.0.7")
    foreign = ("evil.example", "evil.example.:5000", "127.0.0.1.evil.example", "[::1", "evil.")
    public = Settings(public_url="https://own.example/x")
    for local, settings, accepted, others in [
        ("127.0.0.1", None, known, foreign),
        ("[::ffff:127.0.0.1]", public, (*known, "own.example"), foreign),
        ("127.0.0.1", Settings(api_key="secret"), (*known, *foreign), ()),
        ("10.0.0.7", None, (*known, *foreign), ()),
    ]:
        app = create_app(lambda: catalogue, settings)
        with TestClient(app, base_url=f"http://{local}:5000") as client:
            for host in accepted:
                assert client.get("/languages", headers={"Host": host}).is_success, host
            for host in others:
                for response in (
                    client.get("/languages", headers={"Host": host}),
                    client.post("/translate", json={"q": "one"}, headers={"Host": host}),
                ):
                    assert response.status_code == 403, host
                    assert f"--public-url, got {host}" in response.json()["error"]


def test_addresses_of_files_are_those_of_the_server(catalogue):
    settings = Settings(public_url="https://own.example/prefix/")
    with TestClient(create_app(lambda: catalogue, settings)) as client:
        form = {"source": "en", "target": "en"}
        response = client.post(
            "/translate_file",
            data=form,
            files={"file": ("a.txt", b"x")},
            headers={"Host": "evil.example"},
        )
        url = response.json()["translatedFileUrl"]
        assert url.startswith("https://own.example/prefix/download_file/")


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
