"""The collectives of one block in the compiled program are Megatron's."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from keras_transformer.backend import BACKEND

PROGRAM = """
import json, tests.loading
from benchmarks.collectives import LAYOUTS, measure
found = {}
for axis, block in CASES:
    found[f"{axis}, {block}"] = measure(LAYOUTS[axis], block)
print(json.dumps(found))
"""
EXPECTED = {  # of the forward pass, of forward and backward
    "model 2, encoder": [{"all-reduce": 2}, {"all-reduce": 4}],
    "model 2, decoder-only, grouped heads": [{"all-reduce": 2}, {"all-reduce": 4}],
    "data 8, encoder": [{}, {"all-reduce": 1}],
    "data 8, decoder-only, grouped heads": [{}, {"all-reduce": 1}],
}


@pytest.mark.skipif(BACKEND != "jax", reason="keras.distribution has no other devices")
def test_of_one_block():
    cases = [case.split(", ", 1) for case in EXPECTED]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("CASES", repr(cases))],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == EXPECTED
