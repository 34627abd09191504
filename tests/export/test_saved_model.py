"""The SavedModel says what the Translator says, in a process that knows TensorFlow only."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

from keras_transformer.config import TransformerConfig
from keras_transformer.decoding import IMPOSSIBLE
from keras_transformer.export import saved_model
from keras_transformer.inference.translator import Translator
from keras_transformer.models import Transformer
from keras_transformer.text import SentencePieceTokenizer

pytest.importorskip("tensorflow_text")

NAMES = ["plain", "jit"]

# No value is the default, so that an option that is not passed on is seen.
OPTIONS = dict(beam_size=3, length_penalty=1.0, max_extra_length=6)
MAX_LENGTH = 32

SUBJECTS = ["the old man", "a small child", "the queen", "my neighbour", "the black cat"]
VERBS = ["sees", "hears", "loves", "follows"]
OBJECTS = ["the dog", "a red apple", "the sea at night", "two birds"]
ENGLISH = [f"{s} {v} {o}" for s in SUBJECTS for v in VERBS for o in OBJECTS]
MADE_UP = [" ".join(word[::-1] + "ö" for word in text.split()) for text in ENGLISH]

BATCHES = {
    "many": [*ENGLISH[::9], "Ärger, naïve café: ½ ﬁne 😀!", "日本語", "e\u0301 \u200b\ufeff"],
    "one": ["the queen follows the sea at night"],
    "none": [],
    "blank": ["", "   ", "\t\u00a0\n", "\u200b"],
    "mixed": ["", "the", "a " * 200, "</s> <s> <pad>", "a\nb\x00c", "😀" * 60, " "],
}
SOURCES = ["the old man sees the dog", "", "my neighbour", "日本 ½"]
TARGETS = ["ehtö dloö namö seesö", "ehtö", "", "ö 😀"]

# What a user's process does; it reads a task from stdin and writes its answers to a file.
CLIENT = """
import json, os, sys
import tensorflow as tf
import tensorflow_text
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from tensorflow.core.framework import tensor_pb2
from tensorflow.core.protobuf import saved_model_pb2

task = json.load(sys.stdin)

def strings(texts):
    return tf.constant(texts, tf.string, shape=[len(texts)])

def plain(tensors):
    text = lambda value: value.decode() if isinstance(value, bytes) else [text(v) for v in value]
    return {
        name: text(x.numpy().tolist()) if x.dtype == tf.string else x.numpy().tolist()
        for name, x in tensors.items()
    }

def attempt(function, *arguments):
    try:
        return plain(function(*arguments))
    except tf.errors.InvalidArgumentError as error:
        return str(error)

def requests(path):
    # prediction_log.proto, predict.proto and model.proto, as far as a warm-up needs them
    file = descriptor_pb2.FileDescriptorProto(name="log.proto", package="p", syntax="proto3")
    for message, fields in {
        "PredictionLog": [("predict_log", 6, "PredictLog")],
        "PredictLog": [("request", 1, "PredictRequest")],
        "PredictRequest": [("model_spec", 1, "ModelSpec"), ("inputs", 2, "Input")],
        "ModelSpec": [("name", 1, str), ("signature_name", 3, str)],
        "Input": [("key", 1, str), ("value", 2, bytes)],
    }.items():
        message = file.message_type.add(name=message)
        for name, number, kind in fields:
            field = message.field.add(name=name, number=number, label=3 if kind == "Input" else 1)
            field.type = {str: 9, bytes: 12}.get(kind, 11)
            if field.type == 11:
                field.type_name = ".p." + kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    log = message_factory.GetMessageClass(pool.FindMessageTypeByName("p.PredictionLog"))
    for record in tf.data.TFRecordDataset(path):
        message = log.FromString(record.numpy())
        assert message.SerializeToString() == record.numpy(), "not as long as it says"
        message.DiscardUnknownFields()
        assert message.SerializeToString() == record.numpy(), "unknown fields"
        yield message.predict_log.request

def warm_up(loaded, path):
    found = []
    for request in requests(path):
        signature = loaded.signatures[request.model_spec.signature_name]
        inputs = {}
        for named in request.inputs:
            tensor = tensor_pb2.TensorProto.FromString(named.value)
            inputs[named.key] = tf.constant(tf.make_ndarray(tensor))
        answer = plain(signature(**inputs))
        texts = [text.decode() for text in inputs["texts"].numpy()]
        found.append([request.model_spec.name, texts, answer["translations"]])
    return found

def devices(path):
    # Only the two functions that write and read the file of weights may name a device.
    with open(os.path.join(path, "saved_model.pb"), "rb") as file:
        (graph,) = saved_model_pb2.SavedModel.FromString(file.read()).meta_graphs
    functions = graph.graph_def.library.function
    return sorted({
        node.device
        for function in functions
        if "_traced_" not in function.signature.name
        for node in function.node_def
    })

def as_serving_does(path, texts):
    with tf.compat.v1.Session(graph=tf.Graph()) as session:
        graph = tf.compat.v1.saved_model.load(session, ["serve"], path)
        signature = graph.signature_def["serving_default"]
        texts = {signature.inputs["texts"].name: texts}
        translations = session.run(signature.outputs["translations"].name, texts)
        return [translation.decode() for translation in translations]

answers = {}
models = {name: tf.saved_model.load(path) for name, path in task["paths"].items()}
for name, path in task["paths"].items():
    loaded = models[name]
    answers[name] = answer = {"translate": {}, "serving_default": {}, "nbest": {}}
    for batch in task["batches"][name]:
        texts = strings(task["texts"][batch])
        answer["translate"][batch] = plain(loaded.translate(texts))["translations"]
        answer["nbest"][batch] = plain(loaded.nbest(texts))
        served = loaded.signatures["serving_default"](texts=texts)
        answer["serving_default"][batch] = plain(served)["translations"]
    answer["score"] = plain(loaded.score(strings(task["sources"]), strings(task["targets"])))
    answer["signatures"] = sorted(loaded.signatures)
    answer["devices"] = devices(path)
    if name == "plain":
        warm_up_file = os.path.join(path, "assets.extra", "tf_serving_warmup_requests")
        answer["warm_up"] = warm_up(loaded, warm_up_file)
        answer["as_serving"] = as_serving_does(path, task["texts"]["many"])
        answer["no_scores"] = plain(loaded.score(strings([]), strings([])))
        answer["too_long"] = attempt(loaded.score, strings(["a"] * 2), strings(["b", "b " * 99]))
        answer["not_as_many"] = attempt(loaded.score, strings(["a"] * 2), strings(["b"]))
answers["modules"] = sorted(sys.modules)
with open(task["answers"], "w", encoding="utf-8") as file:
    json.dump(answers, file)
"""


@pytest.fixture(scope="module")
def build(randomize, tmp_path_factory):
    def save(shared):
        # With bytes, which all vocabularies have at the same ids, a swap could go unseen.
        tokenizer = SentencePieceTokenizer.train(
            ENGLISH, MADE_UP, vocab_size=320, shared=shared, byte_fallback=shared
        )
        config = TransformerConfig(
            tokenizer.source_vocab_size,
            tokenizer.target_vocab_size,
            d_model=16,
            d_ff=32,
            num_heads=2,
            num_encoder_layers=1,
            num_decoder_layers=1,
            max_length=MAX_LENGTH,
            share_embeddings=shared,
            eos_id=3 if shared else (3, 91),
        )
        model = randomize(Transformer(config), 3.0)
        folder = tmp_path_factory.mktemp("saved") / "translator"
        Translator(model, tokenizer).save(folder)
        return folder

    return save


@pytest.fixture(scope="module")
def folders(build):
    """Saved translators: with two vocabularies, exported plainly, and with one, by XLA."""
    return {name: build(shared=name == "jit") for name in NAMES}


@pytest.fixture(scope="module")
def translators(folders):
    return {name: Translator.load(folder) for name, folder in folders.items()}


@pytest.fixture(scope="module")
def exported(folders, tmp_path_factory):
    out = tmp_path_factory.mktemp("serving")
    changes = {"plain": dict(version=7), "jit": dict(jit_compile=True)}
    return {
        name: saved_model(folders[name], out / name, **changes[name], **OPTIONS) for name in NAMES
    }


@pytest.fixture(scope="module")
def answers(exported, tmp_path_factory):
    folder = tmp_path_factory.mktemp("client")
    task = dict(
        paths={name: str(path) for name, path in exported.items()},
        texts=BATCHES,
        # XLA takes seconds a shape; this batch has both short and long texts.
        batches={"plain": list(BATCHES), "jit": ["mixed"]},
        sources=SOURCES,
        targets=TARGETS,
        answers=str(folder / "answers.json"),
    )
    environment = {k: v for k, v in os.environ.items() if k not in ("KERAS_BACKEND", "PYTHONPATH")}
    process = subprocess.run(
        [sys.executable, "-c", CLIENT],
        input=json.dumps(task),
        cwd=folder,
        env={**environment, "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr
    return json.loads((folder / "answers.json").read_text("utf-8"))


def cases():
    return [("plain", batch) for batch in BATCHES] + [(name, "mixed") for name in NAMES[1:]]


def test_is_laid_out_for_tensorflow_serving(exported):
    path = exported["plain"]
    assert (path.parent.name, path.name) == ("plain", "7")
    assert (path / "saved_model.pb").is_file()
    assert (path / "variables" / "variables.index").is_file()
    assert os.listdir(path.parent) == ["7"]


def test_needs_nothing_of_ours(answers):
    assert "tensorflow_text" in answers["modules"]
    assert not [name for name in answers["modules"] if "keras_transformer" in name]


def test_has_the_four_signatures(answers):
    expected = ["nbest", "score", "serving_default", "translate"]
    assert all(answers[name]["signatures"] == expected for name in NAMES)


@pytest.mark.filterwarnings("ignore:texts must have at most")
@pytest.mark.parametrize(("name", "batch"), cases())
def test_translates_as_the_translator(translators, answers, name, batch):
    expected = translators[name].translate(BATCHES[batch], **OPTIONS)
    assert answers[name]["translate"][batch] == expected
    assert answers[name]["serving_default"][batch] == expected
    if batch == "many":
        assert len(set(expected)) > len(expected) / 2, "the model does not look at its source"


@pytest.mark.filterwarnings("ignore:texts must have at most")
@pytest.mark.parametrize(("name", "batch"), cases())
def test_nbest_as_the_translator(translators, answers, name, batch):
    expected = translators[name].nbest(BATCHES[batch], **OPTIONS)
    found = answers[name]["nbest"][batch]
    rows = zip(found["translations"], found["scores"], expected, strict=True)
    for texts, scores, hypotheses in rows:
        missing = OPTIONS["beam_size"] - len(hypotheses)
        assert texts == [hypothesis.text for hypothesis in hypotheses] + [""] * missing
        wanted = [hypothesis.score for hypothesis in hypotheses] + [IMPOSSIBLE] * missing
        np.testing.assert_allclose(scores, wanted, rtol=1e-4, atol=1e-4)


def test_translates_in_a_session_as_serving_has_one(translators, answers):
    expected = translators["plain"].translate(BATCHES["many"], **OPTIONS)
    assert answers["plain"]["as_serving"] == expected


def test_nothing_but_space_is_nothing(answers):
    assert answers["plain"]["translate"]["blank"] == [""] * 4
    scores = answers["plain"]["nbest"]["blank"]["scores"]
    np.testing.assert_array_equal(scores, [[0.0, IMPOSSIBLE, IMPOSSIBLE]] * 4)


@pytest.mark.parametrize("name", NAMES)
def test_scores_as_the_translator(translators, answers, name):
    expected = translators[name].score(SOURCES, TARGETS)
    np.testing.assert_allclose(answers[name]["score"]["scores"], expected, rtol=1e-4, atol=1e-4)


def test_score_refuses_what_the_translator_refuses(answers):
    assert answers["plain"]["no_scores"] == {"scores": []}
    assert f"targets must have at most {MAX_LENGTH} tokens" in answers["plain"]["too_long"]
    assert "sources and targets must be as many" in answers["plain"]["not_as_many"]


def test_warm_up_requests_are_requests(answers, translators):
    (name, short, _), (_, long, _) = answers["plain"]["warm_up"]
    assert name == "plain"
    lengths = [len(ids) for ids in translators["plain"].tokenizer.encode_source(short + long)]
    assert lengths[0] <= 16 < lengths[1]
    for _, texts, translations in answers["plain"]["warm_up"]:
        assert len(translations) == len(texts) == 1


@pytest.mark.parametrize("name", NAMES)
def test_graph_is_bound_to_no_device(answers, name):
    assert answers[name]["devices"] == [""]


def test_version_is_not_overwritten_unless_asked(folders, tmp_path, monkeypatch):
    path = tmp_path / "name" / "3"
    path.mkdir(parents=True)
    (path / "old").touch()
    with pytest.raises(FileExistsError, match="overwrite=True"):
        saved_model(folders["plain"], tmp_path / "name", version=3)
    assert os.listdir(path) == ["old"]

    def export(module, task, backend):
        Path(task["path"]).mkdir()
        Path(task["path"], "new").touch()

    monkeypatch.setattr(implementation(), "run_elsewhere", export)
    with pytest.raises(FileExistsError, match="3 holds old, which would be lost"):
        saved_model(folders["plain"], tmp_path / "name", version=3, overwrite=True)
    assert os.listdir(path) == ["old"]
    os.rename(path / "old", path / "new")
    saved_model(folders["plain"], tmp_path / "name", version=3, overwrite=True)
    assert os.listdir(path) == ["new"]


def test_failure_is_readable_and_leaves_the_old_version(folders, tmp_path, monkeypatch):
    path = tmp_path / "name" / "1"
    path.mkdir(parents=True)
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'MemoryError: too large' >&2\nexit 3\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(RuntimeError, match=r"(?s)status 3.*MemoryError: too large"):
        saved_model(folders["plain"], tmp_path / "name", overwrite=True)
    assert os.listdir(tmp_path / "name") == ["1"]


def test_refuses_a_folder_without_translator(tmp_path):
    with pytest.raises(ValueError, match=r"is no saved translator: it has no config\.json"):
        saved_model(tmp_path, tmp_path / "name")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("version", [0, -1, 1.5, True, "1", None])
def test_refuses_a_bad_version(folders, tmp_path, version):
    with pytest.raises(ValueError, match="version must be a whole number of at least 1"):
        saved_model(folders["plain"], tmp_path / "name", version=version)


@pytest.mark.parametrize(
    "option", [dict(beam_size=0), dict(length_penalty=-1.0), dict(max_extra_length=0)]
)
def test_refuses_a_bad_option(folders, tmp_path, option):
    (name,) = option
    with pytest.raises(ValueError, match=f"{name} must be"):
        saved_model(folders["plain"], tmp_path / "name", **option)


@pytest.mark.parametrize("missing", ["tensorflow", "tensorflow_text"])
def test_names_the_extra_to_install(folders, tmp_path, monkeypatch, missing):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == missing else find_spec(name)
    )
    with pytest.raises(ImportError, match='needs the extra "tensorflow"'):
        saved_model(folders["plain"], tmp_path / "name")


def test_importing_export_leaves_tensorflow_alone():
    backend = keras.backend.backend()
    if backend == "tensorflow":
        backend = "jax" if importlib.util.find_spec("jax") else "torch"
    code = "import keras_transformer.export, sys; print('tensorflow' in sys.modules)"
    process = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "KERAS_BACKEND": backend},
        capture_output=True,
        text=True,
    )
    assert process.stdout.split() == ["False"], process.stderr


def implementation():
    """The module; as an attribute of its package the name is the function."""
    return sys.modules["keras_transformer.export.saved_model"]
