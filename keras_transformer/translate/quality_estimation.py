"""Estimated quality of translations without references: the model's confidence, calibrated."""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sacrebleu

from keras_transformer.config import Config, is_number, require
from keras_transformer.evaluation.assess import log_probabilities
from keras_transformer.saved.contents import CONFIG, QUALITY, fingerprint, read_config
from keras_transformer.search import TRANSLATE, Search
from keras_transformer.system.files import read_json, write_json
from keras_transformer.text.tokenizer import checked_texts
from keras_transformer.translate.translator import Translator

LEAST_PAIRS = 100  # with fewer pairs, the curve would depend on chance
POOL = 10  # minimum sentences per corner of the curve, so that no end depends on one sentence


@dataclass(frozen=True)
class QualityEstimator(Config):
    """Estimate of the sentence chrF that a translation would get, from the model's confidence.

    The confidence is the mean log-probability of the translation's tokens (Fomicheva et al. 2020,
    "Unsupervised Quality Estimation for Neural Machine Translation", section 3.1). Isotonic
    regression (Zadrozny and Elkan 2002) maps it to the mean chrF of validation sentences with this
    confidence.

    ```python
    estimator = QualityEstimator.fit(translator, sources, translations, references)
    estimator.estimate(translator, ["The old dog sleeps."], ["Der alte Hund schläft."])
    ```

    Args:
        confidences: Mean log-probabilities at the corners of the curve (N,), increasing.
        qualities: Mean chrF / 100 at these corners (N,), in [0, 1], not decreasing.
        sentences: Number of pairs that the curve was fitted to.
        model: SHA-256 of the model's files; "" for a model that is not saved.
        search: Options of `Translator.translate` that the translations were made with.
        languages: Source and target language of the translator; None: unknown.

    Raises:
        ValueError: If a value is out of range or an option unknown.
    """

    confidences: tuple[float, ...]
    qualities: tuple[float, ...]
    sentences: int
    model: str
    search: dict[str, Any]
    languages: tuple[str | None, str | None]

    def __post_init__(self):
        for name in ("confidences", "qualities"):
            curve = getattr(self, name)
            has_numbers = isinstance(curve, list | tuple) and all(map(is_number, curve))
            require(has_numbers and len(curve) > 0, name, curve, "one or more numbers")
        x, y = np.array(self.confidences), np.array(self.qualities)
        require(len(x) == len(y), "qualities", self.qualities, "one for each of the confidences")
        require(bool((np.diff(x) > 0).all()), "confidences", self.confidences, "increasing")
        in_range = bool((np.diff(y) >= 0).all() and y[0] >= 0 and y[-1] <= 1)
        require(in_range, "qualities", self.qualities, "not decreasing, in [0, 1]")
        self._check_whole("sentences")
        pair = self.languages
        is_pair = isinstance(pair, list | tuple) and len(pair) == 2
        is_pair = is_pair and all(x is None or isinstance(x, str) for x in pair)
        require(is_pair, "languages", pair, "two language codes")
        try:
            Search.of(self.search, TRANSLATE)
        except TypeError as error:
            raise ValueError(f"search: {error}") from error

    @classmethod
    def fit(
        cls,
        translator: Translator,
        sources: Sequence[str],
        translations: Sequence[str],
        references: Sequence[str],
        *,
        tokens_per_batch: int = 4096,
        **options: Any,
    ) -> QualityEstimator:
        """Calibrate the confidence of a translator on validation data.

        Args:
            translator: The translator.
            sources: Source texts that the translator was not trained on.
            translations: Translations of the sources by the translator.
            references: Reference translations of the sources.
            tokens_per_batch: See `Translator.score`.
            options: Options of `Translator.translate` that the translations were made with.

        Raises:
            TypeError: If an option is unknown.
            ValueError: If the numbers of texts differ, or fewer than 100 pairs have a source text
                and are within the model's `max_length`.
        """
        search = translator.options(options)
        scores = confidences(translator, sources, translations, tokens_per_batch=tokens_per_batch)
        chrf = sentence_chrf(translations, references)
        known = ~np.isnan(scores)
        accepted = f"at least {LEAST_PAIRS} that fit the model, to calibrate on"
        require(known.sum() >= LEAST_PAIRS, "pairs", int(known.sum()), accepted)
        x, y = isotonic(scores[known], chrf[known])
        values = dataclasses.asdict(search)
        chosen = {name: values[name] for name in TRANSLATE}
        count, languages = int(known.sum()), _languages(translator)
        return cls(tuple(x.tolist()), tuple(y.tolist()), count, "", chosen, languages)

    def suits(self, translator: Translator) -> bool:
        """Return whether a translator has the languages that this estimator was fitted to."""
        return tuple(self.languages) == _languages(translator)

    def estimate(
        self,
        translator: Translator,
        sources: Sequence[str],
        translations: Sequence[str],
        *,
        tokens_per_batch: int = 4096,
    ) -> np.ndarray:
        """Return the expected chrF / 100 of each translation: (N,), in [0, 1].

        It is NaN if the source is empty, or a text is longer than the model's `max_length`.

        Args:
            translator: The translator that the estimator was fitted to.
            sources: Source texts.
            translations: Translations of the sources by the translator.
            tokens_per_batch: See `Translator.score`.

        Raises:
            ValueError: If the numbers of texts differ, or the translator has other languages.
        """
        accepted = f"of the calibrated languages {tuple(self.languages)}"
        require(self.suits(translator), "translator", _languages(translator), accepted)
        scores = confidences(translator, sources, translations, tokens_per_batch=tokens_per_batch)
        return np.interp(scores, self.confidences, self.qualities)

    def save(self, folder: str | os.PathLike) -> None:
        """Write the file `quality.json` into the folder of the saved translator.

        Raises:
            ValueError: If the folder is not a saved translator.
        """
        values = dataclasses.replace(self, model=_fingerprint(folder)).to_dict()
        write_json(Path(folder, QUALITY), values)

    @classmethod
    def read(cls, folder: str | os.PathLike, **options: Any) -> QualityEstimator | None:
        """Read `quality.json`; return None if the folder has no such file.

        A calibration is valid only for the search options that it was made with: if they differ
        from `options`, return None and issue a warning.

        Args:
            folder: Folder of the translator.
            options: Options of `Translator.translate` that the translations will be made with.

        Raises:
            ValueError: If the file is broken, or belongs to another model.
        """
        path = Path(folder, QUALITY)
        if not path.is_file():
            return None
        values = read_json(path)
        try:
            estimator = cls.from_dict(values)
        except ValueError as error:
            raise ValueError(f"{path} is not a calibration: {error}") from error
        if estimator.model != _fingerprint(folder):
            raise ValueError(
                f"{path} is of another model: run `keras-transformer calibrate` again, or remove it"
            )
        defaults = Search.saved(read_json(Path(folder, CONFIG)), Path(folder, CONFIG))
        asked, known = (Search.of(x, TRANSLATE, defaults) for x in (options, estimator.search))
        if asked != known:
            differ = [name for name in TRANSLATE if getattr(asked, name) != getattr(known, name)]
            warnings.warn(
                f"{path} is of another search ({', '.join(differ)}): no quality is estimated; "
                "calibrate with the options of this search",
                stacklevel=2,
            )
            return None
        return estimator


def confidences(
    translator: Translator,
    sources: Sequence[str],
    translations: Sequence[str],
    *,
    tokens_per_batch: int = 4096,
) -> np.ndarray:
    """Return the mean log-probability of each translation's tokens, EOS included: (N,).

    It is NaN if the source is empty, or a text is longer than the model's `max_length`.

    Args:
        translator: Translator whose model gives the probabilities.
        sources: Source texts.
        translations: Their translations.
        tokens_per_batch: See `Translator.score`.

    Raises:
        ValueError: If the numbers of texts differ.
    """
    totals, counts = log_probabilities(translator, sources, translations, tokens_per_batch)
    totals[[not source.strip() for source in sources]] = np.nan
    return totals / counts


def sentence_chrf(translations: Sequence[str], references: Sequence[str]) -> np.ndarray:
    """Return the chrF (Popović 2015) of each translation by sacreBLEU, divided by 100: (N,).

    Raises:
        ValueError: If the numbers of texts differ.
    """
    translations = checked_texts(translations, "translations")
    references = checked_texts(references, "references")
    accepted = f"{len(translations)} texts, one per translation"
    same = len(references) == len(translations)
    require(same, "references", f"{len(references)} texts", accepted)
    pairs, chrf = zip(translations, references, strict=True), sacrebleu.CHRF()
    scores = [chrf.sentence_score(text, [reference]).score / 100 for text, reference in pairs]
    return np.minimum(scores, 1.0)  # rounding can give more than 1


def isotonic(x: np.ndarray, y: np.ndarray, pool: int = POOL) -> tuple[np.ndarray, np.ndarray]:
    """Return the corners of the best non-decreasing curve from x to y (least squares).

    Pairs are sorted by x and divided into groups, each of which is replaced by its mean. Then
    adjacent means that do not increase are merged (Ayer et al. 1955, "An Empirical Distribution
    Function for Sampling with Incomplete Information").

    Args:
        x, y: Numbers (N,), N at least 1.
        pool: Minimum number of pairs per group, at least 1; with fewer pairs there is one group.

    Returns:
        x and y of the corners, (M,) each.
    """
    order = np.argsort(x, kind="stable")
    blocks: list[tuple[float, float, int]] = []  # mean x, mean y, number of pairs
    for part in np.array_split(order, max(1, len(x) // pool)):
        blocks.append((x[part].mean(), y[part].mean(), len(part)))
        while len(blocks) > 1 and (
            blocks[-2][1] >= blocks[-1][1] or blocks[-2][0] >= blocks[-1][0]
        ):
            (x1, y1, n1), (x2, y2, n2) = blocks.pop(), blocks.pop()
            n = n1 + n2
            blocks.append(((n1 * x1 + n2 * x2) / n, (n1 * y1 + n2 * y2) / n, n))
    corners = np.array(blocks)
    return corners[:, 0], corners[:, 1]


def correlation(estimates: np.ndarray, qualities: np.ndarray) -> dict[str, float]:
    """Return the correlation of estimates and qualities; pairs with a NaN are left out.

    Args:
        estimates, qualities: Numbers (N,).

    Returns:
        `pearson` and `spearman`, in [-1, 1]; NaN if either side is constant or has fewer
            than two numbers.
    """
    known = ~(np.isnan(estimates) | np.isnan(qualities))
    sides = [estimates[known], qualities[known]]
    with np.errstate(invalid="ignore", divide="ignore"):
        pearson, spearman = (
            float(np.corrcoef(*pair)[0, 1]) for pair in (sides, list(map(_ranks, sides)))
        )
    return {"pearson": pearson, "spearman": spearman}


def _ranks(values):
    """Return the rank of each value; equal values share their mean rank."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[places]


def _languages(translator):
    return translator.source_language, translator.target_language


def _fingerprint(folder):
    return fingerprint(Path(folder), read_config(folder, "translator"))
