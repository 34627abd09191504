"""What a server logs, and what it does not."""

import json
import logging
import re
import shutil
import warnings

import pytest
from fastapi.testclient import TestClient

from keras_transformer.serving import Catalogue, Settings, configure, create_app
from keras_transformer.serving.app import _reload
from keras_transformer.serving.logs import identified, log

pytestmark = pytest.mark.once("text: no tensor is read")


@pytest.fixture(autouse=True)
def restored(monkeypatch):
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    loggers = [logging.getLogger(name) for name in ("uvicorn", log.name, f"{log.name}.access")]
    before = [(x.handlers, x.propagate, x.level) for x in loggers]
    yield
    for logger, (handlers, propagate, level) in zip(loggers, before, strict=True):
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)


def failing():
    try:
        try:
            raise ValueError("my secret text")
        except ValueError as error:
            raise RuntimeError("of my secret text") from error
    except RuntimeError:
        log.exception("it failed")
    warnings.simplefilter("always")
    warnings.warn("texts must be short, got my secret text", stacklevel=1)


def test_texts_of_users_are_logged_only_if_asked(capsys):
    configure()
    failing()
    written = capsys.readouterr().err
    assert "secret" not in written.replace('raise ValueError("my secret text")', "").replace(
        'raise RuntimeError("of my secret text")', ""
    )
    for part in ("ERROR: it failed", "ValueError", "from", "RuntimeError", "texts must be short"):
        assert part in written
    configure(log_texts=True)
    failing()
    written = capsys.readouterr().err
    assert "ValueError: my secret text" in written and "short, got my secret text" in written


def test_json_and_ids(capsys, catalogue):
    configure("json", access_log=True)
    with TestClient(create_app(lambda: catalogue)) as client:
        mine = client.get("/health", headers={"X-Request-ID": "abc-1"})
        other = client.get("/download_file/token/name?secret", headers={"X-Request-ID": "a b"})
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    first, second = (x for x in lines if x["logger"].endswith("access"))
    assert mine.headers["x-request-id"] == first["request_id"] == "abc-1"
    assert (first["method"], first["path"], first["status"]) == ("GET", "/health", 200)
    assert first["level"] == "info" and first["seconds"] >= 0 and first["time"]
    assert other.headers["x-request-id"] == second["request_id"] != "a b"
    assert second["path"] == "/download_file/{token}/{name}" and "secret" not in str(second)
    configure("json")
    with TestClient(create_app(lambda: catalogue)) as client:
        client.get("/health")
    assert capsys.readouterr().err == ""


def test_ids_of_clients():
    assert identified("0a-B_c.d:e") == "0a-B_c.d:e"
    for bad in ("", "a b", "x" * 65, "a\nb", "ä"):
        assert identified(bad) != bad and len(identified(bad)) == 32


def test_a_failed_reload_says_what_is_wrong(capsys, folders, tmp_path):
    configure()
    folder = shutil.copytree(folders[0], tmp_path / "en-de")
    keys = tmp_path / "keys.toml"
    keys.write_text('[[keys]]\nname = "a"\nkey = "my secret key"\n')
    app = create_app(lambda: Catalogue.load([str(folder)]), Settings(keys_file=keys))
    with TestClient(app) as client:
        keys.write_text('[[keys]]\nname = "a"\nkey = "my secret key"\nlanguages = "secret"\n')
        (weights,) = folder.glob("*.keras")
        weights.write_bytes(b"no weights")
        client.portal.call(_reload, app.state.service, app.state.guard)
    written = capsys.readouterr().err
    assert (
        "keys could not be reloaded: the old ones stay in use: ValueError: languages must be a"
        in (written)
    )
    assert "models could not be reloaded: the old ones stay in use: ValueError: " in written
    assert f"(while loading {folder})" in written and "secret" not in written


def test_time_and_client(capsys, catalogue):
    for log_format in ("text", "json"):
        for log_clients in (True, False):
            configure(log_format, access_log=True, log_clients=log_clients)
            with TestClient(create_app(lambda: catalogue), client=("192.0.2.7", 1)) as client:
                client.get("/health", headers={"X-Request-ID": "abc"})
            *_, line = capsys.readouterr().err.splitlines()
            assert ("192.0.2.7" in line) == log_clients and "abc" in line
            assert re.search(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4}", line)
    configure()
    log.warning("started")
    assert re.fullmatch(r"\S+ WARNING: started\n", capsys.readouterr().err)
