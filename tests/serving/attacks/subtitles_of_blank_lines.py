"""Subtitles with 9.9 MB of blank lines."""

from tests.serving.attacks.tools import send_file

SECONDS, MEGABYTES = 60, 400


def attack(url):
    content = b"0:0:1,0 --> 0:0:2,0\none" + b"\n" * 9_900_000
    assert send_file(url, "a.srt", content).status_code in (200, 413)
