"""The normalization rules of a SentencePiece model as normalizers of a `tokenizer.json`.

SentencePiece replaces, from left to right, the longest string that its rules list; other characters
stay. Its rules are those of NFKC, with few changes, but NFKC also reorders marks and composes more
of them. The normalizers therefore put a marker before each mark, apply NFKC to the single
characters, and remove the markers of the marks that the rules compose. The readers' own type
"Precompiled" is not used: `tokenizers` cuts texts into graphemes first, and JavaScript's
`@huggingface/tokenizers` does not read the rules.
"""

from __future__ import annotations

import functools
import struct
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import Any

BEFORE_MARK, STOP = "\ufdd0", "\ufdd1"  # noncharacters, which no text should contain
NEW = "\u32ff"  # of Unicode 12.1; `tokenizers` 0.23 has the tables of 12.0
FIRST_STAND_IN = 0x10FD00  # private-use characters in place of those that NFKC would change


@functools.lru_cache(maxsize=4)
def rules_of(charsmap: bytes) -> dict[str, str]:
    """Return the rules of a serialized `precompiled_charsmap`: what replaces each string.

    It holds the size of a double-array trie, the trie's units of 32 bits, and the replacements,
    each ended by a zero byte. A leaf's value is the place of its replacement.
    """
    if not charsmap:
        return {}
    size = int.from_bytes(charsmap[:4], "little")
    units, texts = struct.unpack_from(f"<{size // 4}I", charsmap, 4), charsmap[4 + size :]
    children = defaultdict(list)  # indices of the units below each place
    for index, unit in enumerate(units):
        if 0 < (label := unit & (1 << 31 | 0xFF)) < 256:
            children[index ^ label].append(index)
    rules, nodes = {}, [(_offset(units[0]), b"")]
    while nodes:
        place, prefix = nodes.pop()
        for index in children[place]:
            key, child = prefix + bytes([units[index] & 0xFF]), index ^ _offset(units[index])
            nodes.append((child, key))
            if units[index] >> 8 & 1:  # a string ends here
                start = units[child] & 0x7FFFFFFF
                rules[key.decode()] = texts[start : texts.index(b"\0", start)].decode()
    return rules


def _offset(unit):
    """Return the distance of a unit's children (darts-clone)."""
    return unit >> 10 << ((unit & 1 << 9) >> 6)


@functools.lru_cache(maxsize=4)
def normalizers_of(charsmap: bytes) -> tuple[dict[str, Any], ...]:
    """Return the normalizers that apply a serialized `precompiled_charsmap`.

    Args:
        charsmap: The rules; empty: texts are not changed.

    Raises:
        ValueError: If the rules change sequences of characters in another way than NFKC and lower
            case do.
    """
    rules = rules_of(charsmap)
    if not rules:
        return ()
    lowercase = rules.get("A") == "a"
    joined = {x: y for x, y in rules.items() if len(x) > 1 and all(map(_is_known, x))}
    # Composed characters that lower case would change, though the rules do not: "\u0130" only.
    kept = {y for y in joined.values() if lowercase and y.lower() != y and len(y) == 1}
    for source, value in joined.items():
        composed = unicodedata.normalize("NFC", "".join(map(_nfkc, source)))
        if lowercase and composed not in kept:
            composed = composed.lower()
        if composed != value:
            raise ValueError(
                "the SentencePiece model must have normalization rules like nmt_nfkc, got a rule "
                f"from {source!r} to {value!r}"
            )

    def changed(character: str) -> str:
        return _nfkc(character).lower() if lowercase else _nfkc(character)

    special = {}
    for character in map(chr, (*range(0xD800), *range(0xE000, 0x110000))):
        value = rules.get(character, character)
        if character in NEW or (changed(character) != value and _is_known(character)):
            special[character] = value
    values = sorted({*special.values(), *kept})
    unstable = [x for x in values if "".join(map(changed, x)) != x]
    stand_ins = {x: chr(FIRST_STAND_IN + i) for i, x in enumerate(unstable)}
    late = {x for x in special if _is_mark(x) and _nfkc(x) == x}  # composed first, if possible
    early_steps, late_steps = (
        [
            # A removed character still separates a mark from its base.
            replacement(_class(sources), stand_ins.get(value, value) or STOP)
            for value in values
            if (sources := [x for x, y in special.items() if y == value and is_late == (x in late)])
        ]
        for is_late in (False, True)
    )
    steps = [*early_steps, *_compositions(rules, joined), *late_steps]
    steps.append(replacement(f"[{BEFORE_MARK}{STOP}]", ""))
    if lowercase:
        steps += [replacement(_class(x), stand_ins[x]) for x in sorted(kept)]
        steps += [{"type": "Lowercase"}, replacement("\u03c2", "\u03c3")]  # JavaScript writes both
    return (*steps, *(replacement(y, x) for x, y in stand_ins.items()))


def _compositions(rules, joined):
    """Return the normalizers that apply NFKC to single characters, and then compose marks."""
    long = [x for x, y in rules.items() if len(x) == 1 and len(y) > 1]
    later = {x for source in joined for x in source[1:]}
    marks = r"[\p{M}" + _class(x for x in later if not _is_mark(x))[1:]
    canonical = [x for x in joined if all(_nfkc(y) == y for y in x)]
    contexts = "|".join(
        f"(?<={''.join(_class(x) + BEFORE_MARK for x in before)})(?={_class(last)})"
        for before, last in _contexts(canonical)
    )
    return [
        replacement(f"(?<={_class(long)})(?={marks})|(?={_class(filter(_is_mark, long))})", STOP),
        replacement(f"(?={marks})", BEFORE_MARK),
        {"type": "NFKC"},
        replacement(f"{BEFORE_MARK}(?:{contexts})", ""),
        {"type": "NFC"},
    ]


def _contexts(sources: Iterable[str]) -> Iterator[tuple[list[Collection[str]], Collection[str]]]:
    """Yield sets of characters that a mark composes with, one set a place, and the marks."""
    firsts = defaultdict(set)  # by the characters after the first
    for source in sources:
        firsts[source[1:]].add(source[0])
    lasts = defaultdict(set)  # by the other characters
    for rest, first in firsts.items():
        lasts[frozenset(first), rest[:-1]].add(rest[-1])
    middles = defaultdict(list)  # by the characters around
    for (bases, middle), last in lasts.items():
        middles[bases, frozenset(last), len(middle)].append(middle)
    for (bases, marks, length), between in middles.items():
        if length == 1:  # one set for all
            yield [bases, between], marks
        else:
            yield from (([bases, *middle], marks) for middle in between)


def replacement(pattern: str, content: str) -> dict[str, Any]:
    """Return a normalizer or decoder that replaces a regular expression by a text."""
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}


def _class(characters: Iterable[str]) -> str:
    """Return a regular expression of one of some characters."""
    codes = sorted(set(map(ord, characters)))
    starts = [x for i, x in enumerate(codes) if not i or codes[i - 1] < x - 1]
    ends = [x for i, x in enumerate(codes) if i == len(codes) - 1 or codes[i + 1] > x + 1]
    parts = (
        rf"\x{{{x:X}}}" + (rf"-\x{{{y:X}}}" if y > x else "")
        for x, y in zip(starts, ends, strict=True)
    )
    return f"[{''.join(parts)}]"


def _nfkc(text):
    return unicodedata.normalize("NFKC", text)


def _is_mark(character):
    return unicodedata.category(character)[0] == "M"


def _is_known(character):
    """Return whether Python's version of Unicode has a character."""
    return unicodedata.category(character) != "Cn"
