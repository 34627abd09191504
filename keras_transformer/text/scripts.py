"""Scripts of languages, and a filter that drops pairs in another script."""

from __future__ import annotations

import functools
import unicodedata

from keras_transformer.text.languages import short_code

# Languages (ISO 639 codes) by script. The name of a script is the first word of the Unicode names
# of its letters.
_WRITTEN = {
    "LATIN": "ace af an az bcl br bs ca crh cs cy da de en eo es et eu fi fo fr fy ga gd gl gn ha "
    "hr ht hu id ig is it jv kab kik ku la lb lg lij ln lt ltg lv mg ms mt nl nn no nso oc om pl "
    "pt qu ro rw se sk sl sn so sq sr st sv sw tk tl tr uz vec vi vo wa xh yo zu",
    "CYRILLIC": "ba be bg crh kk ky mk mn ru sr tg tt uk uz",
    "ARABIC": "ar ary arz az fa kk ku ms pa ps sd sdh ug ur",
    "GREEK": "el grc",
    "HEBREW": "he hbo yi",
    "ARMENIAN": "hy",
    "GEORGIAN": "ka",
    "ETHIOPIC": "am om ti",
    "DEVANAGARI": "gom hi mr ne sa",
    "BENGALI": "as bn",
    "GUJARATI": "gu",
    "GURMUKHI": "pa",
    "KANNADA": "gom kn",
    "MALAYALAM": "ml",
    "ORIYA": "or",
    "SINHALA": "si",
    "TAMIL": "ta",
    "TELUGU": "te",
    "THAI": "th",
    "LAO": "lo",
    "KHMER": "km",
    "MYANMAR": "my",
    "TIBETAN": "bo dz",
    "MONGOLIAN": "mn",
    "HANGUL": "ko",
    "HIRAGANA": "ja",
    "KATAKANA": "ja",
    "CJK": "ja wuu yue zh",
    "BOPOMOFO": "zh",
}


class ScriptFilter:
    """A filter that drops pairs with a side that is mostly in another script.

    A side is in another script if less than half of its letters are in a script of its language.
    Letters in scripts that are not in `_WRITTEN` are not counted. Texts of a language that is not
    in it are kept.

    Args:
        source_language, target_language: Codes such as "en".

    Call arguments:
        source, target: The texts of a pair.

    Returns:
        The reason "script" if the pair is dropped, else None.

    Raises:
        ImportError: If an unlisted code does not have two letters and langcodes is not installed.
    """

    def __init__(self, source_language: str, target_language: str):
        self._scripts = [scripts_of(x) for x in (source_language, target_language)]

    def __call__(self, source: str, target: str) -> str | None:
        for text, scripts in zip((source, target), self._scripts, strict=True):
            letter_scripts = [x for x in map(_script, filter(str.isalpha, text)) if x]
            if scripts and 2 * sum(x in scripts for x in letter_scripts) < len(letter_scripts):
                return "script"
        return None


def scripts_of(language: str) -> frozenset[str]:
    """Return the names of the scripts of a language, such as "LATIN"; empty if it is not listed."""

    def of(code):
        return frozenset(x for x, codes in _WRITTEN.items() if code in codes.split())

    return of(language) or of(short_code(language))


@functools.lru_cache(maxsize=10_000)
def _script(letter: str) -> str | None:
    name = unicodedata.name(letter, "").split()[:1]
    return name[0] if name and name[0] in _WRITTEN else None
