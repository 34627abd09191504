"""A few steps of training of a tiny model, for the programs of these tests."""

import keras
import numpy as np

import keras_transformer as kt  # chooses the backend, so it comes before keras
from keras_transformer.callbacks import Checkpoints
from tests.tiny import inputs_of, tiny

STEPS = 8


def rows(family, part=(0, 1)):
    """A batch of 16 rows whose parts hold different numbers of tokens; `part` of it."""
    ids = np.random.default_rng(0).integers(4, 24, (16, 12)).astype("int32")
    labels = ids[:, ::-1].copy()
    labels[::3, 8:] = 0
    labels[12:] = 0  # rows of padding
    inputs = inputs_of(family, ids, labels)
    index, count = part
    own = slice(index * 16 // count, (index + 1) * 16 // count)
    return {name: x[own] for name, x in inputs.items()}, labels[own]


def trained(
    family, part=(0, 1), folder=None, accumulation=None, dtype=None, seed=1, steps=STEPS, test=True
):
    """The model after some steps, and the losses; with a folder, the state is saved there."""
    keras.utils.set_random_seed(seed)
    model = tiny(family, dtype=dtype)
    # Not Adam: where a gradient is nothing but rounding it makes full steps of it.
    sgd = keras.optimizers.SGD(0.1, momentum=0.9, gradient_accumulation_steps=accumulation)
    model.compile(sgd, kt.LabelSmoothedCrossentropy(), metrics=[kt.Perplexity()])
    inputs, labels = rows(family, part)
    fit = dict(batch_size=len(labels), shuffle=False, verbose=0)
    if test:
        fit["validation_data"] = inputs, labels
    history = model.fit(inputs, labels, epochs=steps - 1, **fit).history
    fit["callbacks"] = [Checkpoints(folder, keep=1)] if folder else []
    last = model.fit(inputs, labels, initial_epoch=steps - 1, epochs=steps, **fit).history
    return model, {name: [*values, *last[name]] for name, values in history.items()}
