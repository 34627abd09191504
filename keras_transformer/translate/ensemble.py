"""Several translators as one."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from keras_transformer.config import require
from keras_transformer.models import Ensemble
from keras_transformer.translate.engines.keras_engine import KerasEngine
from keras_transformer.translate.translator import Translator


def ensemble(translators: Sequence[Translator]) -> Translator:
    """Return a translator that averages the log-probabilities of several at each step.

    ```python
    both = ensemble([Translator.load("seed-0"), Translator.load("seed-1")])
    ```

    It takes as long as all of them together, and cannot be saved or exported.

    Args:
        translators: Translators with the same tokenizer and languages, on the engine "keras".

    Raises:
        ValueError: If there are none, or they differ in their tokenizers or languages.
    """
    require(len(translators) > 0, "translators", translators, "one or more")
    first = translators[0]
    languages = first.source_language, first.target_language
    for one in translators:
        fits = isinstance(one._engine, KerasEngine)
        require(fits, "translators", type(one._engine).__name__, 'those with engine="keras"')
        found, accepted = one.tokenizer.fingerprint(), first.tokenizer.fingerprint()
        accepted += ", that of the first: the models must mean the same by an id"
        require(found in accepted, "the tokenizer of a translator", found, accepted)
        pair = one.source_language, one.target_language
        require(pair == languages, "the languages of a translator", pair, f"{languages}")
    chosen = copy.copy(first)
    joined: Any = Ensemble([one.model for one in translators])  # searches like a model
    chosen._engine = KerasEngine(joined, first.shortlist)
    return chosen
