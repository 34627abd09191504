"""Filters of pairs by their characters: encodings, letters, numbers, question marks.

Each is a function `(source, target) -> reason or None`, as `data.cleaning.screened` takes them.
They know no language, so they drop only what is wrong in all: how often they err on good text is
in benchmarks/results/quality/translation.md.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable

LEAST_LETTERS = 1 / 3  # of the characters of a text; OpusCleaner and Bicleaner ask for half
LEAST_NUMBER = 100  # smaller ones are often written as words, and hours by another clock

# UTF-8 read as Latin-1 or Windows-1252: the first byte of a character (C3 is Ã) and one that can
# follow it. Only sequences that occur in no language: "É»" may end a quotation in capitals.
_CONTINUES = "[\u0080-\u00bf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]"
_MOJIBAKE = re.compile(rf"[ÂÃ]{_CONTINUES}|â€|(?:[ÐÑ]{_CONTINUES}){{2}}")
# The replacement character; control characters but white space; what Unicode assigns to nothing.
_BROKEN = re.compile(
    "[\ufffd\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ufdd0-\ufdef\ufffe\uffff\ud800-\udfff]"
)
_NUMBER = re.compile(r"(?<!\d)\d{1,3}(?:[.,'’ ]\d{3})+(?!\d)|\d+")


def broken_encoding(source: str, target: str) -> str | None:
    """Drop pairs with control characters, U+FFFD, or UTF-8 read as Latin-1 ("MÃ¼ller")."""
    both = f"{source} {target}"
    return "encoding" if _BROKEN.search(both) or _MOJIBAKE.search(both) else None


def unwritable(source: str, target: str) -> str | None:
    """Drop pairs with a lone surrogate, which no file in UTF-8 can hold."""
    return "encoding" if re.search("[\ud800-\udfff]", source + target) else None


def few_letters(source: str, target: str) -> str | None:
    """Drop pairs with a side of which less than `LEAST_LETTERS` are letters: tables, codes, rules.

    White space does not count. Vowel signs of Indic scripts and other marks count as letters.
    """
    return "letters" if min(map(_share_of_letters, (source, target))) < LEAST_LETTERS else None


def _share_of_letters(text: str) -> float:
    characters = "".join(text.split())
    letters = sum(x.isalpha() or unicodedata.category(x)[0] == "M" for x in characters)
    return letters / max(1, len(characters))


def other_numbers(source: str, target: str) -> str | None:
    """Drop pairs whose sides share less than half of their numbers of `LEAST_NUMBER` or more.

    Half of those of the side that has more. The separators of thousands may differ ("1,000",
    "1.000", "1 000"), and so may the script of the digits.
    """
    ours, theirs = _numbers(source), _numbers(target)
    return "numbers" if 2 * (ours & theirs).total() < max(ours.total(), theirs.total()) else None


def _numbers(text: str) -> Counter[int]:
    found = (int(re.sub(r"\D", "", x)[:30]) for x in _NUMBER.findall(text))
    return Counter(x for x in found if x >= LEAST_NUMBER)


def one_question(source: str, target: str) -> str | None:
    """Drop pairs of which one side ends as a question, and the other in a full stop or `!`.

    Text without a mark at the end is no evidence, nor is the full stop of Chinese and Japanese,
    which may end a question. Quotation marks and brackets after the mark are ignored.
    """
    ends = [_end(text) for text in (source, target)]
    return "question" if None not in ends and ends[0] != ends[1] else None


def _end(text: str) -> bool | None:
    """Return whether the text ends as a question; None: it has no mark at the end."""
    last = text.rstrip("\"'”’“»«)]」』 ")[-1:]
    return True if last in tuple("?？؟") else False if last in (".", "!") else None


# By their reason.
CHARACTER_FILTERS: dict[str, Callable[[str, str], str | None]] = {
    "encoding": broken_encoding,
    "letters": few_letters,
    "numbers": other_numbers,
    "question": one_question,
}
