"""Search on PyTorch, in eager steps: finished rows are removed, caches are written in place."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import keras
import torch

from keras_transformer.backend.compilation import is_portable
from keras_transformer.system import interruption

_FULL = 0.9  # finished rows are removed once at most this share of rows is unfinished
_GROUP = 64  # tokens per group in the first pass of `_top_k`
_FEW = 1 << 16  # with fewer logits, one call of `topk` is faster than two passes
_CHUNK = 1 << 18  # logits to process per thread at a time: 1 MiB in float32 stays in cache


def write_cache(cache_BNSH: torch.Tensor, update_BNTH: torch.Tensor, index: Any) -> torch.Tensor:
    """Kernel of `backend.write_cache` for PyTorch: writes in place, or into a longer cache.

    With a tensor as index the cache must have room: reading the index would wait for the device.
    """
    if torch.is_tensor(index):
        places_T = torch.arange(update_BNTH.shape[2], device=cache_BNSH.device) + index
        return cache_BNSH.index_copy_(2, places_T, update_BNTH)
    rows, heads, length, width = cache_BNSH.shape
    end = index + update_BNTH.shape[2]
    if end > length:
        larger = cache_BNSH.new_empty((rows, heads, end + 64 + length // 4, width))
        larger[:, :, :index] = cache_BNSH[:, :, :index]
        cache_BNSH = larger
    cache_BNSH[:, :, index:end] = update_BNTH
    return cache_BNSH


def best_tokens(logits: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Kernel of `backend.best_tokens` for PyTorch.

    On a CPU, many logits are processed in chunks that stay in cache, and the k best are searched in
    the k groups with the highest maxima, which one pass finds: `torch.topk` over all logits takes
    longer.
    """
    if not is_portable() and logits.device.type == "cpu":
        rows, size = logits.numel() // logits.shape[-1], logits.shape[-1]
        if rows > (step := max(1, _CHUNK * torch.get_num_threads() // size)):
            return _in_chunks(logits, k, step)
    values, indices, log_z = _best_and_sum(logits, k)
    return values, indices.to(torch.int32), log_z


def _in_chunks(logits, k, step):
    """Return the result of `best_tokens`, computed for `step` rows at a time."""
    logits_RV = logits.reshape(-1, logits.shape[-1])
    rows = len(logits_RV)
    values_Rk = torch.empty((rows, k), device=logits.device)
    indices_Rk = torch.empty((rows, k), dtype=torch.int32, device=logits.device)
    log_z_R1 = torch.empty((rows, 1), device=logits.device)
    for start in range(0, rows, step):
        part = slice(start, start + step)
        values_Rk[part], indices_Rk[part], log_z_R1[part] = _best_and_sum(logits_RV[part], k)
    shape = logits.shape[:-1]
    return values_Rk.view(*shape, k), indices_Rk.view(*shape, k), log_z_R1.view(*shape, 1)


def _best_and_sum(x, k):
    x = x.float()
    values, indices = _top_k(x, k)
    if is_portable():  # the compiler fuses exponents and sum into one pass
        return values, indices, values[..., :1] + (x - values[..., :1]).exp().sum(-1, True).log()
    # One fused pass, which takes half as long as to subtract, exponentiate and sum.
    return values, indices, values[..., :1] - torch.log_softmax(x, -1).gather(-1, indices[..., :1])


def _top_k(x, k):
    """Return the k highest values of the last axis and their indices, like `torch.topk`."""
    size = x.shape[-1]
    groups = size // _GROUP
    # A recorded graph is used for any number of rows: only the vocabulary size can decide.
    is_few = size < _FEW // 64 if is_portable() else x.numel() < _FEW
    if groups <= k or is_few or x.device.type != "cpu":
        return torch.topk(x, k)
    x_RV = x.reshape(-1, size)
    rows = x_RV.shape[0]
    highest_RG = x_RV[:, : groups * _GROUP].view(rows, groups, _GROUP).amax(-1)
    chosen_Rk = torch.topk(highest_RG, k, sorted=False).indices
    indices_RC = (chosen_Rk[:, :, None] * _GROUP + torch.arange(_GROUP)).flatten(1)
    rest = torch.arange(groups * _GROUP, size).expand(rows, -1)
    indices_RC = torch.cat([indices_RC, rest], dim=1)
    values_Rk, choice_Rk = torch.topk(x_RV.gather(1, indices_RC), k)
    shape = (*x.shape[:-1], k)
    return values_Rk.view(shape), indices_RC.gather(1, choice_Rk).view(shape)


def row_loop(turn: Callable, length: int, done_B: torch.Tensor, current: Any, alive: Any) -> Any:
    """Kernel of `backend.row_loop` for PyTorch: removes finished rows, see `_FULL`."""
    results = row_ids = None
    for i in range(1, length):
        interruption.check()
        rows = done_B.shape[0]
        left = rows - sum(done_B.tolist())  # for few rows faster than `torch.sum`
        if left == 0:
            break
        if left <= _FULL * rows:
            holes, movers, order = _moves(done_B, left)
            if row_ids is None:
                results, row_ids = current, order
            else:
                _put(results, row_ids, current)
                row_ids = row_ids[order]
            without = functools.partial(_without, holes=holes, movers=movers, order=order)
            done_B, current, alive = keras.tree.map_structure(without, (done_B, current, alive))
        done_B, current, alive = turn(i, done_B, current, alive)
    if row_ids is None:
        return current
    _put(results, row_ids, current)
    return results


def _moves(done_B, left):
    """Return holes, the unfinished rows that fill them, and the resulting order of rows."""
    goes_on = torch.nonzero(~done_B)[:, 0]
    holes = torch.nonzero(done_B[:left])[:, 0]
    movers = goes_on[left - len(holes) :]
    order = torch.arange(left, device=done_B.device)
    order[holes] = movers
    return holes, movers, order


def _without(x, holes, movers, order):
    """Return the rows of `order`; without gradients, caches (four axes) are changed in place."""
    if x.ndim != 4 or torch.is_grad_enabled():
        return x.index_select(0, order)
    x[holes] = x[movers]
    return x[: len(order)]


def _put(results, row_ids, values):
    for result, x in zip(keras.tree.flatten(results), keras.tree.flatten(values), strict=True):
        result[row_ids] = x


def lower_at(x_RV: torch.Tensor, ids_RM: torch.Tensor, values_RM: torch.Tensor) -> torch.Tensor:
    """Kernel of `backend.forbid` for PyTorch: lower x at `ids_RM` to `values_RM` or less."""
    return x_RV.scatter_reduce(1, ids_RM.long(), values_RM, "amin")
