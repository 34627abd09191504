"""Odd texts for tests of tokenizers: marks, scripts, white space, special pieces, in any order."""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Sequence

CHUNKS = (
    "\u2581", "</s>", "<unk>", "<s>", "<0x41>", "<unused0>", "<extra_id_0>", ">>de<<", ">>en<< ",
    ">>xx<<", "\u2581>>de<<", " \u2581>>en<<", "\u200d", "\U0001f469\u200d\U0001f469\u200d",
    "\U0001f1e9\U0001f1ea", "\U0001f3f4\U000e0067\U000e007f", "\ufb01", "\u00bd", "\u32ff",
    "\uff21\uff22\uff43\uff11", "\u30ab\u3099", "\uff76\uff9e", "\t", "\n", "\r\n", "\x00",
    "\x01\x02", "\x7f", "\x85", "\u00a0", "\u3000", "     ", " " * 40, "\ufeff", "\u200b",
    "\u2028", "\uff5e", "\ufffd", " \u2047 ", "$&", "\\n", "\u0344", "\u03b1\u0342\u0345",
    "\u1e9e\u00df\u0130\u0131\u03a3", "\ue000", "\ufffe",
)  # fmt: skip
# First and last characters of scripts and blocks.
SCRIPTS = (
    *[(0x20, 0x7E)] * 6, *[(0xA1, 0x24F)] * 3, (0x370, 0x3FF), (0x400, 0x52F), (0x590, 0x5F4),
    (0x600, 0x6FF), (0x900, 0x97F), (0xE01, 0xE5B), (0xF00, 0xFDA), (0x1200, 0x137C),
    (0x13A0, 0x13FD), (0x1780, 0x17F9), (0x1E00, 0x1FFF), (0x2000, 0x22FF), (0x2460, 0x24FF),
    (0x3000, 0x318E), (0x3200, 0x33FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xF900, 0xFDCF),
    (0xFE00, 0xFEFF), (0xFF01, 0xFFEE), (0x10330, 0x1034A), (0x1D400, 0x1D7FF), (0x1E900, 0x1E95F),
    (0x1F300, 0x1F64F), (0x20000, 0x20100),
)  # fmt: skip


def odd_texts(count: int, words: Sequence[str] = ("dog",), seed: int = 0) -> list[str]:
    """Return odd texts, the same for the same arguments."""
    rng = random.Random(seed)

    def character():
        while True:
            character = chr(rng.randint(*rng.choice(SCRIPTS)))
            if unicodedata.category(character) != "Cn":
                return character

    def marks():
        base = rng.choice("aeiounAEOs\u03b1\uac00\u1100\uff41\ufb01")
        return base + "".join(chr(rng.randint(0x300, 0x36F)) for _ in range(rng.randint(1, 3)))

    def syllable():
        last = rng.choice(["", chr(rng.randint(0x11A8, 0x11C2))])
        return chr(rng.randint(0x1100, 0x1112)) + chr(rng.randint(0x1161, 0x1175)) + last

    kinds = (
        *[lambda: rng.choice(words) + rng.choice(["", " "])] * 6,
        *[lambda: rng.choice(CHUNKS)] * 5,
        *[marks] * 3,
        syllable,
        *[lambda: " " * rng.randint(1, 4)] * 2,
        *[lambda: "".join(character() for _ in range(rng.randint(1, 4)))] * 3,
    )
    return ["".join(rng.choice(kinds)() for _ in range(rng.randint(1, 9))) for _ in range(count)]
