"""A small Word document that unpacks to 20 million elements."""

from tests.serving.attacks.tools import archive, send_file

SECONDS, MEGABYTES = 30, 300


def attack(url):
    content = archive("<x>" + "<a/>" * 20_000_000 + "</x>")
    assert len(content) < 100_000
    response = send_file(url, "a.docx", content)
    assert response.status_code == 400 and "tags" in response.json()["error"]
