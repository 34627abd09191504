"""Lists of answers are encoded beside the event loop."""

import asyncio
import json
import time

import pytest

from keras_transformer.serving.row_answers import rows_response

pytestmark = pytest.mark.once("no tensor")


def answer(*arguments):
    return json.loads(asyncio.run(rows_response(*arguments)).body)


def test_the_form():
    assert answer("data", [[1.5, "ä"], {"a": None}], {"model": "m"}) == {
        "model": "m",
        "data": [[1.5, "ä"], {"a": None}],
    }
    assert answer("data", iter(()), {"model": "m"}) == {"model": "m", "data": []}
    assert answer("data", [float("nan")], {"model": "m"})["data"] == [None]


def test_the_loop_runs_meanwhile():
    async def run():
        rows = ([x + 0.5 for x in range(1000)] for _ in range(1000))
        task = asyncio.ensure_future(rows_response("data", rows, {"model": "m"}))
        longest, before = 0.0, time.monotonic()
        while not task.done():
            await asyncio.sleep(0)
            before, now = time.monotonic(), before
            longest = max(longest, before - now)
        return longest

    assert asyncio.run(run()) < 0.1
