"""A program: one of several processes, which train tiny models together, until one fails."""

import tests.loading  # noqa: F401, it comes before Keras  # isort: skip

import hashlib
import json
import sys
from pathlib import Path

import keras
import numpy as np

from keras_transformer.backend import BACKEND, replica_sum
from keras_transformer.distribution import distribute
from keras_transformer.distribution.processes import current
from keras_transformer.weights.state import RANDOM, latest, restore_state
from keras_transformer.weights.values import file_of
from tests.distribution.training import trained
from tests.tiny import tiny


def digest(arrays):
    """A text that says which arrays these are."""
    return hashlib.sha256(b"".join(np.asarray(x).tobytes() for x in arrays)).hexdigest()


def check_beginning(part):
    """Processes without a seed make one model; with different seeds, PyTorch's train one."""
    model = tiny("transformer")
    current().agree({"weights without a seed": digest(model.get_weights())})
    if BACKEND == "torch":
        model, _ = trained("transformer", part, seed=part[0], steps=2, test=False)
        current().agree({"weights after different seeds": digest(model.get_weights())})


def check_random_state(folder, part, model):
    """A process without a random state of its own draws other numbers than process 0."""
    if part[0] == 0:
        file_of(latest(folder) / RANDOM, 1).unlink()
    current().exchange(None)
    first, second = current().exchange(digest(restore_state(latest(folder), model).values()))
    assert first != second


def check_sums():
    """Sums of float64 are not rounded to float32."""
    small = keras.ops.convert_to_tensor(np.array(1 + 2.0**-40))
    assert float(replica_sum(small)) == 2 + 2.0**-39


spread = distribute()
check_beginning(spread.part)
if BACKEND == "torch":
    check_sums()
for number, (family, layout, options) in enumerate(json.loads(sys.argv[1])):
    spread = distribute(**layout)
    folder = Path(sys.argv[2], str(number))
    model, history = trained(family, spread.part, folder, **options)
    if spread.part[0] == 0:
        folder.joinpath("history.json").write_text(json.dumps(history))
if BACKEND == "torch":
    check_random_state(folder, spread.part, model)
current().exchange(None)  # all have written what they write
if current().index == 1:
    raise ValueError("the data are broken")
current().exchange(None)
