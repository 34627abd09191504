"""API keys from a file."""

import pytest
from fastapi.testclient import TestClient

from keras_transformer.serving import Settings, create_app
from keras_transformer.serving.keys import Key, Keys

pytestmark = pytest.mark.once("requests and answers: the translator alone knows tensors")
FILE = """
[[keys]]
name = "alice"
key = "secret-of-alice"
requests_per_minute = 2

[[keys]]
name = "bob"
key = "secret-of-bob"
languages = ["en-de"]
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "keys.toml"
    path.write_text(FILE)
    return path


def test_keys_are_found(path):
    keys = Keys.read(path).with_key("one more")
    assert [keys.find(x).name for x in ("secret-of-bob", "one more")] == ["bob", "default"]
    assert keys.find("") is None and keys.find("secret-of-") is None and len(keys) == 3
    assert keys.find("secret-of-bob").allows("en", "de")
    assert not keys.find("secret-of-bob").allows("de", "en")
    assert keys.find("secret-of-alice").allows("de", "en")
    assert not Keys([]).with_key(None)


@pytest.mark.parametrize(
    "text, message",
    [
        ("[[keys]", "must be TOML"),
        ("", "must be one table .*keys.* for each key"),
        ("keys = []", "must be one table"),
        ("key = 3", "must be one table"),
        ('[[keys]]\nname = "a"', "keys with name and key, got 'a key without key'"),
        ('[[keys]]\nname = "a"\nkey = 3', "key must be"),
        ('[[keys]]\nname = "a"\nkey = ""', "key must be some characters"),
        ('[[keys]]\nname = "a"\nkey = "b"\nrate = 3', "unknown fields"),
        ('[[keys]]\nname = "a"\nkey = "b"\nlanguages = "en-de"', "languages must be a list"),
        ('[[keys]]\nname = "a"\nkey = "b"\nlanguages = ["en"]', "languages must be pairs"),
        ('[[keys]]\nname = "a"\nkey = "b"\nrequests_per_minute = 0', "at least 1, got 0"),
        ('[[keys]]\nname = "a"\nkey = "b"\n' * 2, "keys must be of different names and keys"),
    ],
)
def test_bad_files(tmp_path, text, message):
    path = tmp_path / "keys.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        Keys.read(path)
    with pytest.raises(OSError):
        Keys.read(tmp_path / "none")


def test_keys_have_rates_and_languages(catalogue, path, translated, refused):
    app = create_app(lambda: catalogue, Settings(keys_file=path, api_key="one more"))
    with TestClient(app) as client:
        assert client.get("/frontend/settings").json()["keyRequired"]
        assert "api_key" in refused(client, 403, q="one")
        assert translated(client, q="one", api_key="one more")
        for _ in range(2):
            assert translated(client, q="one", api_key="secret-of-alice")
        assert "slow down" in refused(client, 429, q="one", api_key="secret-of-alice")
        assert translated(client, q="one", api_key="secret-of-bob")
        message = refused(client, 403, q="one", target="fr", api_key="secret-of-bob")
        assert message == "api_key allows en-de only"
        bob = {"Authorization": "Bearer secret-of-bob"}
        assert client.post("/v1/models/en-de:predict", json={"inputs": "a"}, headers=bob).is_success
        response = client.post("/v1/models/de-fr:predict", json={"inputs": "a"}, headers=bob)
        assert response.status_code == 403
        path.write_text(FILE.replace("secret-of-bob", "another"))
        app.state.guard.reload()
        assert translated(client, q="one", api_key="another")
        path.write_text("[[keys]")
        with pytest.raises(ValueError, match="must be TOML"):
            app.state.guard.reload()
        assert translated(client, q="one", api_key="another")  # the old keys stay


def test_no_two_keys_are_alike():
    with pytest.raises(ValueError, match="different names and keys"):
        Keys([Key("a", "b"), Key("c", "b")])
