"""TensorFlow Serving's API."""


def test_tensorflow_servings_form(client, translators, refused):
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
    assert "exactly one" in refused(client, 400, path)
    assert "one of en-de, de-fr" in refused(client, 404, "/v1/models/x:predict", inputs=[])
    status = client.get("/v1/models/en-de").json()["model_version_status"][0]
    assert status["state"] == "AVAILABLE"
    signature = client.get("/v1/models/en-de/metadata").json()["metadata"]["signature_def"]
    assert set(signature["signature_def"]["serving_default"]["inputs"]) == {"texts"}


def test_texts_that_are_cut_are_named(client, translators):
    long = "one " * (translators[0].config.max_length + 1)
    answer = client.post("/v1/models/en-de:predict", json={"inputs": ["six", long]}).json()
    assert answer["truncated"] == [1] and len(answer["outputs"]) == 2
