"""Rows that are removed from a compiled loop in stages."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from keras_transformer.backend.jax.decoding import row_loop


@pytest.mark.parametrize(
    "rows,stages", [(300, [300, 75, 18, 4]), (63, [63, 15]), (16, [16, 4]), (15, [15]), (1, [1])]
)
def test_stages(rng, rows, stages):
    """Few rows have one stage: each one is compiled."""
    seen = []

    def turn(i, done_B, found, alive):
        seen.append(len(done_B))
        found = {"steps": found["steps"] + ~done_B}
        return done_B | (i >= alive["ends"]), found, alive

    @jax.jit
    def find(ends):
        found = {"steps": jnp.zeros(rows, "int32")}
        return row_loop(turn, 20, jnp.zeros(rows, bool), found, {"ends": ends})

    ends = rng.integers(1, 25, rows)
    np.testing.assert_array_equal(find(ends)["steps"], np.minimum(ends, 19))
    assert list(dict.fromkeys(seen)) == stages
