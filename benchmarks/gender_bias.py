"""Gender bias of an English-German translator, measured as WinoMT does, and where it comes from.

    python -m benchmarks.gender_bias FOLDER ROOM [--pairs 8000] [--epochs 1] [--seeds 0 1 2]
        [--sentences 1000] [--save]

FOLDER is a translator trained on the built-in grammar, where a doctor is always der Arzt. It
translates sentences whose pronoun tells the gender of a profession (The doctor lost her umbrella);
the German noun shows what it understood. The translator is then trained further on such sentences,
half of which do not tell the gender in English: with as many women as men, and with a stereotype
for each profession that holds in 90 % of the sentences. Test sentences occur in none of these.
ROOM keeps the text and the runs: the same command does only what is missing.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from benchmarks import contest

TRAINED_ON = {  # share of the sentences that follow the stereotype
    "as many women as men": 0.5,
    "stereotype in 90 %": 0.9,
}
TEST_SEED, TRAINING_SEED = 1, 2
BATCH, BUCKETS = 1024, 3  # tokens, shapes
VALIDATION = 50  # pairs


def sentences(count: int) -> list:
    """Return the test sentences: each profession, as often for women as for men."""
    from benchmarks.measures.professions import gendered_pairs

    return gendered_pairs(count, TEST_SEED)


def training_text(count: int, following: float, tested: list, seed: int) -> list[tuple[str, str]]:
    """Return pairs to train on: a share follows the stereotype, and none is a test sentence.

    Half of the sentences tell the gender in English.
    """
    from benchmarks.measures.professions import STEREOTYPES, gendered_pairs

    female = {
        name: following if gender == "female" else 1 - following
        for name, gender in STEREOTYPES.items()
    }
    left_out, pairs = {x.english for x in tested}, []
    for told in (True, False):
        drawn = gendered_pairs(count // 2, TRAINING_SEED + seed, female=female, told=told)
        pairs += [(x.english, x.german) for x in drawn if x.english not in left_out]
    return pairs


def trained(
    start: Path, folder: Path, pairs: list[tuple[str, str]], epochs: int, seed: int
) -> Path:
    """Train a translator further on the pairs, unless that is done already."""
    from keras_transformer.training.translation import train

    if (folder / "metrics.json").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    files = {}
    for name, part in {"train": pairs[VALIDATION:], "validation": pairs[:VALIDATION]}.items():
        files[name] = folder / f"{name}.tsv"
        text = "".join("\t".join(pair) + "\n" for pair in part)
        files[name].write_text(text, "utf-8")
    changes = ["corpus='files'", f"epochs={epochs}", "warmup_steps=20", "peak_learning_rate=0.001"]
    changes += [f"num_buckets={BUCKETS}", f"tokens_per_batch={BATCH}", f"seed={seed}"]
    begin = time.process_time()
    train(
        "grammar",
        folder,
        train_files=[files["train"]],
        validation_files=[files["validation"]],
        start_from=start,
        changes=changes,
    )
    seconds = time.process_time() - begin
    print(f"{folder.name}: {seconds:.0f} s of the processor", flush=True)
    return folder


def measure(folder: Path, tested: list) -> dict[str, Any]:
    """Translate the sentences and return WinoMT's scores."""
    import keras_transformer as kt
    from benchmarks.measures.gender import gender_of, gender_scores
    from benchmarks.measures.professions import FORMS, STEREOTYPES

    translations = kt.Translator.load(folder).translate([x.english for x in tested])
    genders = [
        gender_of(text, FORMS[x.profession]) for text, x in zip(translations, tested, strict=True)
    ]
    stereotypes = [STEREOTYPES[x.profession] for x in tested]
    return gender_scores(genders, [x.gender for x in tested], stereotypes)


def main() -> None:
    """Train, measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("room", type=Path)
    parser.add_argument("--pairs", type=int, default=8000, help="sentences to train on")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--sentences", type=int, default=1000, help="sentences to test with")
    parser.add_argument("--save", action="store_true", help="write the table to results/")
    options = parser.parse_args()
    tested = sentences(options.sentences)
    scores = {"as it is": [measure(options.folder, tested)]}
    for name, following in TRAINED_ON.items():
        scores[name] = []
        for seed in options.seeds:
            pairs = training_text(options.pairs, following, tested, seed)
            folder = options.room / f"{100 * following:.0f}-{options.epochs}-{seed}"
            folder = trained(options.folder, folder, pairs, options.epochs, seed)
            scores[name].append(measure(folder, tested))
    names = {"accuracy": "accuracy, %", "f1_male": "F1, men", "f1_female": "F1, women"}
    names |= {"delta_g": "Delta G", "delta_s": "Delta S", "unknown": "no form found, %"}
    rows = [
        (name, *(contest.spread([run[x] for run in runs]) for x in names))
        for name, runs in scores.items()
    ]
    note = f"{len(tested):,} sentences of 10 professions; {options.pairs:,} pairs to train on, "
    note += f"{options.epochs} epochs; of {len(options.seeds)} seeds the mean, the least and the "
    note += "greatest."
    parts = [contest.table(("trained further on", *names.values()), rows), note]
    contest.report("gender-bias", "Gender bias of a translator", parts, options.save)


if __name__ == "__main__":
    main()
