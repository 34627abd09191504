"""A text file of 9.9 MB of commas, and eight of 1.5 MB at the same time."""

from concurrent.futures import ThreadPoolExecutor

from tests.serving.attacks.tools import send_file

SECONDS, MEGABYTES = 60, 400


def attack(url):
    assert send_file(url, "a.txt", b"a," * 4_950_000).status_code == 413
    with ThreadPoolExecutor(8) as clients:
        for response in clients.map(lambda _: send_file(url, "a.txt", b"a," * 750_000), range(8)):
            assert response.status_code == 413, response.text
