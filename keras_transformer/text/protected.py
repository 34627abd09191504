"""Protected spans: parts of a source that no translation changes, such as addresses and tags."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

# The time of a pattern must not grow with the square of the text's length: most repetitions are
# possessive or limited.
_ADDRESS = r"[\w!#-;=?-~]*[\w/=&#%~+$-]"  # the rest of a URL, without punctuation at its end
_EMOJI = "\U0001f000-\U0001faff\u2600-\u27bf"
# Emoji, and tags other than those that glossaries and documents write into sources.
_MARKUP = rf"(?!</?(?:term|is|sep)>)</?[A-Za-z][^<>]{{0,200}}+>|[{_EMOJI}][{_EMOJI}\u200d\ufe0f]*+"
_WORDS = "|".join(
    (
        rf"(?<!\w)(?i:https?://|ftp://|www\.){_ADDRESS}",
        r"(?<![\w.+-])[\w.+-]++@[\w-]++(?:\.[\w-]++)++",  # e-mail addresses
        r"(?<![\w@#&])[@#]\w++",  # handles and hashtags
        # Domains and file names, such as keras.io and notes.txt.
        rf"(?<![\w.-])(?:\w[\w-]++\.)++[a-z][a-z0-9]{{1,4}}+(?![\w'’])(?:/{_ADDRESS})?",
        r"\$?\{{1,2}[^{}\s]{0,80}+\}{1,2}",  # {name}, {{name}}, ${name}
        r"(?<![\w%])%(?:\(\w{1,80}+\)|\d\$)?[-+#]?\d{0,3}+(?:\.\d)?[sdifgxu@](?!\w)",  # %s, %2d
        r"(?<![\w+])\+\d(?:[ ./-]?\(?\d\)?){2,20}+(?!\w)",  # telephone numbers
    )
)
_SPAN = re.compile(f"{_MARKUP}|{_WORDS}")
_MARKUP_OR_MARK = re.compile(rf"(?P<markup>{_MARKUP})|\S")
# Numbers of two digits or more, except times (2:30, 10 p.m.), which languages write differently.
_NUMBER = re.compile(
    r"(?<![\w.,:])(?<![Hh]\s)"
    r"(?:\d{1,3}(?:[ \xa0\u202f]\d{3}){1,4}+|(?=\d[.,]?\d)\d++(?:[.,]\d++)*+)"
    r"(?!\w|:\d|\s?(?:[Hh]|Uhr|[ap]\.?m|o['’]clock)\b)"
)
_OPENING, _CLOSING = "([{\"'«„“¿¡-/", ".,;:!?…)]}\"'»”-/"  # no space after; no space before
_GROUPED = re.compile(r"\d{1,3}(?:\D\d{3})+")
# Numbers occur in all languages, and models copy short ones most reliably.
PLACEHOLDERS = tuple(str(10 + (37 + 11 * i) % 90) for i in range(30))  # 47, 58, 69, 80 ...


class Masked(NamedTuple):
    """A source with placeholders, which are numbers, for its protected spans.

    Args:
        text: The text to translate.
        before, after: Tags and emoji at the beginning and the end, which are not translated.
        spans: For each placeholder, its span, and whether a space was added before and after it.
        is_upper: Whether the source is in capitals, and `text` was converted to lower case.
    """

    text: str
    before: str
    after: str
    spans: dict[str, tuple[str, bool, bool]]
    is_upper: bool

    def copies(self) -> dict[tuple[str, ...], bool]:
        """Return what a translation of `text` should contain.

        Returns:
            For each number of the text, placeholders included: the tuple of spellings that count
                as a copy, and whether the number directly follows an opening mark such as "(".
        """
        places = {(x,): self.text.index(x) for x in self.spans}
        places |= {_forms(x[0]): x.start() for x in _NUMBER.finditer(self.text)}
        return {forms: i > 0 and self.text[i - 1] in _OPENING for forms, i in places.items()}

    def restored(self, translation: str) -> str:
        """Return a translation of `text` as a translation of the original."""
        if self.is_upper:
            translation = translation.upper()

        def span(match):
            text, is_before, is_after = self.spans[match[2]]
            return f"{match[1] * (not is_before)}{text}{match[3] * (not is_after)}"

        if self.spans:
            pattern = rf"(\s?)(?<!\d)({'|'.join(self.spans)})(?!\d)(\s?)"
            translation = re.sub(pattern, span, translation)
        return f"{self.before}{translation}{self.after}"


def masked(text: str, placeholders: Iterable[str], at_ends: bool = True) -> Masked:
    """Return a source with placeholders for its URLs, e-mail addresses, tags, emoji and the like.

    Args:
        text: The source.
        placeholders: Numbers that the text does not contain. If they are too few, the last spans
            stay.
        at_ends: Whether tags and emoji at the ends are left out, and a text of several words in
            capitals is converted to lower case, except the first letters of sentences.
    """
    begin, end = _without_markup(text) if at_ends else (0, len(text))
    parts, last = "", begin
    spans: dict[str, tuple[str, bool, bool]] = {}
    for placeholder, match in zip(placeholders, _SPAN.finditer(text, begin, end), strict=False):
        parts += text[last : match.start()]
        last = match.end()
        is_before = bool(parts[-1:].strip().strip(_OPENING))
        is_after = last < end and bool(text[last].strip().strip(_CLOSING))
        parts += f"{' ' * is_before}{placeholder}{' ' * is_after}"
        spans[placeholder] = match[0], is_before, is_after
    parts += text[last:end]
    is_upper = at_ends and parts.isupper() and len(parts.split()) > 1
    if is_upper:
        parts = re.sub(r"(^\W*|[.!?]\s+)(\w)", lambda x: x[1] + x[2].upper(), parts.lower())
    return Masked(parts, text[:begin], text[end:], spans, is_upper)


def _without_markup(text):
    """Return the start and the end of a text without the tags and emoji at its ends."""
    begin = end = None
    for match in _MARKUP_OR_MARK.finditer(text):
        if not match["markup"]:
            begin, end = match.start() if begin is None else begin, match.end()
    begin, end = begin or 0, len(text) if end is None else end
    return begin if text[:begin].strip() else 0, end if text[end:].strip() else len(text)


def is_protected(text: str) -> bool:
    """Return whether a text has protected spans or numbers, and no word besides them."""
    rest = _NUMBER.sub("", _SPAN.sub(" ", text))
    return rest != text and re.search(r"\w", rest) is None


def is_copied(forms: tuple[str, ...], translation: str) -> bool:
    """Return whether a translation contains one of the forms of a number."""
    either = "|".join(map(re.escape, forms))
    return re.search(rf"(?<!\d)(?:{either})(?!\d)", translation) is not None


def _forms(number):
    """Return a number, and its spellings with other separators of decimals or thousands."""
    if _GROUPED.fullmatch(number):
        others = [re.sub(r"\D", mark, number) for mark in (",", ".", " ", "")]
    else:
        others = [number.translate({ord("."): ",", ord(","): "."})]
    return tuple(dict.fromkeys([number, *others]))
