"""Lists of 600,000 items of a wrong type: an error for each of them took ten seconds."""

import httpx

SECONDS, MEGABYTES = 20, 300


def attack(url):
    for path, fields in (
        ("translate", {"q": [1] * 600_000, "source": "en", "target": "de"}),
        ("translate", {"q": [""] * 400_000, "source": "en", "target": "de"}),
        ("translate", {"q": [""] * 9_000, "source": "en", "target": "de", "alternatives": 8}),
        ("v1/classify", {"texts": [1] * 600_000}),
        ("v1/completions", {"model": "nobody", "prompt": [None] * 200_000}),
        ("v1/models/en-de:predict", {"inputs": ["a"] * 300_000}),
        ("v1/answer", {"questions": [{}] * 400_000}),
    ):
        answer = httpx.post(f"{url}/{path}", json=fields, timeout=30)
        assert answer.status_code in (400, 413), answer.text
