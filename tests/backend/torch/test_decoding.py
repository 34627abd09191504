"""The parts of searches on PyTorch against plain loops: rows leave, caches grow in place."""

import contextlib

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from keras_transformer.backend import portable
from keras_transformer.backend.torch.decoding import best_tokens, row_loop, write_cache


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_a_cache_grows_when_it_is_full():
    cache, parts = random(2, 3, 0, 4), random(2, 3, 200, 4)
    lengths = set()
    for i in range(200):
        cache = write_cache(cache, parts[:, :, i : i + 1], i)
        lengths.add(cache.shape[2])
        assert cache.shape[2] > i
    torch.testing.assert_close(cache[:, :, :200], parts)
    assert len(lengths) < 10  # each is a copy


def test_a_cache_with_room_is_written_in_place():
    cache = random(2, 3, 5, 4)
    before, update = cache.clone(), random(2, 3, 2, 4, seed=1)
    assert write_cache(cache, update, 1) is cache
    torch.testing.assert_close(cache[:, :, 1:3], update)
    torch.testing.assert_close(cache[:, :, [0, 3, 4]], before[:, :, [0, 3, 4]])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("size", [5, 64, 65, 1000, 4099])
@pytest.mark.parametrize("k", [1, 5])
@pytest.mark.parametrize("recorded", [False, True])
def test_the_best_tokens_and_the_sum_of_all(size, k, dtype, recorded):
    logits = random(2, 3, size).to(dtype)
    logits[0, 0] = -7.0  # ties
    with portable() if recorded else contextlib.nullcontext():
        values, places, log_z = best_tokens(logits, k)
    whole = logits.float()
    torch.testing.assert_close(values, torch.topk(whole, k).values)
    torch.testing.assert_close(whole.gather(-1, places.long()), values)
    assert all(len(set(row.tolist())) == k for row in places.reshape(-1, k))
    torch.testing.assert_close(log_z, whole.logsumexp(-1, keepdim=True))
    assert places.dtype == torch.int32


@pytest.mark.parametrize("place", [0, 63, 64, 999])
def test_the_best_token_is_found_in_each_group(place):
    """Groups of 64 logits, and the last, shorter one."""
    logits = random(1, 1000)
    logits[0, place] = 99.0
    values, places, _ = best_tokens(logits, 2)
    assert places[0, 0] == place and values[0, 0] == 99


def test_many_rows_are_worked_on_in_parts():
    logits = random(700, 2000)
    values, _, log_z = best_tokens(logits, 3)
    torch.testing.assert_close(values, torch.topk(logits, 3).values)
    torch.testing.assert_close(log_z, logits.logsumexp(-1, keepdim=True))


@given(st.lists(st.integers(0, 8), min_size=1, max_size=25))
def test_each_row_has_its_own_turns(turns):
    """Row i counts its turns, adds up its own number, and is done after turns[i] of them."""
    rows, most = len(turns), 7
    number = torch.arange(rows)
    limits = torch.tensor(turns)
    sizes = []

    def turn(i, done, found, alive):
        sizes.append(len(done))
        is_on = ~done
        found = {"count": found["count"] + is_on, "sum": found["sum"] + alive["number"] * is_on}
        cache = alive["cache"].clone()
        assert (cache[:, 0, 0, 0] == alive["number"]).all()  # caches move with their rows
        return found["count"] >= alive["limit"], found, {**alive, "cache": cache}

    found = {"count": torch.zeros(rows, dtype=torch.int64), "sum": torch.zeros(rows).long()}
    alive = {"number": number, "limit": limits, "cache": number.float().view(-1, 1, 1, 1).clone()}
    with torch.no_grad():
        results = row_loop(turn, most + 1, limits == 0, found, alive)
    expected = limits.clamp(max=most)
    assert results["count"].tolist() == expected.tolist()
    assert results["sum"].tolist() == (expected * number).tolist()
    # Rows that are done leave as soon as they are a tenth of all.
    going_on = [sum(turn > i for turn in turns) for i in range(len(sizes))]
    assert all(size * 0.9 < on for size, on in zip(sizes, going_on, strict=True))


def test_no_turn_where_all_rows_are_done():
    found = {"x": torch.ones(3)}
    assert row_loop(None, 9, torch.ones(3, dtype=bool), found, {}) is found
