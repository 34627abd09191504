"""Clients take turns, and work that nobody waits for ends."""

import asyncio
import threading

import pytest

from keras_transformer.serving import turns
from keras_transformer.serving.turns import Client, Turns, Workers, network
from keras_transformer.system import interruption

pytestmark = pytest.mark.once("threads only; no tensors")


def test_addresses_of_one_network_are_one_client():
    assert network("2001:db8::1") == network("2001:db8::2") != network("2001:db8:0:1::1")
    assert network("127.0.0.1") == network("::ffff:127.0.0.1") != network("127.0.0.2")
    assert network("testclient") == "testclient"


def test_free_places_go_to_the_clients_in_turn():
    order = []

    async def enter(lock, client, name):
        turns.current.set(client)
        async with lock:
            order.append(name)
            await asyncio.sleep(0)

    async def run():
        lock = Turns(1)
        async with lock:
            waiting = [asyncio.ensure_future(enter(lock, "a", f"a{i}")) for i in range(4)]
            waiting += [asyncio.ensure_future(enter(lock, "b", f"b{i}")) for i in range(2)]
            await asyncio.sleep(0)
            waiting[1].cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        async with lock:  # nobody holds it any longer
            pass

    asyncio.run(run())
    assert order == ["a0", "b0", "a2", "b1", "a3"]


def test_a_request_that_is_cancelled_with_its_turn_passes_it_on():
    async def run():
        lock = Turns(1)

        async def enter():
            async with lock:
                pass

        async with lock:
            waiting = asyncio.ensure_future(enter())
            await asyncio.sleep(0)
        waiting.cancel()  # it has the place, and does not run yet
        await asyncio.gather(waiting, return_exceptions=True)
        await asyncio.wait_for(enter(), 1)

    asyncio.run(run())


def test_work_is_given_up_with_its_request_and_knows_its_client():
    begun, ended, seen = threading.Event(), threading.Event(), []

    def work():
        seen.append(turns.current.get())
        begun.set()
        try:
            while True:
                interruption.check()
        finally:
            ended.set()

    async def run():
        workers = Workers("texts", 1)
        turns.current.set(Client("a"))
        task = asyncio.ensure_future(workers.run(work))
        while not begun.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await workers.run(sum, [1, 2]) == 3  # the thread is free
        workers.close()

    asyncio.run(run())
    assert ended.is_set() and seen == [Client("a")]
