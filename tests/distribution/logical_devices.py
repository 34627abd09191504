"""A program: trains tiny models on 2 logical CPUs with TensorFlow, and on one; prints both."""

import tests.loading  # noqa: F401, it comes before Keras  # isort: skip

import json
import sys
import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

import keras_transformer as kt
from keras_transformer.backend import dropout, replica_number
from keras_transformer.weights.state import restore_state, write_state
from tests.tiny import inputs_of, tiny

OPTIMIZERS = {
    "clipping": lambda: keras.optimizers.SGD(0.1, global_clipnorm=0.5),
    # The epsilon is far above rounding, of which Adam would else make full steps.
    "accumulating": lambda: kt.adam(
        0.03,
        epsilon=1e-3,
        gradient_accumulation_steps=2,
        global_clipnorm=0.5,
        weight_decay=0.01,
        use_ema=True,
    ),
}


def compiled(family, optimizer, dtype):
    keras.utils.set_random_seed(1)
    model = tiny(family, dtype=dtype)
    metrics = [kt.Perplexity()] if family != "llama" else [kt.MaskedAccuracy()]
    model.compile(OPTIMIZERS[optimizer](), kt.LabelSmoothedCrossentropy(), metrics=metrics)
    return model


def train(family, optimizer, dtype, rows):
    """A model after 20 steps, their losses, and the metrics at the end."""
    model = compiled(family, optimizer, dtype)
    ids = np.random.default_rng(0).integers(4, 24, (rows, 12)).astype("int32")
    labels = ids[:, ::-1].copy()
    labels[rows // 2 :, 4:] = 0  # so that replicas hold different numbers of tokens
    labels[-1] = 0
    weights = np.linspace(0.5, 1.5, rows, dtype="float32")
    inputs = inputs_of(family, ids, labels)
    batch = tf.data.Dataset.from_tensors((inputs, labels, weights))
    totals = []
    record = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda step, logs: totals.append((step + 1) * logs["loss"])
    )
    model.fit(batch.unbatch().batch(rows).repeat(20), verbose=0, callbacks=[record])
    metrics = {}
    if family == "transformer":
        metrics = model.evaluate(inputs, labels, batch_size=rows, verbose=0, return_dict=True)
    return model, np.diff(totals, prepend=0), metrics


def difference(one, two):
    return max(float(np.abs(x - y).max()) for x, y in zip(one, two, strict=True))


def masks():
    """Whether the replicas drop different elements."""
    seeds = keras.random.SeedGenerator(1)
    strategy = tf.distribute.get_strategy()
    results = strategy.run(lambda: (replica_number(), dropout(tf.ones(1000), 0.5, seeds)))
    numbers, (one, two) = map(strategy.experimental_local_results, results)
    return [int(number) for number in numbers], float(np.mean(one.numpy() != two.numpy()))


def refusal():
    """The error of an optimizer that clips the gradients of each replica."""
    model = compiled("llama", "clipping", "float32")
    try:
        model.make_train_function()
    except NotImplementedError as error:
        return str(error)


cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
runs = []
for run in json.loads(sys.argv[1]):
    tf.distribute.experimental_set_strategy(None)
    one, one_losses, one_metrics = train(*run)
    kt.distribute(data=2)
    two, two_losses, two_metrics = train(*run)
    with tempfile.TemporaryDirectory() as folder:
        write_state(Path(folder, "state"), two, {"run": {}, "history": []})
        tf.distribute.experimental_set_strategy(None)
        again = compiled(*run[:3])
        restore_state(Path(folder, "state"), again)
    kept = ([x.numpy() for x in m.variables + m.optimizer.variables] for m in (two, again))
    runs.append(
        dict(
            replicas=two.distribute_strategy.num_replicas_in_sync,
            losses=difference(one_losses, two_losses),
            weights=difference(one.get_weights(), two.get_weights()),
            metrics=[[one_metrics[name], two_metrics[name]] for name in one_metrics],
            learnt=float(one_losses[0] - one_losses[-1]),
            restored=difference(*kept),
        )
    )
kt.distribute()
print(json.dumps(dict(runs=runs, masks=masks(), refusal=refusal())))
