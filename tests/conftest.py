"""Shared small fixtures: random numbers, a tiny model, weights from PyTorch, saving and loading."""

from __future__ import annotations

import functools
import gc
import importlib
import json
import os
import tempfile
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import hypothesis
import numpy as np
import pytest
import typer.testing

# The suite is about processors; `benchmarks/gpu.sh` runs the tests that are about a GPU.
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
# Most of a test's time under JAX is compilation, which need not make what it compiles fast.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
    " --xla_cpu_use_fusion_emitters=false"  # halves the compilation of single operations
    " --xla_cpu_parallel_codegen_split_count=1",  # saves a fifth of that of a training step
)
# What one test compiles, later ones and their processes load; all workers share the folder.
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    compiled = tempfile.TemporaryDirectory(prefix="jax-")
    os.environ["JAX_COMPILATION_CACHE_DIR"] = compiled.name
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")

from tests import loading  # noqa: F401, it comes before Keras

import keras  # isort: skip
from keras.src.utils import rng_utils  # isort: skip
from keras_transformer.config import TransformerConfig  # isort: skip
from keras_transformer.backend.private import layers_inside  # isort: skip
from keras_transformer.layers.head_groups import FusedDense, fuse  # isort: skip
from keras_transformer.models import Transformer  # isort: skip
from tests import compilation, pretrained_files  # noqa: F401  # isort: skip
from tests.backends import BACKEND, EVERY_CASE_ASKED, NEXT, runs_once  # isort: skip

gc.disable()  # while test modules are imported, which makes no garbage

hypothesis.settings.register_profile(
    "repository", deadline=None, database=None, max_examples=100 if EVERY_CASE_ASKED else 40
)
hypothesis.settings.load_profile("repository")


def pytest_make_parametrize_id(val, argname):
    """Name bytes by their argument: a gzip header, say, holds the time, and names must not."""
    return argname if isinstance(val, bytes) else None


# Typer makes its commands anew for each call of one, which takes 50 ms.
typer.main.get_command = typer.testing._get_command = functools.cache(typer.main.get_command)

if BACKEND != "tensorflow":  # to set its seed, Keras would import it, which takes 2 s
    rng_utils.tf = SimpleNamespace(available=False)

ONCE = BACKEND == "torch"


def pytest_ignore_collect(collection_path):
    """Leaves files that no backend can change to PyTorch's run, and a backend's own to its run."""
    path = collection_path.relative_to(Path(__file__).parent)
    if path.parts[:1] == ("backend",) and {*path.parts[1:]} & {*NEXT} - {BACKEND}:
        return True
    is_test = path.suffix == ".py" and path.name != "conftest.py"
    return True if is_test and not ONCE and runs_once(path) else None


# Slow files come first: at the end one process would run them while the other has nothing to do.
# Those of faults are the first of all: to fork takes longer the larger a process has grown.
_SLOW = (
    "faults", "export", "training", "docs", "cli", "translate", "language", "pretrained", "saved",
    "speech", "tasks", "running", "callbacks",
)  # fmt: skip


def pytest_collection_modifyitems(config, items):
    """Orders the files, and leaves tests that no backend can change to PyTorch's run."""
    root = Path(__file__).parent
    parts = {item: item.path.relative_to(root).parts[0].removesuffix(".py") for item in items}
    items.sort(key=lambda item: (parts[item] != "faults", parts[item] not in _SLOW))
    if ONCE:
        return
    left_out = [item for item in items if item.get_closest_marker("once")]
    items[:] = [item for item in items if not item.get_closest_marker("once")]
    config.hook.pytest_deselected(items=left_out)


def pytest_collection_finish():
    """Lets later collections of garbage pass over what stays: a million objects of modules."""
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)  # the usual 700 cost 6 % of TensorFlow's time
    gc.enable()


@pytest.fixture(scope="module", autouse=True)
def seeded_module():
    """Makes what fixtures of a module draw the same in every run."""
    keras.utils.set_random_seed(1)


@pytest.fixture(autouse=True)
def seeded():
    """Makes what a test draws the same in every run, and other than what its module drew."""
    keras.utils.set_random_seed(0)


@pytest.fixture(scope="session")
def in_this_process():
    """`with in_this_process(name):` what `export.NAME` exports starts no process of its own."""

    def here(module, task, backend):
        with mock.patch("sys.argv", [module, json.dumps(task)]):
            importlib.import_module(module).main()

    return lambda name, room="export": mock.patch.object(
        importlib.import_module(f"keras_transformer.{room}.{name}"), "run_elsewhere", here
    )


@pytest.fixture
def rng():
    """Random numbers that are the same in each run and on each backend."""
    return np.random.default_rng(20170612)


@pytest.fixture(scope="session")
def randomize():
    """`randomize(layer, scale=1.0, seed=0)`: weights from NumPy, alike on each backend.

    Norms and biases leave their initial 1 and 0, so that a forgotten one is seen. In whatever order
    heads are stored, the function is the same.
    """

    def assign(layer, scale=1.0, seed=0):
        rng = np.random.default_rng(seed)
        fused = [x for x in layers_inside(layer) if isinstance(x, FusedDense)]
        fused = {id(weight): one for one in fused for weight in one.weights}
        for weight in layer.weights:
            if "seed_generator" in weight.path:
                continue
            value = rng.standard_normal(weight.shape)
            if len(weight.shape) <= 1:
                value = 0.2 * value + (weight.name == "gamma")
            else:
                value = scale * value / weight.shape[-2 if "kernel" in weight.name else -1] ** 0.5
            one = fused.get(id(weight))
            if one and value.shape[-1] == one.units:  # drawn by projection
                ends = np.cumsum(one.heads)[:-1] * one.units // sum(one.heads)
                value = fuse(np.split(value, ends, axis=-1), one.heads[-1])
            weight.assign(value.astype("float32"))
        return layer

    return assign


@pytest.fixture(scope="session")
def tiny_transformer(randomize):
    """`tiny_transformer(**config_changes)`: a model of some 1,300 random weights."""

    def build(scale=2.0, seed=0, dtype=None, **changes):
        sizes = dict(source_vocab_size=13, target_vocab_size=13, d_model=6, d_ff=10, num_heads=2)
        sizes |= dict(num_encoder_layers=1, num_decoder_layers=2, max_length=32)
        return randomize(
            Transformer(TransformerConfig(**sizes | changes), dtype=dtype), scale, seed
        )

    return build


@pytest.fixture(scope="session")
def saved_and_loaded(tmp_path_factory):
    """`saved_and_loaded(model)`: the model again, by way of a `.keras` file in safe mode."""

    def reload(model):
        path = tmp_path_factory.mktemp("models") / "model.keras"
        model.save(path)
        return keras.saving.load_model(path)

    return reload


@pytest.fixture(scope="session")
def round_trips(randomize, saved_and_loaded):
    """`round_trips(layer, **arrays)` checks a layer's config and its life inside a saved model."""

    def check(layer, **arrays):
        config = layer.get_config()
        assert type(layer).from_config(config).get_config() == config

        inputs = {
            name: keras.Input((None, *array.shape[2:]), dtype=str(array.dtype), name=name)
            for name, array in arrays.items()
        }
        model = randomize(keras.Model(inputs, layer(**inputs)))
        loaded = saved_and_loaded(model)
        assert loaded.get_layer(layer.name).get_config() == config
        expected, actual = keras.tree.flatten(model(arrays)), keras.tree.flatten(loaded(arrays))
        assert len(expected) == len(actual)
        for one, other in zip(expected, actual, strict=True):
            assert one.dtype == other.dtype
            one, other = (keras.ops.cast(x, "float32") for x in (one, other))
            np.testing.assert_allclose(*map(keras.ops.convert_to_numpy, (one, other)), atol=1e-6)
        return loaded

    return check


@pytest.fixture(scope="session")
def from_torch():
    """`from_torch(layer, module)` copies a `torch.nn` attention or block into our built layer."""
    pytest.importorskip("torch")

    def dense(layer, weight, bias):
        layer.kernel.assign(weight.detach().numpy().T)
        layer.bias.assign(bias.detach().numpy())

    def norm(layer, module):
        layer.gamma.assign(module.weight.detach().numpy())
        layer.beta.assign(module.bias.detach().numpy())

    def attention(layer, module):
        weights = module.in_proj_weight.detach().numpy(), module.in_proj_bias.detach().numpy()
        parts = [list(np.split(x.T, 3, axis=-1)) for x in weights]
        if layer.cross_attention:
            layer.query.kernel.assign(parts[0].pop(0))
            layer.query.bias.assign(parts[1].pop(0))
        fused = layer.key_value if layer.cross_attention else layer.query_key_value
        for variable, values in zip(fused.weights, parts, strict=True):
            variable.assign(fuse(values, module.num_heads))
        dense(layer.output_projection, module.out_proj.weight, module.out_proj.bias)

    def block(layer, module):
        # PyTorch numbers its norms in the order of Figure 1.
        if hasattr(module, "multihead_attn"):
            attention(layer.self_attention, module.self_attn)
            attention(layer.cross_attention, module.multihead_attn)
            norms = [layer.self_attention_norm, layer.cross_attention_norm]
        else:
            attention(layer.attention, module.self_attn)
            norms = [layer.attention_norm]
        for i, add_norm in enumerate([*norms, layer.feed_forward_norm], start=1):
            norm(add_norm.norm, getattr(module, f"norm{i}"))
        hidden, output = layer.feed_forward.hidden, layer.feed_forward.output_projection
        dense(hidden, module.linear1.weight, module.linear1.bias)
        dense(output, module.linear2.weight, module.linear2.bias)

    def copy(layer, module):
        if hasattr(module, "layers"):
            for ours, theirs in zip(layer.blocks, module.layers, strict=True):
                block(ours, theirs)
            if layer.norm:
                norm(layer.norm, module.norm)
        elif hasattr(module, "linear1"):
            block(layer, module)
        else:
            attention(layer, module)

    return copy


@pytest.fixture(scope="session")
def shake():
    """`shake(module)` gives a `torch.nn` module random biases and norms: they start at 0 and 1."""
    torch = pytest.importorskip("torch")

    def perturb(module):
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for parameter in module.parameters():
                parameter += 0.2 * torch.randn(parameter.shape, generator=generator)
        return module.eval()

    return perturb


@pytest.fixture(scope="session")
def marian_files():
    """`marian_files(folder, source_texts, target_texts)` writes a tokenizer like OPUS-MT's."""
    return pretrained_files.marian_files


@pytest.fixture(scope="session")
def tokenizer_files():
    """`tokenizer_files(kind, folder, texts)` writes a tokenizer: "nllb", "mbart", "t5" ..."""
    return pretrained_files.tokenizer_files


@pytest.fixture(scope="session")
def pretrained_folder():
    """`pretrained_folder(kind, folder, texts)` saves a random model of `transformers`."""
    return pretrained_files.pretrained_folder


@pytest.fixture(scope="session")
def whisper_folder():
    """`whisper_folder(folder)` saves a random Whisper for clips of 0.24 s."""
    return pretrained_files.whisper_folder


@pytest.fixture(scope="session")
def tokenizer():
    """The tokenizer of the small translator."""
    from tests.small_translator import made_tokenizer

    return made_tokenizer()


@pytest.fixture(scope="session")
def translator(tokenizer):
    """A small translator of random weights."""
    from tests.small_translator import make

    return make(tokenizer)


@pytest.fixture(scope="session")
def alone(translator):
    """Its translation of each of `small_translator.TEXTS`, alone in its batch."""
    from tests.small_translator import SHORT, TEXTS

    return {text: translator.translate([text], **SHORT)[0] for text in TEXTS}
