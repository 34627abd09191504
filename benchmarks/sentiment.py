"""Sentiment, controlled: reward over KL as in Rafailov et al. 2023, section 6.1, on SST-2.

    python -m benchmarks.sentiment ROOM --data DATA [--prompts 2000] [--steps 300] [--save]

The phrases of SST-2 are split by sentence into two halves. A language model learns the first, a
classifier the labels of the second. The model continues prompts of three words; pairs of its
continuations, ranked by the classifier, are its preferences, and DPO tunes it to them with several
values of beta. While it learns, it continues prompts of the test set: measured are the reward, the
classifier's probability of "positive", and the KL divergence from the model at the start, in nats
per text. A second classifier, of the first half's labels, judges the same texts: it was not trained
on the data of the classifier that ranks. Best of n, by the first classifier, is shown for
comparison; its KL is at most log n - (n - 1) / n. ROOM keeps the models: the same command trains
only what is missing.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import contest, machine
from benchmarks.scaling import pyplot

SIZES = dict(num_layers=4, num_heads=4, d_model=256, length=64, rows=32, vocab_size=4000)
BETAS = (0.02, 0.05, 0.1, 0.5)
MEASURED = 6  # points of each curve
WORDS, SAMPLES, NEW_TOKENS = 3, 4, 40
BEST_OF = (2, 4, 8, 16)
LEAST = 4  # words of a phrase that is kept
RATE = 2e-4


def labelled(path: Path) -> list[tuple[str, str]]:
    """Return texts and labels of a file of SST-2."""
    rows = gzip.decompress(path.read_bytes()).decode().splitlines()[1:]
    return [tuple(x.strip() for x in row.split("\t")) for row in rows]


def halves(pairs: Sequence[tuple[str, str]]) -> list[list[tuple[str, str]]]:
    """Split phrases in two so that phrases which share four words in a row are in one half.

    A phrase goes to the half of the longest one with four of its words in a row.
    """
    side, parts = {}, ([], [])
    for text, label in sorted(pairs, key=lambda x: -len(x[0])):
        words = text.split()
        if len(words) < LEAST:
            continue
        grams = [tuple(words[i : i + LEAST]) for i in range(len(words) - LEAST + 1)]
        known = [side[x] for x in grams if x in side]
        chosen = known[0] if known else int(len(parts[0]) > len(parts[1]))
        side.update((x, chosen) for x in grams if x not in side)
        parts[chosen].append((text, label))
    return list(parts)


def models(room: Path, data: Path, steps: int) -> dict[str, Path]:
    """Train what `room` lacks of the language model, the classifier and the judge."""
    from keras_transformer.training import language_model, text_classification

    split = halves(labelled(data / "sst2/train.tsv.gz"))
    room.mkdir(parents=True, exist_ok=True)
    for name, half in zip(("first", "second"), split, strict=True):
        rows = ["sentence\tlabel", *("\t".join(x) for x in half)]
        (room / f"{name}.tsv").write_text("\n".join(rows) + "\n", "utf-8")
    shuffled = np.random.default_rng(0).permutation(len(split[0]))
    texts = [json.dumps({"text": split[0][i][0]}) + "\n" for i in shuffled]
    (room / "texts.jsonl").write_text("".join(texts), "utf-8")
    folders = {name: room / name for name in ("writer", "classifier", "judge")}
    if not (folders["writer"] / "metrics.json").exists():
        run = dict(steps=steps, steps_per_epoch=max(1, steps // 6), dropout=0.1)
        run |= dict(family="llama", pieces="bytes")
        texts = [room / "texts.jsonl"]
        language_model.train(text=texts, output=folders["writer"], **SIZES, **run)
    for name, half in (("classifier", "second"), ("judge", "first")):
        if not (folders[name] / "metrics.json").exists():
            files = [room / f"{half}.tsv", data / "sst2/dev.tsv.gz", data / "sst2/test.tsv.gz"]
            text_classification.train(*files, output=folders[name], epochs=5)
    return folders


class Classifier:
    """The probability that a text is positive, by a model that `training` saved."""

    def __init__(self, folder: Path):
        from keras_transformer.models.encoder_only import EncoderOnly
        from keras_transformer.saved.folder import load_with_tokenizer

        self.model, self.tokenizer = load_with_tokenizer(folder, "encoder", EncoderOnly)

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Return the probabilities (N,) of N texts."""
        config = self.model.config
        ids = self.tokenizer.encode(texts, max_length=config.max_length)
        token_ids = np.full((len(ids), config.max_length), config.pad_id, "int32")
        for row, row_ids in zip(token_ids, ids, strict=True):
            row[: len(row_ids)] = row_ids
        logits = self.model.predict({"token_ids": token_ids}, batch_size=128, verbose=0)
        return 1.0 / (1.0 + np.exp(logits[:, 0] - logits[:, 1]))


def begun(writer: Any, texts: Sequence[str]) -> list[list[int]]:
    """Return the ids of prompts: the first words of texts, each once."""
    long = (text.split() for text in texts)
    prompts = dict.fromkeys(" ".join(x[:WORDS]) for x in long if len(x) > WORDS)
    return writer.tokenizer.encode(list(prompts))


def continued(writer: Any, prompts: list, seed: int) -> list[list[int]]:
    """Sample a continuation of each prompt of ids, with the EOS of those that ended."""
    from keras_transformer.search import Generation

    search = Generation(max_new_tokens=NEW_TOKENS, temperature=1.0)
    replies = writer.generate_ids(prompts, search, seed)
    end = writer.model.config.eos_ids[0]
    return [ids if len(ids) == NEW_TOKENS else [*ids, end] for ids in replies]


def texts_of(writer: Any, prompts: list, answers: list) -> list[str]:
    """Return prompts and continuations as texts."""
    pairs = zip(prompts, answers, strict=True)
    texts = writer.tokenizer.decode([[*prompt, *answer] for prompt, answer in pairs])
    return [re.sub(r"\s+", " ", text).strip() for text in texts]


def batches_of(model: Any, prompts: list, chosen: list, rejected: list, seed: int = 0) -> Any:
    """Return batches of pairs."""
    from keras_transformer.data.preferences import PreferenceBatches

    length = model.config.max_length
    sizes = dict(tokens_per_batch=4096, max_length=length, pad_id=model.config.pad_id, seed=seed)
    return PreferenceBatches(prompts, chosen, rejected, **sizes)


def pairs_of(writer: Any, prompts: list, classifier: Classifier) -> tuple[list, list, list]:
    """Return prompts with the better and the worse of each two sampled continuations."""
    drawn = [continued(writer, prompts, seed) for seed in range(SAMPLES)]
    rewards = [classifier(texts_of(writer, prompts, replies)) for replies in drawn]
    pairs = []
    for at, prompt in enumerate(prompts):
        for i, j in itertools.combinations(range(SAMPLES), 2):
            best, worst = (i, j) if rewards[i][at] > rewards[j][at] else (j, i)
            if drawn[i][at] != drawn[j][at]:
                pairs.append((prompt, drawn[best][at], drawn[worst][at]))
    return tuple(map(list, zip(*pairs, strict=True)))


def tuned(writer: Any, pairs: tuple, beta: float, steps: int, measure: Any) -> list[list[float]]:
    """Tune a copy of the writer's model; return the results of `measure` during the training."""
    import keras

    import keras_transformer as kt
    from keras_transformer.language.preference_inputs import reference_log_probabilities
    from keras_transformer.losses import PreferenceLoss

    keras.utils.set_random_seed(0)
    model = type(writer.model)(writer.model.config)
    model.set_weights(writer.model.get_weights())
    batches = batches_of(model, *pairs)
    batches.reference = reference_log_probabilities(writer.model, batches)
    schedule = kt.WarmupSchedule(RATE, max(1, steps // 10), steps + 1)
    model.compile(kt.adam(schedule, global_clipnorm=1.0), PreferenceLoss("sigmoid", beta))
    measures, each = [], max(1, steps // MEASURED)
    for first in range(0, steps, each):
        data = batches.dataset(first, each)
        model.fit(data, steps_per_epoch=each, epochs=1, verbose=0)
        measures.append(measure(kt.CausalLM(model, writer.tokenizer)))
        print(
            f"beta {beta}, {first + each} steps:", *(f"{x:.3f}" for x in measures[-1]), flush=True
        )
    return measures


def measurement(writer: Any, prompts: list, classifiers: Sequence[Classifier]) -> Any:
    """Return a function that gives KL and mean rewards of a tuned writer's texts."""
    from keras_transformer.language.preference_inputs import reference_log_probabilities

    def measure(other):
        answers = continued(other, prompts, seed=1000)
        batches = batches_of(writer.model, prompts, answers, answers)
        scores = [reference_log_probabilities(x.model, batches) for x in (other, writer)]
        texts = texts_of(writer, prompts, answers)
        kl = float(np.mean((scores[0] - scores[1])[:, 0]))
        return [kl, *(float(np.mean(x(texts))) for x in classifiers)]

    return measure


def best_of(writer: Any, prompts: list, classifiers: Sequence[Classifier]) -> dict[int, list]:
    """Return KL and mean rewards of the best of n continuations, by the first classifier."""
    drawn = [continued(writer, prompts, 2000 + seed) for seed in range(max(BEST_OF))]
    texts = [texts_of(writer, prompts, replies) for replies in drawn]
    rewards_KN = [np.stack([x(group) for group in texts]) for x in classifiers]
    results = {}
    for n in BEST_OF:
        best = rewards_KN[0][:n].argmax(0)
        rewards = [float(np.mean(x[best, np.arange(len(prompts))])) for x in rewards_KN]
        results[n] = [math.log(n) - (n - 1) / n, *rewards]
    return results


def picture(curves: dict[str, list], path: Path) -> None:
    """Plot the rewards over the KL: a panel for each classifier."""
    figure, panels = pyplot().subplots(1, 2, figsize=(8, 3.4), sharey=True)
    for panel, at, title in zip(panels, (1, 2), ("the classifier", "the judge"), strict=True):
        for name, points in curves.items():
            x, y = zip(*((point[0], point[at]) for point in points), strict=True)
            panel.plot(x, y, label=name, marker="o", markersize=3)
        panel.set_xlabel("KL from the start, nats per text")
        panel.set_title(title, fontsize=10)
        panel.grid(color="0.9")
    panels[0].set_ylabel('probability of "positive"')
    panels[0].legend(fontsize=8, frameon=False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Train, tune, measure; print a table and draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("room", type=Path)
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--writer-steps", type=int, default=3000, help="of the language model")
    parser.add_argument("--prompts", type=int, default=2000, help="prompts to learn from")
    parser.add_argument("--steps", type=int, default=300, help="steps of each tuning")
    parser.add_argument("--save", action="store_true", help="write table and picture to results/")
    options = parser.parse_args()
    pyplot()  # raises here if matplotlib is missing, not after the work
    folders = models(options.room, options.data, options.writer_steps)
    import keras_transformer as kt

    writer = kt.CausalLM.load(folders["writer"], "float32")
    classifiers = [Classifier(folders[name]) for name in ("classifier", "judge")]
    lines = (options.room / "first.tsv").read_text("utf-8").splitlines()[1:]
    order = np.random.default_rng(1).permutation(len(lines))
    prompts = begun(writer, [lines[i].split("\t")[0] for i in order])[: options.prompts]
    asked = begun(writer, [text for text, _ in labelled(options.data / "sst2/test.tsv.gz")])
    pairs = pairs_of(writer, prompts, classifiers[0])
    measure = measurement(writer, asked, classifiers)
    start = measure(writer)
    curves = {
        f"DPO, beta {beta}": [start, *tuned(writer, pairs, beta, options.steps, measure)]
        for beta in BETAS
    }
    best = best_of(writer, asked, classifiers)
    curves["best of n"] = [start, *best.values()]
    rows = [("start", *start)] + [
        (name, *points[-1]) for name, points in curves.items() if "DPO" in name
    ]
    rows += [(f"best of {n}", *point) for n, point in best.items()]
    cells = [
        (name, f"{kl:.2f}", f"{reward:.3f}", f"{other:.3f}") for name, kl, reward, other in rows
    ]
    parts = [
        contest.table(("", "KL, nats per text", "reward", "the judge's"), cells),
        f"{len(pairs[0]):,} pairs of {len(prompts):,} prompts, {options.steps} steps. Measured "
        f"on {len(asked)} prompts of the test set, one continuation each.",
    ]
    if options.save:
        picture(curves, machine.results_folder() / "sentiment.svg")
        parts.append("![Reward over KL](sentiment.svg)")
    contest.report("sentiment", "Sentiment, controlled", parts, options.save)


if __name__ == "__main__":
    main()
