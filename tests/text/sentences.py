"""Sentences for tests of tokenizers, and tokenizers trained on them."""

import functools

from keras_transformer.text import SentencePieceTokenizer

ENGLISH = [
    f"{who} {does} {what} {where}."
    for who in ("The dog", "A woman", "My friend")
    for does in ("sees", "is looking for", "doesn't want")
    for what in ("the ball", "a green house", "3.5 apples", "two-year-old children")
    for where in ("in the garden", "by the river", "here")
]
GERMAN = [
    f"{who} {does} {what} {where}."
    for who in ("Der Hund", "Eine Frau", "Mein Freund", "Das Mädchen")
    for does in ("sieht", "sucht", "mag")
    for what in ("den Ball", "ein grünes Haus", "3,5 Äpfel", "die Straße")
    for where in ("im Garten", "am Fluss", "hier")
]
UNICODE = [
    "naïve café, Straße, Ærøskøbing",
    "日本語のテキスト 中文 한국어",
    "👩‍👩‍👧‍👦 🏳️‍🌈 🐶!",
    "e\u0301 a\u0323\u0308 q\u0307\u0323",
    "ﬁne １２３ ½ ㎏ …",
    "عربي עברית हिन्दी ไทย",
    "tab\there, a zero\u200bwidth space, a\u00a0no-break one",
    "▁ <unk> <s> </s> <pad> <0x41> <unused0>",
    "",
    "   ",
]


@functools.cache
def trained(kind="bpe", shared=True, lowercase=False, byte_fallback=True):
    return SentencePieceTokenizer.train(
        ENGLISH,
        GERMAN,
        vocab_size=400,
        kind=kind,
        shared=shared,
        lowercase=lowercase,
        byte_fallback=byte_fallback,
    )
