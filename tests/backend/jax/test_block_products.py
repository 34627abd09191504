"""Products with blocks in JAX's loops: the floats are not made in front of the loop."""

import jax
import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp

from keras_transformer.backend.jax.block_products import linear
from tests.backend.test_block_linear import made


@pytest.mark.parametrize("bits", [4, 8])
def test_a_loop_has_no_floats_of_the_matrix(bits, rng):
    variables, matrix = made(rng, bits, outputs=1024, inputs=1024)
    levels, scales = (variable.value for variable in variables)

    def loop(x, levels, scales):
        def step(i, x):
            return linear(x, levels, scales, bits) / 1e4

        return lax.fori_loop(0, 2, step, x)

    x = jnp.asarray(rng.standard_normal((1, 1024)), "float32")
    compiled = jax.jit(loop).lower(x, levels, scales).compile()
    expected = np.asarray(x) @ matrix.T / 1e4 @ matrix.T / 1e4
    result = compiled(x, levels, scales)
    np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())
    assert compiled.memory_analysis().temp_size_in_bytes < matrix.nbytes / 4
