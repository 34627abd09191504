"""Ensembles: one translator that averages the predictions of several."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from keras_transformer.config import require
from keras_transformer.models import Ensemble
from keras_transformer.translate.engines.keras_engine import KerasEngine
from keras_transformer.translate.translator import Translator


def ensemble(
    translators: Sequence[Translator],
    weights: Sequence[float] | None = None,
    normalized: bool = True,
) -> Translator:
    """Return a translator that averages the log-probabilities of several models at each step.

    ```python
    both = ensemble([Translator.load("seed-0"), Translator.load("seed-1")])
    ```

    A translation takes as long as with all translators in turn. An ensemble cannot be saved or
    exported.

    Args:
        translators: One or more translators with the same tokenizer, languages and
            `engine="keras"`.
        weights, normalized: See `models.Ensemble`.

    Raises:
        ValueError: If there are none, one has another engine, tokenizers or languages differ, or
            weights are not one number above 0 for each.
    """
    require(len(translators) > 0, "translators", translators, "one or more")
    first = translators[0]
    languages = first.source_language, first.target_language
    for translator in translators:
        engine = translator._engine
        is_keras = isinstance(engine, KerasEngine)
        require(is_keras, "translators", type(engine).__name__, 'those with engine="keras"')
        fingerprint, accepted = translator.tokenizer.fingerprint(), first.tokenizer.fingerprint()
        accepted += ", that of the first: the models must mean the same by an id"
        require(fingerprint in accepted, "the tokenizer of a translator", fingerprint, accepted)
        pair = translator.source_language, translator.target_language
        require(pair == languages, "the languages of a translator", pair, f"{languages}")
    chosen = copy.copy(first)
    # `Any`: it has the methods of a model that a search calls, but is no `EncoderDecoder`.
    joined: Any = Ensemble([x.model for x in translators], weights, normalized)
    chosen._engine = KerasEngine(joined, first.shortlist)
    return chosen
