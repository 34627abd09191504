"""Text files of marks that end and begin sentences, 300 kB each."""

from tests.serving.attacks.tools import send_file

SECONDS, MEGABYTES = 30, 200


def attack(url):
    for marks in ("!(", "。(", "e\u0301!", "\u200d?", "」‘「"):
        content = (marks * 300_000).encode()[: 300_000 - 300_000 % len(marks.encode())]
        response = send_file(url, "a.txt", content)
        assert response.status_code == 413, response.text
