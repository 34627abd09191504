"""A hundred requests of clients that do not wait for the answer."""

import json
import re
import socket
import time

import httpx

SECONDS, MEGABYTES = 60, 200


def metric(url, name):
    found = re.search(
        rf"^keras_transformer_{name}(?:{{.*}})? (\S+)", httpx.get(f"{url}/metrics").text, re.M
    )
    return float(found[1])


def attack(url):
    before = metric(url, "sentences_total")
    host, port = url.removeprefix("http://").split(":")
    for i in range(100):
        texts = [f"one two three four {j}." for j in range(i * 10, i * 10 + 10)]
        body = json.dumps({"q": texts, "source": "en", "target": "de"}).encode()
        head = f"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
        one = socket.create_connection((host, int(port)), timeout=10)
        one.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode() + body)
        one.close()
    time.sleep(2)
    while metric(url, "waiting_tokens"):
        time.sleep(0.1)
    assert metric(url, "sentences_total") - before < 500  # of 1,000
