"""Search on JAX: shapes are static, so rows are removed in a few stages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax import numpy as jnp

# With 2, a model is at most a twentieth faster, and compiling takes half as long again.
_SHARE = 4  # a stage ends when one row in so many is unfinished; the next stage has these rows
_FEWEST = 4  # rows of the last stage, at least: a few rows go on much longer than the others


def row_loop(turn: Callable, length: Any, done_B: Any, found: Any, alive: Any) -> Any:
    """Kernel of `backend.row_loop` for JAX: each stage is a loop over a quarter of the rows."""
    i, results, places_B = jnp.int32(1), None, None
    while True:
        rows = done_B.shape[0]
        rest = rows // _SHARE if rows // _SHARE >= _FEWEST else 0

        def goes_on(state, rest=rest):
            i, done_B, *_ = state
            return (i < length) & (jnp.sum(~done_B) > rest)

        def iteration(state):
            i, *rest = state
            return i + 1, *turn(i, *rest)

        i, done_B, found, alive = jax.lax.while_loop(goes_on, iteration, (i, done_B, found, alive))
        if results is None:
            results = found
        else:
            results = jax.tree.map(lambda x, y, to=places_B: x.at[to].set(y), results, found)
        if not rest:
            return results
        order_C = jnp.argsort(done_B, stable=True)[:rest]  # the unfinished rows come first
        places_B = order_C if places_B is None else places_B[order_C]
        state = done_B, found, alive
        done_B, found, alive = jax.tree.map(lambda x, order=order_C: x[order], state)


def lower_at(x_RV: jax.Array, ids_RM: jax.Array, values_RM: jax.Array) -> jax.Array:
    """Kernel of `backend.forbid` for JAX: return x, at most `values_RM` at `ids_RM`."""
    return x_RV.at[jnp.arange(len(x_RV))[:, None], ids_RM].min(values_RM)
