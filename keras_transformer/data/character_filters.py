"""Filters of pairs by their characters: encodings, letters, numbers, question marks.

Each filter is a function `(source, target) -> reason or None` for `data.cleaning.screened`. The
filters do not depend on the languages. benchmarks/results/quality/translation.md shows how often
they drop good text.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable

LEAST_LETTERS = 1 / 3  # minimum fraction of letters among the characters without white space
# Smaller numbers are not compared: one side may write them as words, or use a 12-hour clock.
LEAST_NUMBER = 100

# UTF-8 read as Latin-1 or Windows-1252: the first byte of a character (C3 is Ã) and a byte that can
# follow it. Only sequences that occur in no language are listed: "É»", for example, is not, because
# it may end a quotation in capitals.
_CONTINUES = "[\u0080-\u00bf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]"
_MOJIBAKE = re.compile(rf"[ÂÃ]{_CONTINUES}|â€|(?:[ÐÑ]{_CONTINUES}){{2}}")
# The replacement character, control characters except white space, noncharacters and surrogates.
_BROKEN = re.compile(
    "[\ufffd\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ufdd0-\ufdef\ufffe\uffff\ud800-\udfff]"
)
_NUMBER = re.compile(r"(?<!\d)\d{1,3}(?:[.,'’ ]\d{3})+(?!\d)|\d+")


def broken_encoding(source: str, target: str) -> str | None:
    """Drop pairs with control characters, U+FFFD, or UTF-8 read as Latin-1 ("MÃ¼ller").

    Noncharacters of Unicode and lone surrogates are dropped, too.
    """
    text = f"{source} {target}"
    return "encoding" if _BROKEN.search(text) or _MOJIBAKE.search(text) else None


def unwritable(source: str, target: str) -> str | None:
    """Drop pairs with a lone surrogate, which cannot be written in UTF-8."""
    return "encoding" if re.search("[\ud800-\udfff]", source + target) else None


def few_letters(source: str, target: str) -> str | None:
    """Drop pairs with too few letters on a side, such as tables, codes and lines of hyphens.

    Too few: less than `LEAST_LETTERS` of the characters without white space. Vowel signs of Indic
    scripts and other marks count as letters.
    """
    return "letters" if min(map(_share_of_letters, (source, target))) < LEAST_LETTERS else None


def _share_of_letters(text: str) -> float:
    characters = "".join(text.split())
    letters = sum(x.isalpha() or unicodedata.category(x)[0] == "M" for x in characters)
    return letters / max(1, len(characters))


def other_numbers(source: str, target: str) -> str | None:
    """Drop pairs whose sides share less than half of the numbers of the side with more numbers.

    Only numbers of at least `LEAST_NUMBER` count. Separators of thousands ("1,000", "1.000",
    "1 000") and the script of the digits may differ.
    """
    numbers, others = _numbers(source), _numbers(target)
    common, most = (numbers & others).total(), max(numbers.total(), others.total())
    return "numbers" if 2 * common < most else None


def _numbers(text: str) -> Counter[int]:
    numbers = (int(re.sub(r"\D", "", x)[:30]) for x in _NUMBER.findall(text))
    return Counter(x for x in numbers if x >= LEAST_NUMBER)


def one_question(source: str, target: str) -> str | None:
    """Drop pairs if one side ends with a question mark, and the other with a full stop or `!`.

    Pairs with a side without such a mark are kept; so are those with the full stop of Chinese and
    Japanese, which may end a question. Quotation marks and brackets after the mark are ignored.
    """
    ends = [_end(text) for text in (source, target)]
    return "question" if None not in ends and ends[0] != ends[1] else None


def _end(text: str) -> bool | None:
    """Return True for a question mark at the end of a text, False for "." or "!", else None."""
    last = text.rstrip("\"'”’“»«)]」』 ")[-1:]
    return True if last in tuple("?？؟") else False if last in (".", "!") else None


# The filters of `keras-transformer clean`, by the reason that they return.
CHARACTER_FILTERS: dict[str, Callable[[str, str], str | None]] = {
    "encoding": broken_encoding,
    "letters": few_letters,
    "numbers": other_numbers,
    "question": one_question,
}
