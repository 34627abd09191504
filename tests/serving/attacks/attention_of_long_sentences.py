"""Sentences whose attention has far more numbers than they have letters."""

import httpx

SECONDS, MEGABYTES = 60, 300
MOST_BYTES = 4_000_000


def attack(url):
    for words in (20, 40, 200, 1000):
        fields = {"q": "one " * words, "source": "en", "target": "de"}
        response = httpx.post(f"{url}/attention", json=fields, timeout=60)
        assert response.status_code in (200, 400) and len(response.content) < MOST_BYTES
