"""The Transformer against LSTMs with attention: BLEU, and time per step as sentences get longer.

    python -m benchmarks.recurrent ROOM [--data-folder FOLDER] [--steps 600]
        [--rates 0.003 ...] [--seeds 0 1 2] [--precision mixed_bfloat16] [--lengths 16 32 ...]
        [--save]

Both models have the same number of weights and train for the same optimizer steps on the same
batches of Multi30k, English to German. Of several rates, each takes the one with the lowest
perplexity on the validation set after a quarter of the steps. Seconds are of the processor, because
a shared core runs other work too. ROOM keeps what is measured: the same command does only what is
missing.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import ops

import keras_transformer as kt
from benchmarks import contest
from benchmarks.lstm import AttentionalLSTM, LSTMConfig
from keras_transformer.backend import compiled
from keras_transformer.data.built_in_corpora import Corpus, load_corpus
from keras_transformer.data.pair_batches import TokenBatches
from keras_transformer.decoding import greedy_search
from keras_transformer.evaluation.assess import perplexity
from keras_transformer.evaluation.scores import evaluate
from keras_transformer.search import Search
from keras_transformer.training.runs import schedule_for

VOCABULARY, TOKENS, WARMUP, DROPOUT = 4000, 1024, 100, 0.1
ROWS, ROUNDS = 8, 3  # rows of a batch, and measurements, of the time per step
TEST = "test_2016_flickr"
NAMES = {"transformer": "Transformer", "lstm": "LSTM with attention"}


def model_of(name: str, vocabulary: int, precision: str = "float32", seed: int = 0) -> Any:
    """Return an LSTM or a Transformer; both have about the same number of weights."""
    keras.utils.set_random_seed(seed)
    sizes = dict(dropout=DROPOUT, max_length=2048)
    if name == "lstm":
        return AttentionalLSTM(LSTMConfig(vocabulary, vocabulary, units=194, **sizes), precision)
    config = kt.TransformerConfig.tiny(vocabulary, norm_first=True, **sizes)
    return kt.Transformer(config, precision)


def trained(
    name: str,
    corpus: Corpus,
    tokenizer: kt.Tokenizer,
    precision: str,
    seed: int,
    rate: float,
    steps: int,
) -> tuple[kt.Translator, dict[str, float]]:
    """Train one model; return it with the seconds and the perplexity of the validation set."""
    options = dict(tokens_per_batch=TOKENS, max_length=256, seed=seed)
    batches = TokenBatches(corpus.train, tokenizer, **options)
    model = model_of(name, tokenizer.source_vocab_size, precision, seed)
    optimizer = kt.adam(schedule_for(rate, WARMUP, steps), global_clipnorm=1.0)
    model.compile(optimizer, kt.LabelSmoothedCrossentropy(0.1), metrics=[kt.Perplexity()])
    begin = time.process_time()
    model.fit(batches.dataset(), steps_per_epoch=steps, verbose=0)
    seconds = time.process_time() - begin
    translator = kt.Translator(model, tokenizer, "en", "de")
    value = perplexity(translator, corpus.validation)
    print(
        f"{name}, seed {seed}, rate {rate}, {steps} steps: perplexity {value:.2f}, {seconds:.0f} s",
        flush=True,
    )
    return translator, dict(rate=rate, seconds=seconds, perplexity=value)


def measured(
    name: str, corpus: Corpus, tokenizer: kt.Tokenizer, given: argparse.Namespace, seed: int
) -> dict[str, Any]:
    """Choose a learning rate, train, and translate the test set: whole, and in thirds by length."""
    options, rates = (name, corpus, tokenizer, given.precision, seed), given.rates
    tried = {x: trained(*options, x, given.steps // 4)[1] for x in rates if rates[1:]}
    rate = min(tried, key=lambda x: tried[x]["perplexity"], default=rates[0])
    translator, results = trained(*options, rate, given.steps)
    pairs = sorted(corpus.tests[TEST], key=lambda pair: len(pair[0].split()))
    begin = time.process_time()
    translations = translator.translate([source for source, _ in pairs])
    results["translating"] = time.process_time() - begin
    references = [reference for _, reference in pairs]
    results["bleu"] = [evaluate(translations, references)["bleu"]]
    for part in np.array_split(np.arange(len(pairs)), 3):
        texts, expected = ([side[i] for i in part] for side in (translations, references))
        results["bleu"].append(evaluate(texts, expected)["bleu"])
    edges = [part[-1] for part in np.array_split(np.arange(len(pairs)), 3)]
    words = [len(pairs[i][0].split()) for i in edges]
    return results | dict(parameters=translator.model.count_params(), words=words)


def growth(lengths: list[int]) -> dict[str, list[list[float]]]:
    """Return the fastest training step and greedy search of each model at each length."""
    results: dict[str, list[list[float]]] = {"training": [], "decoding": []}
    models = {name: model_of(name, VOCABULARY) for name in NAMES}
    for model in models.values():
        model.compile(kt.adam(1e-4), kt.LabelSmoothedCrossentropy(0.1))
    for length in lengths:
        ids = np.random.default_rng(0).integers(4, VOCABULARY, (2, ROWS, length), dtype="int32")
        runs: dict[str, list[Callable]] = {"training": [], "decoding": []}
        for model in models.values():
            runs["training"].append(_step(model, *ids))
            runs["decoding"].append(_search(model, ids[0]))
        for task, calls in runs.items():
            seconds = [[_timed(run) for run in calls] for _ in range(ROUNDS + 1)][1:]
            results[task].append(np.min(seconds, axis=0).tolist())
            print(task, length, results[task][-1], flush=True)
    return results


def _step(model, source_ids, target_ids):
    inputs = {"source_ids": source_ids, "target_ids": target_ids}
    return lambda: model.train_on_batch(inputs, target_ids)


def _search(model, source_ids):
    """Return a function that generates as many tokens as the source has."""
    rows, length = source_ids.shape
    search = Search(beam_size=1, length_penalty=0.0, min_length=length)

    def generate(ids):
        limits = ops.full((rows,), length, dtype="int32")
        options = dict(eos_ids=(3,), length=length, max_lengths_B=limits)
        logits, state, step = model.prefill(ids, ids[:, :1], length + 1)
        return greedy_search(step, logits, state, search, **options)[0]

    function = compiled(generate, model)
    return lambda: ops.convert_to_numpy(function(ops.convert_to_tensor(source_ids)))


def _timed(run):
    begin = time.process_time()
    run()
    return time.process_time() - begin


def kept(path: Path, make: Callable[[], Any]) -> Any:
    """Return a stored JSON result; without one, compute and store it."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(make()), "utf-8")
    return json.loads(path.read_text("utf-8"))


def main() -> None:
    """Train, measure, and print two tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("room", type=Path)
    default = Path(os.environ["KT_DATA"]) / "multi30k" if "KT_DATA" in os.environ else None
    parser.add_argument("--data-folder", type=Path, default=default, help="folder of Multi30k")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--rates", type=float, nargs="+", default=[0.003])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--precision", default="float32", help="Keras dtype policy of the training")
    parser.add_argument("--lengths", type=int, nargs="+", default=[16, 32, 64, 128, 256])
    parser.add_argument("--save", action="store_true", help="write the tables to results/")
    options = parser.parse_args()
    times = kept(options.room / "growth.json", lambda: growth(options.lengths))
    corpus = load_corpus("multi30k", options.data_folder)
    sides = zip(*corpus.train, strict=True)
    tokenizer = kt.SentencePieceTokenizer.train(*sides, vocab_size=VOCABULARY)
    rows, edges = [], []
    for name, shown in NAMES.items():
        of_seeds = []
        for seed in options.seeds:
            make = functools.partial(measured, name, corpus, tokenizer, options, seed)
            of_seeds.append(kept(options.room / f"{name}-{seed}.json", make))
        rates = ", ".join(sorted({f"{x['rate']:g}" for x in of_seeds}))
        cells = [f"{of_seeds[0]['parameters']:,}", rates]
        cells += [contest.spread([x[y] for x in of_seeds], 0) for y in ("seconds", "translating")]
        cells.append(contest.spread([x["perplexity"] for x in of_seeds], 2))
        rows.append(
            [
                shown,
                *cells,
                *(contest.spread(x) for x in zip(*(x["bleu"] for x in of_seeds), strict=True)),
            ]
        )
        edges = of_seeds[0]["words"]
    columns = ["", "weights", "learning rate", "training", "translating", "perplexity", "BLEU"]
    columns += [f"up to {edges[0]} words", f"up to {edges[1]}", "longer"]
    grown = []
    for task, shown in {"training": "training step", "decoding": "greedy search"}.items():
        for i, model in enumerate(NAMES.values()):
            grown.append([shown, model, *(f"{1000 * row[i]:,.0f}" for row in times[task])])
    parts = [
        f"Multi30k, English to German: {options.steps:,} steps of {TOKENS:,} tokens a side, "
        f"{options.precision}, vocabulary {VOCABULARY:,}, dropout {DROPOUT}. Of "
        f"{len(options.seeds)} seeds the mean, the least and the greatest. Seconds of the "
        f"processor; perplexity on val; BLEU with a beam of 4 on {TEST}, whole and by the length "
        "of the source.",
        contest.table(columns, rows),
        f"Milliseconds of the processor for {ROWS} pairs by their length in tokens, the best of "
        f"{ROUNDS} rounds:",
        contest.table(["", "", *(f"{length}" for length in options.lengths)], grown),
    ]
    contest.report("recurrent", "The Transformer beside LSTMs with attention", parts, options.save)


if __name__ == "__main__":
    main()
