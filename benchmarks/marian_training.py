"""Beside Marian, the program: a whole training on Multi30k, ours and its own.

    python -m benchmarks.marian_training ROOM [--data-folder multi30k] [--epochs 10]
        [--only ours ours-bfloat16 marian] [--save]

Both train a tiny Transformer (Wu et al. 2021) of 2.6M weights, English to German, on the same
pieces of one joint vocabulary: the same number of updates, with about as many target tokens in
each, dropout 0.3, smoothed labels and a linear warmup. Both are pre-norm: post-norm, with Marian's
usual options, has not learned to translate after so few updates (BLEU 0.5). Our learning rate then
falls to zero, as in the recipe `multi30k`. Marian's falls with the square root of the updates, and
its weights are averaged (`--exponential-smoothing`), as in its own recipes. Each trains on one
thread, one after the other. Scores: beam 4, with each program's own penalty of length (ours 1.0;
Marian's `--normalize 1`). Marian 1.12 does not normalize keys and values of earlier tokens when it
decodes with a pre-norm model, unlike in training. So its model is imported and decoded by ours;
the row "decoded by itself" has Marian's own scores. ROOM keeps what is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import contest, marian_program
from benchmarks.recurrent import kept
from keras_transformer.data.built_in_corpora import load_corpus

CONTESTANTS = {"ours": "float32", "ours-bfloat16": "mixed_bfloat16", "marian": None}
VOCABULARY, TOKENS, RATE, WARMUP, SMOOTHING = 10_000, 4096, 0.004, 300, 0.1
OF_MARIAN = 0.003  # its learning rate


def prepared(data_folder: Path | None) -> tuple[Any, Any, Any]:
    """Return the corpus, the tokenizer and the config of both."""
    import keras_transformer as kt

    corpus = load_corpus("multi30k", data_folder)
    sides = zip(*corpus.train, strict=True)
    tokenizer = kt.SentencePieceTokenizer.train(*sides, vocab_size=VOCABULARY)
    config = kt.TransformerConfig.tiny(tokenizer.target_vocab_size, norm_first=True, max_length=256)
    return corpus, tokenizer, config


def batches_of(corpus: Any, tokenizer: Any) -> Any:
    """Return the batches that ours trains on."""
    from keras_transformer.data.pair_batches import TokenBatches

    options = dict(tokens_per_batch=TOKENS, num_buckets=6, max_length=256, seed=0)
    return TokenBatches(corpus.train, tokenizer, **options)


def ours(corpus: Any, tokenizer: Any, config: Any, epochs: int, precision: str) -> dict[str, Any]:
    """Train our model; return its measures."""
    import keras

    import keras_transformer as kt
    from keras_transformer.training.runs import schedule_for

    keras.utils.set_random_seed(0)
    batches = batches_of(corpus, tokenizer)
    steps = epochs * len(batches)
    model = kt.Transformer(config, precision)
    optimizer = kt.adam(schedule_for(RATE, WARMUP, steps))
    model.compile(optimizer, kt.LabelSmoothedCrossentropy(SMOOTHING))
    begin = time.process_time()
    model.fit(batches.dataset(), steps_per_epoch=steps, verbose=0)
    seconds = time.process_time() - begin
    translator = kt.Translator(model, tokenizer, "en", "de")

    def translate(texts):
        return translator.translate(texts, beam_size=4, length_penalty=1.0)

    return dict(seconds=seconds, updates=steps, epochs=epochs, **scores(corpus, translate))


def marian(room: Path, corpus: Any, tokenizer: Any, config: Any, epochs: int) -> dict[str, Any]:
    """Train Marian; return its measures."""
    import pymarian

    from keras_transformer.pretrained import load_pretrained

    room.mkdir(parents=True, exist_ok=True)
    room = room.resolve()  # Marian runs in it
    files = {name: room / name for name in ("source", "target", "pieces.yml", "model.npz")}
    pieces = tokenizer.pieces_of("target")
    marian_program.write_vocabulary(files["pieces.yml"], pieces)
    sources, targets = ([*side] for side in zip(*corpus.train, strict=True))
    rows = {"source": tokenizer.encode_source(sources), "target": tokenizer.encode_target(targets)}
    for name, ids in rows.items():  # Marian adds EOS, the last of our ids, by itself
        lines = (" ".join(pieces[i] for i in row if i not in _ends(config)) for row in ids)
        files[name].write_text("".join(f"{line}\n" for line in lines), "utf-8")
    updates = epochs * len(batches_of(corpus, tokenizer))
    words = sum(map(len, rows["target"])) * epochs // updates
    command = marian_program.training_command(
        config, files, rows=1000, steps=updates // 2,
        more={
            "mini-batch-words": words, "mini-batch-round-up": "false", "maxi-batch": 100,
            "shuffle": "data", "after": f"{updates}u", "save-freq": f"{updates}u",
            "transformer-dropout": config.dropout, "label-smoothing": SMOOTHING,
            "learn-rate": OF_MARIAN, "lr-warmup": WARMUP, "lr-decay-inv-sqrt": WARMUP,
            "optimizer-params": [0.9, 0.98, 1e-9], "clip-norm": 0, "seed": 1,
            "exponential-smoothing": 5e-3,
        },
    )  # fmt: skip
    begin = _children()
    log = subprocess.run(command, check=True, capture_output=True, text=True, cwd=room)
    seconds = _children() - begin
    last = re.findall(r"Ep\. (\d+) : Up\. (\d+)", log.stderr)[-1]
    (room / "joint.spm").write_bytes(tokenizer.source_model)
    options = {"relative-paths": True, "models": ["model.npz"], "vocabs": ["joint.spm"] * 2}
    options |= {"beam-size": 4, "normalize": 1}
    (room / "model.npz.decoder.yml").write_text(json.dumps(options), "utf-8")
    imported = load_pretrained(room / "model.npz", "en", "de")
    numbers = {piece: number for number, piece in enumerate(pieces)}
    model = pymarian.Translator(
        models=files["model.npz"], vocabs=[files["pieces.yml"]] * 2, cpu_threads=1, beam_size=4,
        normalize=1, mini_batch=32, maxi_batch=100, quiet=True, quiet_translation=True,
    )  # fmt: skip

    def translate(texts):
        rows = tokenizer.encode_source(texts)
        lines = [" ".join(pieces[i] for i in row if i not in _ends(config)) for row in rows]
        outputs = model.translate(lines)
        return tokenizer.decode_target([[numbers[x] for x in row.split()] for row in outputs])

    done = dict(zip(("epochs", "updates"), map(int, last), strict=True))
    return dict(
        seconds=seconds,
        **done,
        **scores(corpus, imported.translate),
        itself=scores(corpus, translate),
    )


def _ends(config):
    return {config.bos_id, *config.eos_ids}


def _children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def scores(corpus: Any, translate: Any) -> dict[str, float]:
    """Return BLEU by test set."""
    import sacrebleu

    bleu = {}
    for name, pairs in corpus.tests.items():
        sources, references = ([*side] for side in zip(*pairs, strict=True))
        bleu[name] = sacrebleu.corpus_bleu(translate(sources), [references]).score
    return bleu


def main(arguments: Sequence[str] | None = None) -> None:
    """Train each, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("room", type=Path, help="keeps what is measured")
    default = Path(os.environ["KT_DATA"]) / "multi30k" if "KT_DATA" in os.environ else None
    parser.add_argument("--data-folder", type=Path, default=default, help="folder of Multi30k")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--only", nargs="+", choices=CONTESTANTS, default=[*CONTESTANTS])
    parser.add_argument("--save", action="store_true", help="write the table to results/")
    options = parser.parse_args(arguments)
    os.environ.update(OMP_NUM_THREADS="1")
    corpus, tokenizer, config = prepared(options.data_folder)
    tokens = sum(map(len, tokenizer.encode_target([target for _, target in corpus.train])))

    def measured(name):
        of_both = corpus, tokenizer, config, options.epochs
        if name == "marian":
            return marian(options.room / "marian", *of_both)
        return ours(*of_both, CONTESTANTS[name])

    rows = []
    for name in options.only:
        x = kept(options.room / f"{name}.json", lambda name=name: measured(name))
        seconds, rate = x["seconds"], tokens * options.epochs / x["seconds"]
        figures = [f"{x[test]:.1f}" for test in corpus.tests]
        rows.append([name, x["updates"], x["epochs"], f"{seconds:,.0f}", f"{rate:,.0f}", *figures])
        if "itself" in x:
            figures = [f"{x['itself'][test]:.1f}" for test in corpus.tests]
            rows.append(["marian, decoded by itself", "", "", "", "", *figures])
    header = ["", "updates", "epochs", "processor s", "target tokens/s", *corpus.tests]
    title = f"Multi30k, tiny, {options.epochs} epochs: ours and Marian's training, one core"
    contest.report("marian-training", title, [contest.table(header, rows)], options.save)


if __name__ == "__main__":
    sys.exit(main())
