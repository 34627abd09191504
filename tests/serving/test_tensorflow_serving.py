"""TensorFlow Serving's API."""

import pytest


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
    assert "not both and not neither" in refused(client, 400, path)
    encoded = {"b64": "c2l4"}
    for body in ({"instances": [encoded]}, {"instances": [{"texts": encoded}]}):
        assert client.post(path, json=body).json() == {"predictions": expected[1:]}
    assert client.post(path, json={"inputs": encoded}).json() == {"outputs": expected[1:]}
    assert "one of en-de, de-fr" in refused(client, 404, "/v1/models/x:predict", inputs=[])
    status = client.get("/v1/models/en-de").json()["model_version_status"][0]
    assert status["state"] == "AVAILABLE"
    signature = client.get("/v1/models/en-de/metadata").json()["metadata"]["signature_def"]
    assert set(signature["signature_def"]["serving_default"]["inputs"]) == {"texts"}
    assert {*signature["signature_def"]} == {"serving_default", "translate", "nbest", "score"}


def test_versions(client, refused):
    for path in ("", "/metadata"):
        assert client.get(f"/v1/models/en-de/versions/1{path}").is_success
        response = client.get(f"/v1/models/en-de/versions/2{path}")
        assert response.status_code == 404
        assert "version of en-de must be one of 1" in response.json()["error"]
    path = "/v1/models/en-de/versions/7:predict"
    assert "got '7'" in refused(client, 404, path, inputs=["six"])


def test_a_glossary(client, refused):
    path, fields = "/v1/models/en-de:predict", dict(inputs=["one two."], glossary={"two": "nine"})
    (translation,) = client.post(path, json=fields).json()["outputs"]
    assert "nine" in translation.lower()
    message = refused(client, 400, path, **fields, signature_name="nbest")
    assert message == "glossary must be left out for nbest"


def test_other_signatures(client, translators, refused):
    path, texts = "/v1/models/en-de:predict", ["one two.", "six"]
    expected = translators[0].nbest(texts, num_hypotheses=4)
    translations = [[x.text for x in row] for row in expected]
    scores = [pytest.approx([x.score for x in row], abs=1e-4) for row in expected]
    asked = {"signature_name": "nbest", "inputs": texts}
    found = client.post(path, json=asked).json()["outputs"]
    assert found == {"translations": translations, "scores": scores}
    asked = {"signature_name": "nbest", "instances": texts}
    found = client.post(path, json=asked).json()["predictions"]
    assert found[1] == {"translations": translations[1], "scores": scores[1]}
    targets = [row[0] for row in translations]
    expected = translators[0].score(texts, targets)
    for given in (
        {"inputs": {"sources": texts, "targets": targets}},
        {"instances": [dict(sources=x, targets=y) for x, y in zip(texts, targets, strict=True)]},
    ):
        (found,) = client.post(path, json={"signature_name": "score", **given}).json().values()
        assert found == pytest.approx(expected, abs=1e-4)
    long = {"sources": ["one " * 60], "targets": ["one"]}
    refused(client, 400, path, signature_name="score", inputs=long)


def test_texts_that_are_cut_are_named(client, translators):
    long = "one " * (translators[0].config.max_length + 1)
    answer = client.post("/v1/models/en-de:predict", json={"inputs": ["six", long]}).json()
    assert answer["truncated"] == [1] and len(answer["outputs"]) == 2
