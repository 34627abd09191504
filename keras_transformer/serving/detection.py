"""Language detection."""

from __future__ import annotations

from collections.abc import Sequence

from keras_transformer.system.extras import missing
from keras_transformer.text.languages import short_code

try:
    from py3langid import langid
except ImportError as error:
    raise missing("detecting languages", "serve") from error


class Detector:
    """Detects the language of a text from its bytes (Lui and Baldwin 2012, langid.py).

    Args:
        languages: Codes of the candidate languages. Codes unknown to the detector are ignored; if
            none is left, all languages that it knows are candidates.
    """

    def __init__(self, languages: Sequence[str]):
        self._identifier = langid.LanguageIdentifier.from_model_file(
            langid.MODEL_FILE, norm_probs=True
        )
        known = {short_code(code) for code in languages} & set(self._identifier.nb_classes)
        self._identifier.set_languages(known or None)

    def detect(self, text: str) -> list[dict[str, str | float]]:
        """Return the likely languages, best first: `language`, and `confidence` from 0 to 100."""
        ranked = self._identifier.rank(text)
        best = [(code, share) for code, share in ranked if share >= 0.01] or ranked[:1]
        return [{"confidence": round(100 * share, 1), "language": code} for code, share in best]
