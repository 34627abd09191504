"""Stop texts of 300,000 characters, too many of them, and requests for 100,000 replies."""

import httpx

SECONDS, MEGABYTES = 20, 200


def attack(url):
    fields = {"model": "nobody", "prompt": "a", "max_tokens": 1}
    for more in (
        {"stop": ["a" * 300_000] * 4},
        {"stop": ["a"] * 300_000},
        {"stop": [1] * 300_000},
        {"prompt": ["a"] * 100_000},
    ) * 3:
        answer = httpx.post(f"{url}/v1/completions", json=fields | more, timeout=30)
        assert answer.status_code in (400, 413), answer.text
