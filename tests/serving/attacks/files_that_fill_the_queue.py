"""Eight files, each of as many tokens as may wait, from clients that leave after some seconds."""

from concurrent.futures import ThreadPoolExecutor

import httpx

from tests.serving.attacks.tools import send_file

SECONDS, MEGABYTES = 60, 400


def attack(url):
    content = b"one two three four five.\n" * 14_000

    def send(_):
        try:
            return send_file(url, "a.txt", content, timeout=4).status_code
        except httpx.ReadTimeout:
            return None

    with ThreadPoolExecutor(8) as clients:
        answers = [*clients.map(send, range(8))]
    assert set(answers) == {None, 429}, answers
