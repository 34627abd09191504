"""Kinds of saves for the fault tests, each with an old and a new state and a reader."""

import dataclasses
import functools
import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from safetensors.numpy import load_file

from keras_transformer import export
from keras_transformer.corpora.results import Results
from keras_transformer.corpora.shards import Shard
from keras_transformer.evaluation.assess import read_metrics, save_metrics
from keras_transformer.export.graph_folder import write_folder
from keras_transformer.export.transformers_js import transformers_js
from keras_transformer.export.web_runtime import BINARY
from keras_transformer.models import enable_lora
from keras_transformer.saved.adapter_sets import merge
from keras_transformer.system.files import complete
from keras_transformer.text import SentencePieceTokenizer, load_tokenizer
from keras_transformer.text.lexical_shortlist import Shortlist
from keras_transformer.translate.translator import Translator
from keras_transformer.weights import read_weights, write_weights
from keras_transformer.weights.state import (
    OPTIMIZER,
    STATE,
    WEIGHTS,
    latest,
    read_state,
    write_state,
)
from tests.small_translator import WORDS, make
from tests.weights.test_state import new_model

SHARD = Shard(12, 0, 2, (("a.txt", ("text",), 0),))


@dataclasses.dataclass(frozen=True)
class Save:
    """A kind of save.

    Args:
        old, new: Functions that save the old and the new state into a folder.
        state: Function that reads a folder and returns a value that tells the states apart.
    """

    old: Callable[[Path], Any]
    new: Callable[[Path], Any]
    state: Callable[[Path], Any]


def of_model(translator):
    """Everything of a translator that decides its translations."""
    weights = b"".join(np.asarray(x).tobytes() for x in translator.model.get_weights())
    own = translator.shortlist.tokenizer if translator.shortlist else None
    return translator.tokenizer.fingerprint(), hashlib.sha256(weights).hexdigest(), own


def tree(folder):
    """Hashes of the files below a folder, after what a reader of it completes."""
    complete(folder)
    files = sorted(x for x in folder.rglob("*") if x.is_file())
    return [(x.relative_to(folder), hashlib.sha256(content_of(x)).digest()) for x in files]


def content_of(path):
    """The bytes of a file; of safetensors the values, because the order of metadata is random."""
    if path.suffix != ".safetensors":
        return path.read_bytes()
    return b"".join(name.encode() + x.tobytes() for name, x in sorted(load_file(path).items()))


def elsewhere(module, task, backend):
    """Stands in for `run_elsewhere`, whose process takes seconds: files that tell its folder."""
    place = Path(task["path"])
    (place / "variables").mkdir(parents=True)
    for name in ("graph.pb", "variables/values"):
        (place / name).write_text(task["folder"] * 100)


def exported_elsewhere(to, start):
    """Return an export whose other process, which the function `start` starts, is `elsewhere`."""

    def export_to(*arguments, **options):
        with mock.patch.object(sys.modules[start.__module__], "run_elsewhere", elsewhere):
            return to(*arguments, **options)

    return export_to


def exported_page(folder, out, **options):
    """Export a page; its runtime, which npm would fetch, is a small file."""
    files = dict.fromkeys((BINARY, "LICENSE"), b"runtime")
    with mock.patch.object(sys.modules[export.web.__module__], "runtime_files", lambda _: files):
        return exported_elsewhere(export.web, write_folder)(folder, out, **options)


def adapters(translator, folder):
    """Save the translator with two adapters of it, "law" and "sport"."""
    translator.save(folder / "base")
    for seed, name in enumerate(("law", "sport")):
        one = Translator.load(folder / "base")
        enable_lora(one.model, 2)
        rng = np.random.default_rng(seed)
        for weight in one.model.trainable_weights:
            weight.assign(rng.normal(size=weight.shape))
        one.save(folder / name, base=folder / "base")


def write_state_of(model, step):
    def write(out):
        state = {"run": {}, "history": [], "step": step}
        write_state(out / "unfinished", model, state, metrics=True)

    return write


def state_of(out):
    """Return the step and hashes of a folder's newest training state, and whether it is whole."""
    found = latest(out)
    arrays = [read_weights(found / name) for name in (WEIGHTS, OPTIMIZER)]
    kept = [hashlib.sha256(x.tobytes()).digest() for one in arrays for x in one.values()]
    return read_state(found)["step"], kept, (found / STATE).is_file()


def write_shard(lines):
    return lambda out: Results(out, ".txt", "run").write(SHARD, lines)


def shard_of(out):
    """Return the lines of the shard; None if it is not done and so will be done again."""
    results = Results(out, ".txt", "run")
    return results.path(SHARD).read_text() if results.is_done(SHARD) else None


def saves(translator, folder):
    """Return the kinds of saves by name; `folder` is for what they read."""
    texts = [" ".join(WORDS), "ten one"]
    tokenizer = SentencePieceTokenizer.train(texts, texts, vocab_size=56, byte_fallback=False)
    same, other = make(translator.tokenizer, seed=4), make(tokenizer, seed=3)
    candidates = np.tile(np.int32([4, 5]), (tokenizer.source_vocab_size, 1))
    other.shortlist = Shortlist(candidates, np.int32([6]), tokenizer.fingerprint())
    for name, one in (("old", same), ("new", other)):
        one.save(folder / name)
    adapters(same, folder)
    models = {1: new_model(0), 2: new_model(1)}

    def translators(one, two):
        return Save(one.save, two.save, lambda out: of_model(Translator.load(out)))

    def exported(to):
        def one(name):
            return lambda out: to(folder / name, out / "exported", overwrite=True)

        return Save(one("old"), one("new"), lambda out: tree(out / "exported"))

    def merged(name):
        return lambda out: merge(folder / name, out / "merged", overwrite=True)

    saved_model = export.saved_model
    javascript = functools.partial(export.onnx, layout="transformers-js")
    return {
        "translator": translators(same, other),
        "translator, same tokenizer": translators(translator, same),
        "tokenizer": Save(
            translator.tokenizer.save, tokenizer.save, lambda out: load_tokenizer(out).fingerprint()
        ),
        "training state": Save(
            write_state_of(models[1], 1), write_state_of(models[2], 2), state_of
        ),
        "weights": Save(
            lambda out: write_weights(out / "x.safetensors", models[1]),
            lambda out: write_weights(out / "x.safetensors", models[2]),
            lambda out: [x.tobytes() for x in read_weights(out / "x.safetensors").values()],
        ),
        "metrics": Save(
            lambda out: save_metrics(out, "test", {"bleu": 1.0}),
            lambda out: save_metrics(out, "test", {"bleu": 2.0, "texts": ["ä"] * 2000}),
            lambda out: json.dumps(read_metrics(out)),
        ),
        "export to CTranslate2": exported(export.ctranslate2),
        "export to Hugging Face": exported(export.hugging_face),
        "export to ONNX": exported(exported_elsewhere(export.onnx, write_folder)),
        "export to transformers.js": exported(exported_elsewhere(javascript, transformers_js)),
        "export to SavedModel": exported(exported_elsewhere(saved_model, saved_model)),
        "export to a page": exported(exported_page),
        "merged adapter": Save(
            merged("law"),
            merged("sport"),
            lambda out: of_model(Translator.load(out / "merged")),
        ),
        "shard of a corpus": Save(lambda out: None, write_shard(["eins", "zwei" * 2000]), shard_of),
    }


NAMES = (
    "translator",
    "translator, same tokenizer",
    "tokenizer",
    "training state",
    "weights",
    "metrics",
    "export to CTranslate2",
    "export to Hugging Face",
    "export to ONNX",
    "export to transformers.js",
    "export to SavedModel",
    "export to a page",
    "merged adapter",
    "shard of a corpus",
)
