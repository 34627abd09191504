"""Identification of a text's language, and a filter that drops pairs in another language."""

from __future__ import annotations

import copy
import functools
import io
import tempfile
from collections.abc import Collection
from types import SimpleNamespace
from typing import Any

from keras_transformer.config import require
from keras_transformer.system.extras import missing
from keras_transformer.text.languages import short_code

LEAST_LETTERS = 15  # In shorter texts, names and numbers would decide about the language.
LEAST_PROBABILITY = 0.03  # If the expected language has less, the text is in another one.

# Frequent languages of the web: most lines in a wrong language are in one of them.
_WEB = (
    "ar bg ca cs da de el en es et fa fi fr he hi hr hu id it ja ko lt lv nl no pl pt ro ru sk sl "
    "sr sv th tr uk vi zh"
)
# Groups of languages that are easily confused: if a pair has one of a group, the filter does not
# consider the others.
_ALIKE = tuple(map(frozenset, map(str.split, ("da nn no", "bs hr sr", "id ms", "wuu yue zh"))))


@functools.cache
def _model() -> Any:
    """Return py3langid's model, unpacked once per process; it must not be changed.

    Its 65 MB are unpacked in memory. The library itself would write a file to TMPDIR, which may be
    full.
    """
    from py3langid import langid, modelio

    modelio.tempfile = SimpleNamespace(TemporaryFile=lambda **options: io.BytesIO())
    try:
        return langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)
    finally:
        modelio.tempfile = tempfile


class LanguageIdentifier:
    """An identifier of a text's language from its bytes (Lui and Baldwin 2012, py3langid).

    All known languages are candidates, unless `restrict` is called.

    Attributes:
        known: Codes of the known languages, such as "en".

    Raises:
        ImportError: If py3langid is not installed.
    """

    def __init__(self) -> None:
        try:
            import py3langid  # noqa: F401
        except ImportError as error:
            raise missing("identifying languages", "clean") from error
        self._model = copy.copy(_model())
        self.known = sorted(set(self._model.labels) - {"zxx"})  # zxx: no language
        self.restrict(self.known)

    def restrict(self, languages: Collection[str]) -> None:
        """Make the given languages the only candidates.

        Args:
            languages: One or more codes in `known`.

        Raises:
            ValueError: If a language is unknown, or none is given.
        """
        fit = bool(languages) and set(languages) <= set(self.known)
        require(fit, "languages", sorted(languages), f"some of {' '.join(self.known)}")
        self._model.set_languages(set(languages))

    def rank(self, text: str) -> list[tuple[str, float]]:
        """Return the code and the probability in [0, 1] of each candidate, most probable first."""
        return self._model.rank(text)


class LanguageFilter:
    """A filter that drops pairs with a side that is certainly in another language.

    The candidates are the two languages and 38 that are frequent on the web, without languages
    that are easily confused with one of the two (Danish with Norwegian, Serbian with Croatian). A
    side is in another language if it has at least `LEAST_LETTERS` letters, and the probability of
    the expected language is below `LEAST_PROBABILITY`. So short and doubtful texts are kept.

    Args:
        source_language, target_language: Codes such as "en", "eng_Latn" or "en-US".

    Call arguments:
        source, target: The texts of a pair.

    Returns:
        The reason "language" if the pair is dropped, else None.

    Raises:
        ImportError: If py3langid is not installed, or a code has more than two letters and
            langcodes is not installed.
        ValueError: If py3langid does not know a language.
    """

    def __init__(self, source_language: str, target_language: str):
        self._identifier = LanguageIdentifier()
        known = self._identifier.known
        self._languages = []
        languages = {"source_language": source_language, "target_language": target_language}
        for name, language in languages.items():
            code = language if language in known else short_code(language)
            accepted = f"a language that identification knows, one of {' '.join(known)}"
            require(code in known, name, language, accepted)
            self._languages.append(code)
        alike = {x for group in _ALIKE if group & set(self._languages) for x in group}
        self._identifier.restrict((set(_WEB.split()) - alike) | set(self._languages))

    def __call__(self, source: str, target: str) -> str | None:
        sides = zip((source, target), self._languages, strict=True)
        return "language" if any(self._is_other(*x) for x in sides) else None

    def _is_other(self, text: str, language: str) -> bool:
        if sum(map(str.isalpha, text)) < LEAST_LETTERS:
            return False
        return dict(self._identifier.rank(text))[language] < LEAST_PROBABILITY
