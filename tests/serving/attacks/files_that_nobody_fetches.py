"""Twenty files of 9.9 MB that need no translation, in the same language."""

from tests.serving.attacks.tools import MOST_KEPT, send_file

SECONDS, MEGABYTES = 60, MOST_KEPT / 1e6 + 200


def attack(url):
    for _ in range(20):
        assert send_file(url, "a.txt", b"a" * 9_900_000, target="en").status_code == 200
