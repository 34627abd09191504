"""Preferences on translation: DPO and CPO against as many further steps of ordinary training.

    python -m benchmarks.preferences FOLDER ROOM --data DATA [--sources 8000] [--samples 8]
        [--rates 2e-5 1e-4 5e-4] [--seeds 0 1 2] [--save]

FOLDER is a translator trained on Multi30k. It samples translations of training sources; of each
source, the sample with the highest chrF to its reference is preferred to that with the lowest. The
translator is tuned to these pairs with each loss; "further steps" trains on the same sources and
their references, with as many steps. Each has the learning rate that gives the highest chrF on the
validation set with the first seed. BLEU and chrF are those with beam search. ROOM keeps the pairs
and the runs: the same command does only what is missing.
"""

from __future__ import annotations

import argparse
import functools
import json
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import contest

TESTS = ("test_2016_flickr", "test_2017_flickr")
GAP = 5.0  # least difference of chrF between the two translations of a pair
VALIDATION = ("val",)
LOSSES = {"DPO": "sigmoid", "CPO": "cpo"}
SAMPLING = dict(temperature=0.7)


def lines(path: Path) -> list[str]:
    """Return the lines of a compressed text file."""
    import gzip

    return gzip.decompress(path.read_bytes()).decode().split("\n")[:-1]


def preferences(folder: Path, data: Path, path: Path, sources: int, samples: int) -> None:
    """Write pairs of the translator's own samples, ranked by chrF to the reference."""
    import numpy as np
    from sacrebleu.metrics import CHRF

    import keras_transformer as kt

    translator, score = kt.Translator.load(folder), CHRF()
    sides = [lines(data / f"multi30k/train.{code}.gz") for code in ("en", "de")]
    chosen = np.random.default_rng(0).permutation(len(sides[0]))[:sources]
    texts, references = ([side[i] for i in chosen] for side in sides)
    drawn = [translator.sample(texts, seed=seed, **SAMPLING) for seed in range(samples)]
    pairs = []
    for i, (text, reference) in enumerate(zip(texts, references, strict=True)):
        chrf = {sample[i]: score.sentence_score(sample[i], [reference]).score for sample in drawn}
        best, worst = max(chrf, key=chrf.get), min(chrf, key=chrf.get)
        if worst.strip() and chrf[best] - chrf[worst] >= GAP:
            pairs.append(dict(prompt=text, chosen=best, rejected=worst, reference=reference))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(x) + "\n" for x in pairs), "utf-8")


def further_steps(
    folder: Path, pairs: list[dict], output: Path, rate: float, steps: int, seed: int
) -> None:
    """Train on the sources and references of the pairs, with as many steps."""
    import dataclasses

    import keras

    import keras_transformer as kt
    from keras_transformer.data.pair_batches import TokenBatches

    start = kt.Translator.load(folder)
    keras.utils.set_random_seed(seed)
    model = kt.Transformer(dataclasses.replace(start.model.config, dropout=0.0))
    model.set_weights(start.model.get_weights())
    schedule = kt.WarmupSchedule(rate, max(1, steps // 10), steps + 1)
    model.compile(kt.adam(schedule, global_clipnorm=1.0), kt.LabelSmoothedCrossentropy(0.1))
    texts = [(x["prompt"], x["reference"]) for x in pairs]
    sizes = dict(tokens_per_batch=2048, max_length=start.model.config.max_length, seed=seed)
    batches = TokenBatches(texts, start.tokenizer, **sizes)
    model.fit(batches.dataset(), steps_per_epoch=steps, epochs=1, verbose=0)
    kt.Translator(model, start.tokenizer, start.source_language, start.target_language).save(output)


def scores(folder: Path, data: Path, tests: Sequence[str] = TESTS) -> list[float]:
    """Return BLEU and chrF of each test set."""
    import keras_transformer as kt
    from keras_transformer.evaluation.scores import evaluate

    translator, numbers = kt.Translator.load(folder), []
    for test in tests:
        sources, references = (lines(data / f"multi30k/{test}.{x}.gz") for x in ("en", "de"))
        measured = evaluate(translator.translate(sources), references)
        numbers += [measured["bleu"], measured["chrf"]]
    return numbers


def tuned(given: argparse.Namespace, name: str, rate: float, seed: int, steps: int) -> Path:
    """Tune the translator in one way, unless that is done already; return its folder."""
    from keras_transformer.training.preference_tuning import train

    output = given.room / f"{name.replace(' ', '-').lower()}-{rate}-{seed}"
    path = given.room / "pairs.jsonl"
    if (output / "config.json").exists():
        return output
    if name in LOSSES:
        options = dict(loss=LOSSES[name], peak_learning_rate=rate, seed=seed, warmup_steps=10)
        train(train_file=path, output=output, start_from=given.folder, **options)
    else:
        pairs = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        further_steps(given.folder, pairs, output, rate, steps, seed)
    return output


def kept(path: Path, make: Callable[[], list[float]]) -> list[float]:
    """Return the content of a JSON file; if it is missing, compute and write it first."""
    if not path.exists():
        path.write_text(json.dumps(make()))
    return json.loads(path.read_text())


def steps_of(path: Path, translator: Any, tokens_per_batch: int) -> int:
    """Return the number of batches that the preferences of a file make."""
    from keras_transformer.training.preference_tuning import batches

    return len(batches(translator, path, tokens_per_batch=tokens_per_batch))


def main() -> None:
    """Sample, tune, measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("room", type=Path)
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--sources", type=int, default=8000)
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--rates", type=float, nargs="+", default=[2e-5, 1e-4, 5e-4])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--save", action="store_true", help="write the table to results/")
    options = parser.parse_args()
    import keras_transformer as kt

    path = options.room / "pairs.jsonl"
    if not path.exists():
        preferences(options.folder, options.data, path, options.sources, options.samples)
    steps = steps_of(path, kt.Translator.load(options.folder), 4096)
    before = [scores(options.folder, options.data, x) for x in (VALIDATION, TESTS)]
    rows = [("before", "", *(f"{x:.2f}" for values in before for x in values))]
    for name in (*LOSSES, "further steps"):
        validated = {}
        for rate in options.rates:
            output = tuned(options, name, rate, options.seeds[0], steps)
            find = functools.partial(scores, output, options.data, VALIDATION)
            validated[rate] = kept(output / "validation.json", find)
            print(name, rate, validated[rate], flush=True)
        rate = max(validated, key=lambda x: validated[x][1])
        seed_scores = []
        for seed in options.seeds:
            output = tuned(options, name, rate, seed, steps)
            find = functools.partial(scores, output, options.data)
            seed_scores.append(kept(output / "scores.json", find))
            print(name, rate, seed, seed_scores[-1], flush=True)
        cells = [f"{x:.2f}" for x in validated[rate]]
        for column in zip(*seed_scores, strict=True):
            cells.append(f"{statistics.mean(column):.2f} ({min(column):.2f} to {max(column):.2f})")
        rows.append((name, f"{rate:g}", *cells))
    names = [test.removesuffix("_flickr").removeprefix("test_") for test in (*VALIDATION, *TESTS)]
    columns = ("", "learning rate", *(f"{x} {test}" for test in names for x in ("BLEU", "chrF")))
    pairs = len(path.read_text("utf-8").splitlines())
    parts = [
        contest.table(columns, rows),
        f"{pairs:,} pairs of {options.sources:,} sources, {options.samples} samples each; {steps} "
        f"steps; {len(options.seeds)} seeds: mean, least and greatest. The learning rate is the "
        f"one of {', '.join(f'{x:g}' for x in options.rates)} with the highest chrF on val.",
    ]
    contest.report("preferences", "Preferences on translation", parts, options.save)


if __name__ == "__main__":
    main()
