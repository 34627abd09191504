"""Six HTML files of 60,000 elements with as many names, none of them to be translated."""

from concurrent.futures import ThreadPoolExecutor

from tests.serving.attacks.tools import send_file

SECONDS, MEGABYTES = 60, 500


def attack(url):
    content = "".join(f"<x{i} translate=no></x{i}>" for i in range(60_000)).encode()
    with ThreadPoolExecutor(6) as clients:
        for response in clients.map(lambda _: send_file(url, "a.html", content), range(6)):
            assert response.status_code == 200, response.text
