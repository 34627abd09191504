"""Noise in training pairs: casing, marks, typos, emoji, tags, text to copy, joined pairs."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from keras_transformer.config import is_number, require
from keras_transformer.text.tokenizer import checked_pairs

Pairs = list[tuple[str, str]]
MOST_SENTENCES = 4  # maximum number of pairs that are joined to one
EMOJI = (
    *("😀", "😂", "😊", "😍", "😉", "😎", "😢", "😡", "🤔", "🙏"),
    *("👍", "👋", "🎉", "🔥", "✨", "❤️", "🚀", "☕", "🌞", "🐶"),
)
# Letters of other scripts, for made-up words that are copied.
SCRIPTS = (
    "абвгдежзийклмнопрстуфхцчшщыьэюя",
    "αβγδεζηθικλμνξοπρστυφχψω",
    "ابتثجحخدذرزسشصضطظعغفقكلمنهوي",
    "あいうえおかきくけこさしすせそたちつてとなにのはまやらわんアイウカクサスタナノマリルン",
    "अआइउकगचजतदनपबमयरलवसह",
    "가나다라마바사아자차카타파하",
    "人日本大学生今天我你是的中国語水山火木東西南北上下",
)
MARKS = ("...", "?!", "-", "–", "* * *", "1.", "a)", ";-)", "?", "!", "???", "=", "( )", "***", "~")
LETTERS = "abcdefghijklmnopqrstuvwxyz"
SYLLABLES = ("ka", "lo", "mi", "ter", "son", "va", "ber", "ni", "dos", "ru", "pel", "an", "or")
_WORD = re.compile(r"[^\W\d_]{4,}")
_MARKS = re.compile(r"[.,!?;:¿¡…]")


def with_noise(pairs: Sequence[tuple[str, str]], share: float, seed: int = 0) -> Pairs:
    """Return training pairs, some of which are changed as people type and paste text.

    A changed pair has one of these changes, drawn at random:

    - only the source in lower case, without punctuation marks, or with a typo;
    - both sides in capitals, or between HTML tags;
    - the same text added to both sides: emoji, an address, a number, a name, words of another
      script and the like;
    - such text, or punctuation marks, in place of both sides;
    - the pair joined with one to three others.

    The translator learns to translate such lines, and to copy what has no translation (Bogoychev et
    al. 2023, "OpusCleaner and OpusTrainer").

    Args:
        pairs: (source, target) texts.
        share: Share of the pairs that are changed, in [0, 1].
        seed: Seed of the draws.

    Raises:
        ValueError: If `share` is out of range or an item is not a pair of texts.
    """
    require(is_number(share) and 0 <= share <= 1, "share", share, "in [0, 1]")
    pairs = checked_pairs(pairs)
    rng, changed = np.random.default_rng(seed), list(pairs)
    for i in np.flatnonzero(rng.random(len(pairs)) < share):
        change = CHANGES[rng.integers(len(CHANGES))]
        changed[i] = change(*pairs[i], rng, pairs)
    return changed


def _lower(source, target, rng, pairs):
    return source.lower(), target


def _capitals(source, target, rng, pairs):
    return source.upper(), target.upper()


def _unmarked(source, target, rng, pairs):
    return _MARKS.sub("", source).strip() or source, target


def _with_typo(source, target, rng, pairs):
    """Exchange, drop or double a letter within a word of the source."""
    words = list(_WORD.finditer(source))
    if not words:
        return source, target
    word = words[rng.integers(len(words))]
    i = word.start() + rng.integers(1, len(word[0]) - 1)
    middle = (source[i + 1] + source[i], source[i + 1], source[i] * 2 + source[i + 1])
    return source[:i] + middle[rng.integers(3)] + source[i + 2 :], target


def _with_emoji(source, target, rng, pairs):
    emoji = EMOJI[rng.integers(len(EMOJI))] * int(rng.choice([1, 1, 1, 2, 3]))
    return f"{source} {emoji}", f"{target} {emoji}"


def _with_copied(source, target, rng, pairs):
    """Append or prepend the same string, which has no translation, to both sides."""
    text = COPIED[rng.integers(len(COPIED))](rng)
    if rng.random() < 0.3:
        return f"{text}: {source}", f"{text}: {target}"
    return f"{source} {text}", f"{target} {text}"


def _copied_alone(source, target, rng, pairs):
    """Return one to three strings without a translation, or punctuation marks, as both sides."""
    if rng.random() < 0.2:
        text = str(rng.choice(MARKS))
    else:
        makers = rng.integers(len(COPIED), size=rng.choice([1, 1, 2, 3]))
        text = " ".join(COPIED[i](rng) for i in makers)
    return text, text


def _joined(source, target, rng, pairs):
    """Join a pair with one to three others."""
    others = [pairs[i] for i in rng.integers(len(pairs), size=rng.integers(1, MOST_SENTENCES))]
    sources, targets = zip((source, target), *others, strict=True)
    return " ".join(sources), " ".join(targets)


def _in_tags(source, target, rng, pairs):
    """Put both sides into a pair of HTML tags."""
    tag = rng.choice(["b", "i", "p", "em", "span", "li"])
    return f"<{tag}>{source}</{tag}>", f"<{tag}>{target}</{tag}>"


CHANGES = (
    *(_lower, _capitals, _unmarked, _with_typo, _with_emoji),
    *(_with_copied, _copied_alone, _joined, _in_tags),
)


def _name(rng):
    """Return a made-up word."""
    return "".join(rng.choice(SYLLABLES, size=rng.integers(2, 4)))


def _number(rng):
    return str(rng.integers(10 ** rng.integers(1, 7)))


def _foreign(rng):
    """Return one to four made-up words of another script."""
    letters = list(SCRIPTS[rng.integers(len(SCRIPTS))])
    sizes = rng.integers(1, 8, size=rng.integers(1, 5))
    return " ".join("".join(rng.choice(letters, size=size)) for size in sizes)


COPIED = (
    lambda rng: f"https://www.{_name(rng)}.com/{_name(rng)}?id={_number(rng)}",
    lambda rng: f"{_name(rng)}@{_name(rng)}.org",
    lambda rng: f"@{_name(rng)}",
    lambda rng: f"#{_name(rng)}",
    lambda rng: f"{_name(rng).title()} {_name(rng).title()}",
    lambda rng: f"{_name(rng).upper()}-{_number(rng)}",
    lambda rng: f"({_number(rng)})",
    lambda rng: f"{_number(rng)}.{rng.integers(100):02d}",
    lambda rng: f"+49 {_number(rng)} {_number(rng)}",
    lambda rng: f"{{{_name(rng)}}}",
    lambda rng: "".join(rng.choice(list(LETTERS), size=rng.integers(3, 9))),
    _foreign,
)
