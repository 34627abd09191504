"""Configs that ask for enormous arrays: refused before they are made, in every saved folder."""

import dataclasses
import io
import itertools
import json
import math
import re
import resource
import shutil
import time
import typing
import zipfile

import h5py
import keras
import pytest

from keras_transformer.layers.layer import skip_init
from keras_transformer.models import (
    BERT,
    ESM,
    GPT,
    BERTConfig,
    ESMConfig,
    GPTConfig,
    MetricConfig,
    MetricModel,
    ModernBERT,
    ModernBERTConfig,
    Speech,
    SpeechConfig,
    T5Encoder,
    T5EncoderConfig,
    TextToSpeech,
    TextToSpeechConfig,
    ViT,
    ViTConfig,
)
from keras_transformer.models.configured import ConfiguredModel
from keras_transformer.models.reward import RewardModel
from keras_transformer.models.transformer_classifier import (
    TransformerClassifier,
    TransformerClassifierConfig,
)
from keras_transformer.saved.contents import CONFIG, MODEL
from keras_transformer.saved.folder import save_folder
from keras_transformer.saved.model_files import read_weights
from keras_transformer.weights.adapters import Adapter
from keras_transformer.weights.sizes import SIZELESS
from tests.tiny import tiny

pytestmark = pytest.mark.once("the sizes are compared before any tensor is made")
ENORMOUS = 10**9
SECONDS, BYTES = 1.0, 1 << 30  # for a refusal, and for all that the tests' process adds
PAIRS = (
    ("source_vocab_size", "target_vocab_size"),
    ("num_buckets", "max_distance"),
)  # one limits the other
SIZES = dict(d_model=16, d_ff=32, num_heads=4)
BLOCKS = dict(num_encoder_layers=1, num_decoder_layers=1)
ONE = dict(num_layers=1)
MODELS = {
    "Transformer": lambda: tiny("transformer", positions="learned"),
    "sinusoids": lambda: tiny("transformer"),
    "T5": lambda: tiny("t5"),
    "T5Gemma": lambda: tiny("t5gemma", encoder_d_model=8),
    "Gemma": lambda: tiny("gemma"),
    "LLaMA": lambda: tiny("llama", window=4),
    "DeBERTa": lambda: tiny("deberta"),
    "BERT": lambda: tiny("bert", d_embedding=8, num_buckets=4, shared_blocks=True),
    "GPT": lambda: GPT(GPTConfig(24, **SIZES, **ONE)),
    "ESM": lambda: ESM(ESMConfig(33, **SIZES, **ONE)),
    "T5Encoder": lambda: T5Encoder(T5EncoderConfig(24, head_dim=4, **SIZES, **ONE)),
    "ViT": lambda: ViT(ViTConfig(3, image_size=8, patch_size=4, **SIZES, **ONE)),
    "Speech": lambda: Speech(SpeechConfig(24, max_frames=8, **SIZES, **BLOCKS)),
    "TextToSpeech": lambda: TextToSpeech(TextToSpeechConfig(24, **SIZES, **BLOCKS)),
    "TransformerClassifier": lambda: TransformerClassifier(
        TransformerClassifierConfig(24, 24, labels=("no", "yes"), **SIZES, **BLOCKS)
    ),
    "ModernBERT": lambda: ModernBERT(ModernBERTConfig(24, window=4, pad_id=0, **SIZES, **ONE)),
    "RewardModel": lambda: RewardModel.on(GPT(GPTConfig(24, **SIZES, **ONE))),
    "MetricModel": lambda: MetricModel(
        MetricConfig("BERT", BERTConfig(24, **SIZES, **ONE).to_dict(), hidden_sizes=(8,))
    ),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A saved folder of each model, by name."""
    room = tmp_path_factory.mktemp("folders")
    for name, make in MODELS.items():
        save_folder(room / name, make(), None, {})
    return {name: room / name for name in MODELS}


def fields_of(config_class):
    """Names of the fields of a config that may be a whole number."""
    hints = typing.get_type_hints(config_class)
    names = (field.name for field in dataclasses.fields(config_class))
    return [name for name in names if int in (hints[name], *typing.get_args(hints[name]))]


def config_in(folder):
    with zipfile.ZipFile(folder / MODEL) as archive:
        return json.loads(archive.read(CONFIG))


def changed(folder, new, **values):
    """Copy a folder, with other values in the config of its `.keras` file and beside it."""
    shutil.copytree(folder, new)
    with zipfile.ZipFile(folder / MODEL) as old, zipfile.ZipFile(new / MODEL, "w") as archive:
        for name in old.namelist():
            content = old.read(name)
            if name == CONFIG:
                config = json.loads(content)
                fields = config["config"]["config"]
                fields.get("base", fields).update(values)
                content = json.dumps(config)
            archive.writestr(name, content)
    config = json.loads((new / CONFIG).read_text())
    config["model"].update(values)
    (new / CONFIG).write_text(json.dumps(config))
    return new


def test_every_config_class_is_here():
    def below(kind):
        return itertools.chain([kind], *map(below, kind.__subclasses__()))

    known = [x for x in below(ConfiguredModel) if getattr(x, "config_class", None)]
    ours = {x.__name__ for x in known if x.__module__.startswith("keras_transformer.")}
    assert {x for x in ours if x[0] != "_"} <= MODELS.keys()


@pytest.fixture
def limited_memory():
    """Limit what this process may add to its memory."""
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + BYTES, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def test_enormous_numbers_are_refused_by_name(folders, tmp_path, limited_memory):
    assert [x for name, path in folders.items() for x in _problems(name, path, tmp_path)] == []


def _problems(name, folder, room):
    """Try each field; return what is not refused at once by its name."""
    kind = keras.saving.get_registered_object(config_in(folder)["registered_name"])
    base = {RewardModel: GPT, MetricModel: BERT}.get(kind, kind)
    sizeless = {*SIZELESS} | ({"max_length"} if hasattr(base.config_class, "theta") else {*()})
    fields = fields_of(base.config_class)
    changes = [(field,) for field in fields] + [pair for pair in PAIRS if {*pair} <= {*fields}]
    for names in changes:
        values = {x: [ENORMOUS] * 2 if x == "image_size" else ENORMOUS for x in names}
        path = changed(folder, room / "-".join([name, *names]), **values)
        before, error = time.perf_counter(), ""
        try:
            read_weights(path, {})
        except ValueError as caught:
            error = str(caught)
        except BaseException as caught:  # MemoryError, too
            error = f"{type(caught).__name__}: {caught}"
        seconds = time.perf_counter() - before
        fits = {*names} <= sizeless if not error else re.search(rf"\b({'|'.join(names)})\b", error)
        if not fits or seconds > SECONDS:
            yield f"{name}, {names}: {seconds:.1f} s, {error}"


@pytest.mark.parametrize("name", ["Transformer", "BERT", "Speech", "DeBERTa"])
def test_sizes_that_are_only_together_too_large(name, folders, tmp_path):
    """Each could be in such weights; all in each block, not."""
    blocks = [x for x in fields_of(type(MODELS[name]().config)) if x.endswith("layers")]
    sizes = dict(d_ff=4096, shared_blocks=False) if name == "BERT" else dict(d_ff=4096)
    path = changed(
        folders[name], tmp_path / name, d_model=256, **sizes, **dict.fromkeys(blocks, 60)
    )
    with pytest.raises(ValueError, match="much more than the weights beside it hold: an array"):
        read_weights(path, {})


@pytest.mark.parametrize("name", MODELS)
def test_what_is_counted_is_what_is_made(name):
    """All but biases and the scales of norms."""
    model = MODELS[name]()
    large = sum(math.prod(x.shape) for x in model.weights if len(x.shape) > 1)
    with pytest.raises(ValueError, match="much more"), skip_init(large - 1):
        type(model).from_config(model.get_config())


def test_weights_that_claim_more_than_they_hold(folders, tmp_path):
    """HDF5 has no bytes for what was never written."""
    path = changed(folders["GPT"], tmp_path / "claimed")
    content = io.BytesIO()
    with h5py.File(content, "w") as file:
        file.create_dataset("weight/vars/0", (ENORMOUS, 16), "float32", chunks=(1024, 16))
    with zipfile.ZipFile(folders["GPT"] / MODEL) as old, zipfile.ZipFile(path / MODEL, "w") as new:
        new.writestr(CONFIG, old.read(CONFIG))
        new.writestr("model.weights.h5", content.getvalue())
    with pytest.raises(ValueError, match="bytes of its weights must be at most .*, got 64000000"):
        read_weights(path, {})


def test_an_adapter_is_measured_by_its_base(folders, tmp_path):
    model = tiny("bert")
    adapter = Adapter({}, {}, None, 1, 1.0)
    config = dataclasses.replace(model.config, max_length=ENORMOUS)
    with pytest.raises(ValueError, match="max_length must be at most"):
        adapter.on(model, config)
