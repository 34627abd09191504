"""Tests of significance of the difference between two systems, and confidence intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sacrebleu
from sacrebleu.significance import PairedTest

from keras_transformer.config import require, require_whole
from keras_transformer.evaluation.tokenizers import bleu_metric
from keras_transformer.text.tokenizer import checked_texts

TESTS = {"bootstrap": "bs", "randomization": "ar"}  # values: sacreBLEU's names
SAMPLES = {"bootstrap": 1000, "randomization": 10_000}
SEED = 12345  # as in sacreBLEU


@dataclass(frozen=True)
class Compared:
    """A score of a system, compared with the score of the first system.

    Args:
        score: Score of the whole test set, in percent.
        interval: Half the width of the 95 % confidence interval of the score, by the bootstrap;
            None with randomization.
        p_value: Probability of a difference at least as large if the systems were equally good;
            None for the first system.
        signature: sacreBLEU's signature of the score and the test.
    """

    score: float
    interval: float | None
    p_value: float | None
    signature: str


def compare(
    systems: Mapping[str, Sequence[str]],
    references: Sequence[str],
    *,
    test: str = "bootstrap",
    samples: int | None = None,
    tokenize: str | None = None,
    language: str | None = None,
) -> dict[str, dict[str, Compared]]:
    """Test the difference between each system and the first one, with sacreBLEU.

    ```python
    compare({"baseline": baseline, "ours": translations}, references)["ours"]["BLEU"].p_value
    ```

    Args:
        systems: Translations of the same sources, by the system's name; the first is the baseline.
        references: Reference translations.
        test: "bootstrap": the paired test of Koehn 2004, which resamples sentences;
            "randomization": approximate randomization (Riezler and Maxwell 2005), which swaps
            translations.
        samples: Number of resamplings; None: 1,000 for the bootstrap, 10,000 for randomization.
        tokenize, language: Tokenizer of BLEU, and the texts' language, see `scores.evaluate`.

    Returns:
        The scores "BLEU" and "chrF" of each system, by its name.

    Raises:
        ValueError: If there are fewer than two systems, no texts, or different numbers of texts, or
            an option is out of range.
    """
    require(test in TESTS, "test", test, f"one of {tuple(TESTS)}")
    require_whole("samples", 0 if samples is None else samples, 0 if samples is None else 1)
    require(len(systems) >= 2, "systems", list(systems), "two or more")
    references = checked_texts(references, "references")
    require(len(references) > 0, "references", references, "one or more")
    named: list[tuple[str, Sequence[str]]] = [
        (name, checked_texts(texts, name)) for name, texts in systems.items()
    ]
    for name, texts in named:
        accepted = f"{len(references)} texts, one per reference"
        require(len(texts) == len(references), name, f"{len(texts)} texts", accepted)
    scores = _scores(named, references, test, samples or 0, tokenize, language)
    return {name: x for (name, _), x in zip(named, scores, strict=True)}


def compare_scores(
    scores: Mapping[str, Sequence[float]],
    *,
    test: str = "bootstrap",
    samples: int | None = None,
) -> dict[str, Compared]:
    """Test the difference between the mean scores of each system and of the first one.

    Args:
        scores: Score of each text, such as those of a `LearnedMetric`, by the system's name.
        test, samples: See `compare`.

    Returns:
        The mean score of each system, by its name.

    Raises:
        ValueError: If there are fewer than two systems, no scores, or different numbers of them, or
            an option is out of range.
    """
    require(test in TESTS, "test", test, f"one of {tuple(TESTS)}")
    require(len(scores) >= 2, "systems", list(scores), "two or more")
    arrays = {name: np.array(values, "float64") for name, values in scores.items()}
    first = next(iter(arrays.values()))
    size, count = len(first), SAMPLES[test] if samples is None else samples
    for name, values in arrays.items():
        require(len(values) == size > 0, name, f"{len(values)} scores", f"{size}, 1 or more")
    require_whole("samples", count, 1)
    swaps = test == "randomization"
    random, rows = np.random.default_rng(SEED), []  # means of the scores, and of the differences
    values_SN = np.stack([*arrays.values(), *(x - first for x in arrays.values())])
    for _ in range(count):
        if swaps:
            rows.append((values_SN * random.choice([-1, 1], size)).mean(axis=1))
        else:
            rows.append(values_SN[:, random.integers(size, size=size)].mean(axis=1))
    means_CS, results = np.array(rows), {}
    signature = f"test:{TESTS[test]}|samples:{count}|seed:{SEED}"
    for i, (name, values) in enumerate(arrays.items()):
        interval = p_value = None
        if not swaps:
            interval = float(np.diff(np.quantile(means_CS[:, i], [0.025, 0.975]))[0]) / 2
        if i > 0:
            difference = (values - first).mean()
            # Under the null hypothesis, the differences have the mean 0.
            others = means_CS[:, len(arrays) + i] - (0 if swaps else difference)
            extreme = (np.abs(others) >= abs(difference)).sum()
            p_value = float(extreme + 1) / (count + 1)
        results[name] = Compared(float(values.mean()), interval, p_value, signature)
    return results


def intervals(
    translations: Sequence[str],
    references: Sequence[str],
    samples: int = 1000,
    tokenize: str | None = None,
    language: str | None = None,
) -> dict[str, float]:
    """Return half the width of the 95 % confidence intervals of BLEU and chrF, by the bootstrap.

    Args:
        translations: Translations by one system.
        references: Their references, at least one.
        samples: Number of resamplings of the sentences.
        tokenize, language: See `compare`.

    Returns:
        The half widths, in percent, under "BLEU" and "chrF".

    Raises:
        ValueError: If the numbers of texts differ or are 0, or `samples` is below 1.
    """
    require_whole("samples", samples, 1)
    texts = checked_texts(translations, "translations"), checked_texts(references, "references")
    counts = tuple(map(len, texts))
    accepted = "of the same length, at least 1"
    require(counts[0] == counts[1] > 0, "translations, references", counts, accepted)
    system, words = [("system", texts[0])], (tokenize, language)
    (scores,) = _scores(system, texts[1], "bootstrap", samples, *words)
    return {metric: score.interval or 0.0 for metric, score in scores.items()}


def _scores(named, references, test, samples, tokenize, language):
    """Return BLEU and chrF of each system."""
    run = PairedTest(
        named,
        {"BLEU": bleu_metric(tokenize, language, references), "chrF": sacrebleu.CHRF()},
        references=[references],
        test_type=TESTS[test],
        n_samples=samples,
        n_jobs=1,
    )
    signatures, results = run()
    del results["System"]  # the column with the names of the systems
    return [
        {
            "BLEU" if metric == "BLEU" else "chrF": _compared(row[i], signatures[metric])
            for metric, row in results.items()
        }
        for i in range(len(named))
    ]


def _compared(result: Any, signature: Any) -> Compared:
    interval, p_value = (None if x is None else float(x) for x in (result.ci, result.p_value))
    return Compared(float(result.score), interval, p_value, str(signature))
