"""The server behind nginx, configured as `docs/serve.md` says."""

import re
import shutil
import socket
import ssl
import subprocess
import time
from pathlib import Path

import httpx
import pytest

from keras_transformer.serving import Settings, create_app
from keras_transformer.system.ports import free_port

pytestmark = pytest.mark.once("a proxy: no tensor is read")
PEM = Path(__file__).parent / "files" / "localhost.pem"
DOCS = Path(__file__).parents[2] / "docs" / "serve.md"
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
PLACES = "client_body_temp_path proxy_temp_path fastcgi_temp_path uwsgi_temp_path scgi_temp_path"


@pytest.fixture
def proxied(catalogue, served, tmp_path):
    """A client of the proxy, and its port."""
    if NGINX is None:
        pytest.skip("no nginx is installed")
    port = free_port()
    settings = Settings(public_url="https://translate.example.org")
    with served(create_app(lambda: catalogue, settings)) as url:
        (documented,) = re.findall(r"```text\n(limit_req_zone.*?)```", DOCS.read_text(), re.DOTALL)
        for old, new in (
            ("443", f"127.0.0.1:{port}"),
            ("/etc/ssl/translate.pem", str(PEM)),
            ("/etc/ssl/translate.key", str(PEM)),
            ("http://127.0.0.1:5000", url),
            ("client_header_timeout 10s", "client_header_timeout 1s"),
        ):
            assert documented.count(old) == 1, old
            documented = documented.replace(old, new)
        places = "".join(f"{name} {tmp_path / name};" for name in PLACES.split())
        configuration = tmp_path / "nginx.conf"
        configuration.write_text(
            f"daemon off; master_process off; pid {tmp_path / 'pid'}; error_log stderr;"
            f"events {{}} http {{ access_log off; {places}\n{documented} }}"
        )
        command = [NGINX, "-c", configuration, "-p", tmp_path, "-e", "stderr"]
        process = subprocess.Popen(command, stderr=(tmp_path / "log").open("wb"))
        client = httpx.Client(
            base_url=f"https://127.0.0.1:{port}",
            verify=ssl.create_default_context(cafile=PEM),
            headers={"Host": "translate.example.org"},
        )
        try:
            while True:
                assert process.poll() is None, (tmp_path / "log").read_text()
                try:
                    client.get("/ready").raise_for_status()
                    break
                except httpx.TransportError:
                    time.sleep(0.05)
            yield client, port
        finally:
            client.close()
            process.kill()
            process.wait()


def test_behind_a_proxy(proxied):
    client, port = proxied
    fields = {"q": "one two", "source": "en", "target": "de"}
    answer = client.post("/translate", json=fields, headers={"X-Request-ID": "mine"})
    assert answer.json()["translatedText"] and answer.headers["x-request-id"] == "mine"
    page = {"Origin": "https://translate.example.org", "Sec-Fetch-Site": "same-origin"}
    assert client.post("/translate", data=fields, headers=page).is_success

    own = {"source": "en", "target": "de"}
    made = client.post("/translate_file", data=own, files={"file": ("a.txt", b"one")}).json()
    address = made["translatedFileUrl"]
    assert address.startswith("https://translate.example.org/download_file/")
    assert client.get(address.removeprefix("https://translate.example.org")).content

    assert client.post("/translate_file", content=bytes(12 << 20)).status_code == 413
    other = client.get("/ready", headers={"Host": "evil.example"})
    assert other.status_code == 403 and "--public-url, got evil.example" in other.text
    time.sleep(1)  # then ten more requests are accepted
    assert 429 in [client.get("/ready").status_code for _ in range(60)]

    context = ssl.create_default_context(cafile=PEM)
    plain = socket.create_connection(("127.0.0.1", port), timeout=20)
    with context.wrap_socket(plain, server_hostname="localhost") as silent:
        silent.sendall(b"GET /ready HTTP/1.1\r\n")  # and no more
        assert silent.recv(1000) == b""
