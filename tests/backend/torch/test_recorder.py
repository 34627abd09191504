"""The recorder of functions: streams, pools and constants, with stand-ins for a GPU."""

import contextlib

import pytest
import torch

from keras_transformer.backend.torch.recorder import NotRecordableError, Recorder


class FakeStream:
    def wait_stream(self, other):
        pass


class FakeGraph:
    number = 0

    def __init__(self):
        FakeGraph.number += 1
        self.number = FakeGraph.number

    def pool(self):
        return self.number

    def replay(self):
        return "replayed"


def test_a_failed_record_leaves_its_stream_and_its_pool(monkeypatch):
    current, pools = FakeStream(), []
    now = [current]

    @contextlib.contextmanager
    def capturing(graph, pool, capture_error_mode):
        assert capture_error_mode == "thread_local"
        pools.append(pool)
        now[0] = FakeStream()
        yield
        now[0] = current  # not after an error

    fakes = dict(current_stream=lambda: now[0], Stream=FakeStream, CUDAGraph=FakeGraph)
    fakes |= dict(stream=lambda x: contextlib.nullcontext(), graph=capturing)
    fakes |= dict(set_stream=lambda x: now.__setitem__(0, x))
    for name, fake in fakes.items():
        monkeypatch.setattr(torch.cuda, name, fake)
    zeros = torch.zeros
    monkeypatch.setattr(torch, "zeros", lambda *sizes, device: zeros(*sizes))
    recorder, calls = Recorder(), []
    assert recorder.record(lambda: calls.append(1))() == "replayed"
    recorder.record(lambda: calls.append(2))
    assert calls == [1, 1, 2, 2]  # once to warm up, once recorded
    first = pools[1]
    assert pools == [None, first, first]  # the holder, and two functions in its pool

    def waits():
        if len(pools) > 3:
            raise RuntimeError("it waits")

    with pytest.raises(NotRecordableError, match="it waits"):
        recorder.record(waits)
    assert now == [current]
    recorder.record(lambda: None)
    assert pools[4] is None and pools[5] != first  # another holder
    recorder.forget(0)
    recorder.record(lambda: None)
    assert pools[6] is None  # no search is kept: the pool is not, either


def test_constants_are_not_copied_to_the_device_again():
    """Numbers are filled in where they are needed; arrays and lists become tensors once."""
    constants = Recorder()._constants
    with constants:
        number = torch.as_tensor(2.5, dtype=torch.float16)
        assert number.dtype == torch.float16 and number.item() == 2.5
        assert torch.as_tensor(3, dtype=torch.int32).dtype == torch.int32
        first = torch.as_tensor([1, 2], dtype=torch.int32)
        assert torch.as_tensor([1, 2], dtype=torch.int32) is first
        assert torch.as_tensor([1, 2], dtype=torch.int64) is not first
        given = torch.arange(3)
        assert torch.as_tensor(given) is given
    assert torch.as_tensor([1, 2], dtype=torch.int32) is not first
