"""A program: trains tiny models on 8 virtual devices, and on one, and prints the differences."""

import tests.loading  # noqa: F401, it comes before Keras  # isort: skip

import json
import sys

import numpy as np

from keras_transformer.distribution import distribute, gather
from tests.distribution.training import trained


def train(family, options, layout):
    """The losses, the final weights, and how many values the first device holds."""
    gather()
    if layout is not None:
        distribute(**layout)
    model, history = trained(family, test=False, **options)
    held = sum(x.value.addressable_shards[0].data.size for x in model.weights)
    return np.array(history["loss"]), model.get_weights(), held


found = []
for family, options, *layouts in json.loads(sys.argv[1]):
    losses, weights, held = train(family, options, None)
    for layout in layouts:
        own_losses, own_weights, own_held = train(family, options, layout)
        found.append(
            dict(
                losses=float(np.abs(own_losses - losses).max()),
                weights=max(
                    float(np.abs(x - y).max()) for x, y in zip(weights, own_weights, strict=True)
                ),
                learnt=float(losses[0] - losses[-1]),
                held=own_held / held,
            )
        )
print(json.dumps(found))
