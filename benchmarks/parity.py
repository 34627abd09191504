"""Does one saved translator say the same everywhere? Each backend, and the SavedModel.

    python -m benchmarks.parity saved_models/multi30k --data-folder multi30k

Prints the greatest difference of logits between backends, and how many of the translations of
test sentences are the same, under each backend and from the SavedModel in a process without
keras_transformer.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from keras_transformer.data.corpora import load_corpus
from keras_transformer.export import saved_model

BACKENDS = ("tensorflow", "jax", "torch")

UNDER_A_BACKEND = """
import json, sys
from keras_transformer import Translator
import keras, numpy as np
folder, pairs, out = sys.argv[1], json.load(open(sys.argv[2])), sys.argv[3]
translator = Translator.load(folder)
sources, targets = map(list, zip(*pairs))
def padded(rows):
    ids = np.zeros((len(rows), max(map(len, rows))), "int32")
    for i, row in enumerate(rows):
        ids[i, : len(row)] = row
    return ids
source_ids = padded(translator.tokenizer.encode_source(sources))
labels = padded(translator.tokenizer.encode_target(targets))
first = np.full((len(labels), 1), translator.tokenizer.bos_id, "int32")
target_ids = np.concatenate([first, labels[:, :-1]], axis=1)
inputs = {"source_ids": source_ids, "target_ids": target_ids}
np.save(out, translator.model.predict(inputs, batch_size=50, verbose=0))
print(json.dumps(translator.translate(sources, beam_size=4)))
"""

FROM_THE_SAVED_MODEL = """
import json, sys
import tensorflow as tf
import tensorflow_text
loaded = tf.saved_model.load(sys.argv[1])
sources = [source for source, _ in json.load(open(sys.argv[2]))]
lines = []
for start in range(0, len(sources), 50):
    texts = tf.constant(sources[start : start + 50])
    lines += [x.decode() for x in loaded.translate(texts)["translations"].numpy()]
assert "keras_transformer" not in sys.modules
print(json.dumps(lines))
"""


def run(program: str, *arguments: str, **environment: str) -> list[str]:
    """The translations that a program prints in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Compares all with the first backend."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="a saved translator")
    parser.add_argument("--corpus", default="multi30k")
    parser.add_argument("--data-folder", type=Path)
    parser.add_argument("--sentences", type=int, default=200)
    options = parser.parse_args()
    tests = load_corpus(options.corpus, options.data_folder, train_size=1).tests
    pairs = next(iter(tests.values()))[: options.sentences]
    with tempfile.TemporaryDirectory() as room:
        texts = Path(room, "pairs.json")
        texts.write_text(json.dumps(pairs), "utf-8")
        logits, lines = {}, {}
        for backend in BACKENDS:
            out = str(Path(room, f"{backend}.npy"))
            arguments = str(options.folder.resolve()), str(texts), out
            lines[backend] = run(UNDER_A_BACKEND, *arguments, KERAS_BACKEND=backend)
            logits[backend] = np.load(out)
        path = saved_model(options.folder, Path(room, "exported"))
        lines["SavedModel"] = run(FROM_THE_SAVED_MODEL, str(path), str(texts))
    first = BACKENDS[0]
    print(f"| compared with {first} | greatest difference of logits | same translations |")
    print("| --- | --- | --- |")
    for name in lines:
        same = sum(a == b for a, b in zip(lines[name], lines[first], strict=True))
        difference = f"{np.abs(logits[name] - logits[first]).max():.1e}" if name in logits else ""
        print(f"| {name} | {difference} | {same} of {len(pairs)} |")


if __name__ == "__main__":
    main()
