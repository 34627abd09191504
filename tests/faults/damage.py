"""Files to damage: each with a reader, whose value tells whether the damage was seen."""

import contextlib
import dataclasses
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from keras_transformer.callbacks import Checkpoints
from keras_transformer.corpora.manifest import MANIFEST, planned
from keras_transformer.corpora.results import Results
from keras_transformer.data.resumable import write_in_chunks
from keras_transformer.evaluation.assess import read_metrics, save_metrics
from keras_transformer.hub.tensors import Checkpoint
from keras_transformer.text import load_tokenizer
from keras_transformer.text.lexical_shortlist import Shortlist
from keras_transformer.translate.translator import Translator
from keras_transformer.weights import load_weights, read_weights
from keras_transformer.weights.state import (
    OPTIMIZER,
    RANDOM,
    STATE,
    WEIGHTS,
    restore_state,
    write_state,
)
from tests.faults.saves import SHARD, of_model
from tests.weights.test_state import new_model, values


@dataclasses.dataclass(frozen=True)
class Kind:
    """A file that is read.

    Args:
        folder: Folder with the whole file.
        file: Its path inside the folder.
        read: Function from a copy of the folder to a value that tells all contents apart.
        plain: Whether the file is text that people may edit: another value is as if edited.
    """

    folder: Path
    file: str
    read: Callable[[Path], Any]
    plain: bool = False


def digest(arrays):
    return [hashlib.sha256(np.asarray(x).tobytes()).hexdigest() for x in arrays]


def _write(translator, root):
    """Write the files; return the values that identify the run, and the inputs of the job."""
    saved, state, hub = root / "saved", root / "state", root / "hub"
    count = translator.tokenizer.source_vocab_size
    translator.shortlist = Shortlist(
        np.tile(np.int32([4, 5]), (count, 1)), np.int32([6]), translator.tokenizer.fingerprint()
    )
    translator.save(saved)
    save_metrics(saved, "test", {"bleu": 41.5, "texts": ["a text"] * 300})
    model = new_model(0)
    run = {"run": {"seed": 1}, "history": [], "step": 2, "seconds": 1.0}
    write_state(state / "unfinished", model, run, metrics=True)
    jobs = root / "jobs"
    (jobs / "in").mkdir(parents=True)
    (jobs / "in" / "a.txt").write_text("one\ntwo\n")
    sides = [([str(jobs / "in" / "a.txt")], ("text",))]
    planned(jobs / "out", {"method": "x"}, sides, 2)
    Results(jobs / "out", ".txt", "run").write(SHARD, ["eins", "zwei"])
    hub.mkdir()
    (hub / "model.safetensors").write_bytes((state / "unfinished" / WEIGHTS).read_bytes())
    with contextlib.suppress(KeyboardInterrupt):
        write_in_chunks(root / "part" / "x", iter([[1], [2], None]), _two_chunks, {"a": 1})
    return run, sides


def kinds(translator, root):
    """Return the files by name; they are written below the folder `root`."""
    run, sides = _write(translator, root)
    saved, state, jobs = root / "saved", root / "state", root / "jobs"

    def loaded(folder):
        found = Translator.load(folder)
        return *of_model(found), found.source_language, found.target_language

    def shortlist(folder):
        return digest([(x := Shortlist.read(folder, translator.tokenizer)).candidates, x.frequent])

    def resumed(folder):
        Checkpoints(folder, run=run["run"])
        own = new_model(1, trained=False)
        random = restore_state(folder / "unfinished", own)
        return digest([*values(own), *random.values()])

    names = sorted(read_weights(state / "unfinished"))

    def weights(folder):
        own = new_model(1, trained=False)
        load_weights(folder / WEIGHTS, own)
        return digest(own.get_weights())

    def tensors(folder):
        found = Checkpoint(folder)
        if lacking := {*names} - found.names():
            raise ValueError(f"{folder} lacks {lacking}")  # as each family says
        return digest([found.read(name) for name in names])

    def chunks(folder):
        write_in_chunks(folder / "x", [[1], [2], [3]], lambda n, chunk: ["line"] * 200, {"a": 1})
        return (folder / "x").read_text()

    (sentence_piece,) = translator.tokenizer._files()
    texts = {
        "config.json": Kind(saved, "config.json", loaded, plain=True),
        "metrics.json": Kind(saved, "metrics.json", lambda x: json.dumps(read_metrics(x)), True),
        "state.json": Kind(state, f"unfinished/{STATE}", resumed, plain=True),
        "job: manifest": Kind(
            jobs / "out", MANIFEST, lambda x: str(planned(x, {"method": "x"}, sides, 2)), True
        ),
        "job: chunks done": Kind(root / "part", "x.part.json", chunks, plain=True),
    }
    return texts | {
        "model.keras": Kind(saved, "model.keras", loaded),
        "tokenizer.json": Kind(saved, "tokenizer.json", _tokens),
        "SentencePiece model": Kind(
            saved, sentence_piece, lambda x: load_tokenizer(x).fingerprint()
        ),
        "shortlist": Kind(saved, "shortlist.safetensors", shortlist),
        "state: weights": Kind(state, f"unfinished/{WEIGHTS}", resumed),
        "state: optimizer": Kind(state, f"unfinished/{OPTIMIZER}", resumed),
        "state: random": Kind(state, f"unfinished/{RANDOM}", resumed),
        "weights": Kind(state / "unfinished", WEIGHTS, weights),
        "foreign weights": Kind(root / "hub", "model.safetensors", tensors),
        "job: shard": Kind(jobs / "out", f"{SHARD.name}.txt", _shard),
        "job: shard's note": Kind(jobs / "out", f"{SHARD.name}.json", _shard),
    }


def _two_chunks(number, chunk):
    if chunk is None:
        raise KeyboardInterrupt
    return ["line"] * 200


def _tokens(folder):
    return load_tokenizer(folder).fingerprint()


def _shard(folder):
    results = Results(folder, ".txt", "run")
    if not results.is_done(SHARD):
        raise ValueError(f"{results.path(SHARD)} is not done")  # and so done again
    return results.path(SHARD).read_text()


NAMES = (
    "config.json",
    "metrics.json",
    "state.json",
    "job: manifest",
    "job: chunks done",
    "model.keras",
    "tokenizer.json",
    "SentencePiece model",
    "shortlist",
    "state: weights",
    "state: optimizer",
    "state: random",
    "weights",
    "foreign weights",
    "job: shard",
    "job: shard's note",
)
