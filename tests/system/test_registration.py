"""A process that imported only `keras_transformer` loads whatever Keras saved of ours."""

import importlib
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
from keras import ops

import keras_transformer
from keras_transformer.layers import Encoder, PositionalEmbedding
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.metrics import Perplexity
from keras_transformer.optimizers import WarmupSchedule, adam
from keras_transformer.system.registration import PACKAGE, SERIALIZABLE
from tests.backends import sample
from tests.tiny import tiny

LOADING = """
import sys
{imports}
import numpy as np
for path in sys.argv[1:]:
    model = keras.models.load_model(path)
    ids = np.arange(4, 10, dtype="int32").reshape(1, 6)
    inputs = [ids] * len(model.inputs)
    outputs = keras.ops.convert_to_numpy(model(inputs if len(inputs) > 1 else ids))
    print(type(model).__name__, type(model.loss).__name__, float(np.abs(outputs).sum()))
"""
ORDERS = ["import keras_transformer as kt, keras", "import keras, keras_transformer as kt"]


def users_own():
    ids = keras.Input((None,), dtype="int32")
    embedding = PositionalEmbedding(24, 8)
    x = Encoder(1, num_heads=2, d_ff=8, dropout=0.0)(embedding(ids))
    return keras.Model(ids, embedding(x, reverse=True))


def in_another_process(program, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.once("names and modules: no tensor differs")
@pytest.mark.parametrize("imports", sample(ORDERS, ORDERS[1]))
def test_a_fresh_process_loads_models_layers_losses_metrics_and_schedules(imports, tmp_path):
    ids, found = np.arange(4, 10, dtype="int32").reshape(1, 6), []
    for name, model in {"model": tiny("transformer"), "users": users_own()}.items():
        model.compile(
            adam(WarmupSchedule(0.1, 3)), LabelSmoothedCrossentropy(), metrics=[Perplexity()]
        )
        model.save(tmp_path / f"{name}.keras")
        output = model([ids, ids] if name == "model" else ids)
        found.append(np.abs(ops.convert_to_numpy(output)).sum())
    paths = [str(tmp_path / f"{name}.keras") for name in ("model", "users")]
    lines = in_another_process(LOADING.format(imports=imports), *paths).splitlines()
    names = [line.split()[:2] for line in lines]
    loss = "LabelSmoothedCrossentropy"
    assert names == [["Transformer", loss], ["Functional", loss]]
    np.testing.assert_allclose([float(line.split()[2]) for line in lines], found, rtol=1e-4)


@pytest.mark.once("a list of classes")
def test_every_class_that_registers_itself_is_listed():
    for folder in ("layers", "models", "losses", "metrics", "optimizers"):
        module = importlib.import_module(f"{PACKAGE}.{folder}")
        for inner in pkgutil.iter_modules(getattr(module, "__path__", ())):
            importlib.import_module(f"{PACKAGE}.{folder}.{inner.name}")
    listed = {
        f"{PACKAGE}>{name}": f"{PACKAGE}.{module}"
        for module, names in SERIALIZABLE.items()
        for name in names
    }
    registered = keras.saving.get_custom_objects()
    ours = {k: v.__module__ for k, v in registered.items() if k.startswith(f"{PACKAGE}>")}
    assert ours == listed


@pytest.mark.once("names of a module")
def test_completion_finds_every_public_name():
    assert {*keras_transformer.__all__} <= {*dir(keras_transformer)}
