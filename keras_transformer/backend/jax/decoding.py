"""Search on JAX: shapes are static, so finished rows are removed in a few stages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax import numpy as jnp

# A stage ends when at most one in four of its rows is unfinished; the next stage has these rows.
# With one in two, a search was at most 5 % faster, and compiling took 1.5 times as long.
_SHARE = 4
_FEWEST = 4  # minimum number of rows of a later stage


def row_loop(turn: Callable, length: Any, done_B: Any, current: Any, alive: Any) -> Any:
    """Kernel of `backend.row_loop` for JAX: stages, each with the unfinished rows of the last."""
    i, results, row_ids_B = jnp.int32(1), None, None
    while True:
        rows = done_B.shape[0]
        rest = rows // _SHARE if rows // _SHARE >= _FEWEST else 0

        def goes_on(state, rest=rest):
            i, done_B, *_ = state
            return (i < length) & (jnp.sum(~done_B) > rest)

        def iteration(state):
            i, *rest = state
            return i + 1, *turn(i, *rest)

        i, done_B, current, alive = jax.lax.while_loop(
            goes_on, iteration, (i, done_B, current, alive)
        )
        if results is None:
            results = current
        else:
            results = jax.tree.map(lambda x, y, to=row_ids_B: x.at[to].set(y), results, current)
        if not rest:
            return results
        order_C = jnp.argsort(done_B, stable=True)[:rest]  # the unfinished rows come first
        row_ids_B = order_C if row_ids_B is None else row_ids_B[order_C]
        state = done_B, current, alive
        done_B, current, alive = jax.tree.map(lambda x, order=order_C: x[order], state)


def lower_at(x_RV: jax.Array, ids_RM: jax.Array, values_RM: jax.Array) -> jax.Array:
    """Kernel of `backend.forbid` for JAX: return x, at most `values_RM` at `ids_RM`."""
    return x_RV.at[jnp.arange(len(x_RV))[:, None], ids_RM].min(values_RM)
