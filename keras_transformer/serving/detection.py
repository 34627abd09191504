"""Language detection, for `/detect` and the source language "auto"."""

from __future__ import annotations

from collections.abc import Sequence

from keras_transformer.text.identification import LanguageIdentifier
from keras_transformer.text.languages import short_code


class Detector:
    """A language detector, with answers in LibreTranslate's form.

    Args:
        languages: Codes of the candidate languages. Codes unknown to the detector are ignored; if
            it knows no code, all languages that it knows are candidates.
    """

    def __init__(self, languages: Sequence[str]):
        self._identifier = LanguageIdentifier()
        known = {short_code(code) for code in languages} & set(self._identifier.known)
        self._languages = known or set(self._identifier.known)

    def detect(self, text: str) -> list[dict[str, str | float]]:
        """Return the likely languages, best first: `language`, and `confidence` from 0 to 100.

        The confidence is the probability in percent among all languages that the detector knows, so
        it is low if the text's language is not a candidate. Languages below 1 % are left out,
        except the best.
        """
        ranked = [x for x in self._identifier.rank(text) if x[0] in self._languages]
        best = [(code, share) for code, share in ranked if share >= 0.01] or ranked[:1]
        return [{"confidence": round(100 * share, 1), "language": code} for code, share in best]
