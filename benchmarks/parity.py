"""Compare the output of one saved translator under each backend and in each export format.

    python -m benchmarks.parity saved_models/multi30k --data-folder multi30k [--save]

Prints the largest logit difference between backends, and the number of test sentences with the same
translation, under each backend and from the SavedModel, CTranslate2, ONNX and Hugging Face exports.
Each export runs in a separate process without keras_transformer. The beam size is 4 and the length
penalty 0, the only value that all of them define alike. The result holds for the given translator:
it is not a claim about other models or families.
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

from benchmarks import contest
from keras_transformer import export
from keras_transformer.data.built_in_corpora import load_corpus

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
print(json.dumps(translator.translate(sources, beam_size=4, length_penalty=0.0)))
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

FROM_CTRANSLATE2 = """
import json, sys
import ctranslate2, sentencepiece
source, target = (
    sentencepiece.SentencePieceProcessor(f"{sys.argv[1]}/{x}.spm") for x in ("source", "target")
)
sources = [source for source, _ in json.load(open(sys.argv[2]))]
tokens = [[*pieces, "</s>"] for pieces in source.encode(sources, out_type=str)]
found = ctranslate2.Translator(sys.argv[1], compute_type=sys.argv[3]).translate_batch(
    tokens, beam_size=4, length_penalty=0.0, min_decoding_length=0, max_batch_size=50
)
print(json.dumps([target.decode_pieces(x.hypotheses[0]) for x in found]))
"""

FROM_ONNX = """
import json, sys
sys.path.insert(0, sys.argv[1])
from translate import GraphTranslator
translator = GraphTranslator(sys.argv[1])
sources = [source for source, _ in json.load(open(sys.argv[2]))]
print(json.dumps([translator.translate(x, beam_size=4, length_penalty=0.0) for x in sources]))
"""

FROM_HUGGING_FACE = """
import json, sys
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer
tokenizer, model = (
    x.from_pretrained(sys.argv[1]) for x in (AutoTokenizer, AutoModelForSeq2SeqLM)
)
sources = [source for source, _ in json.load(open(sys.argv[2]))]
lines = []
for start in range(0, len(sources), 50):
    inputs = tokenizer(sources[start : start + 50], return_tensors="pt", padding=True)
    found = model.generate(**inputs, num_beams=4, length_penalty=0.0, do_sample=False)
    lines += tokenizer.batch_decode(found, skip_special_tokens=True)
print(json.dumps(lines))
"""


def run(program: str, *arguments: str, **environment: str) -> list[str]:
    """Run a program in a separate process and return the translations that it prints."""
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
    """Compare all backends and exports with the first backend and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="a saved translator")
    parser.add_argument("--corpus", default="multi30k")
    parser.add_argument("--data-folder", type=Path)
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--save", action="store_true", help="write the table to results/")
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
        folder = options.folder
        path = export.saved_model(folder, Path(room, "served"), beam_size=4, length_penalty=0.0)
        lines["SavedModel"] = run(FROM_THE_SAVED_MODEL, str(path), str(texts))
        path = str(export.ctranslate2(folder, Path(room, "ctranslate2")))
        lines["CTranslate2"] = run(FROM_CTRANSLATE2, path, str(texts), "float32")
        path = str(export.ctranslate2(folder, Path(room, "int8"), quantization="int8"))
        lines["CTranslate2, int8"] = run(FROM_CTRANSLATE2, path, str(texts), "int8")
        path = str(export.onnx(folder, Path(room, "onnx")))
        lines["ONNX"] = run(FROM_ONNX, path, str(texts))
        path = str(export.hugging_face(folder, Path(room, "hugging_face")))
        lines["Hugging Face"] = run(FROM_HUGGING_FACE, path, str(texts))
    first = BACKENDS[0]
    rows = []
    for name in lines:
        same = sum(a == b for a, b in zip(lines[name], lines[first], strict=True))
        difference = f"{np.abs(logits[name] - logits[first]).max():.1e}" if name in logits else ""
        rows.append([name, difference, f"{same} of {len(pairs)}"])
    header = [f"compared with {first}", "largest logit difference", "same translations"]
    name = f"parity-{options.folder.resolve().name}"
    title = f"Parity: {options.folder.resolve().name}, beam 4"
    contest.report(name, title, [contest.table(header, rows)], options.save)


if __name__ == "__main__":
    main()
