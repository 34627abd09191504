"""The tokenizers of BLEU and TER, chosen by language as sacreBLEU recommends."""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import sacrebleu

from keras_transformer.config import require

TOKENIZERS = tuple(sacrebleu.BLEU.TOKENIZERS)
# sacreBLEU's tokenizers, with the codes of the languages that they are for. For the languages of
# "char", which are written without spaces, sacreBLEU recommends no tokenizer: characters count.
_CODES = {
    "zh": "zh zho chi cmn cn yue wuu nan hak gan hsn cdo lzh chinese cantonese",
    "ja-mecab": "ja jpn jp japanese",
    "ko-mecab": "ko kor korean",
    "char": "th tha thai lo lao km khm khmer my mya bur burmese bo bod tib dz dzo shn",
}
_OF_LANGUAGE = {code: name for name, codes in _CODES.items() for code in codes.split()}
_OF_SCRIPT = dict.fromkeys(("THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN"), "char")
_OF_SCRIPT |= {"CJK": "zh", "HIRAGANA": "ja-mecab", "KATAKANA": "ja-mecab", "HANGUL": "ko-mecab"}
_MOST = 20_000  # maximum number of letters by which a script is determined


def tokenizer_of(language: str | None, texts: Iterable[str] = ()) -> str:
    """Return the name of the tokenizer that sacreBLEU recommends for a target language.

    Args:
        language: Code of the language, such as "zh", "zho_Hans", "zh_CN" or "jpn_Jpan"; None:
            unknown.
        texts: References; their script decides if the language is unknown or needs no special
            tokenizer.

    Returns:
        "zh" for Chinese, "ja-mecab" for Japanese, "ko-mecab" for Korean; "char" for languages in
        the Thai, Lao, Khmer, Burmese or Tibetan script, for which sacreBLEU recommends no
        tokenizer; else "13a".
    """
    main, *others = re.split("[-_]", (language or "").lower())
    if "latn" in others:  # romanised text has spaces
        return "13a"
    return _OF_LANGUAGE.get(main) or _of_texts(texts)


def _of_texts(texts: Iterable[str]) -> str:
    """Return the tokenizer for the script that most letters of the texts are in."""
    counts: Counter[str] = Counter()
    letters = (letter for text in texts for letter in text if letter.isalpha())
    for _, letter in zip(range(_MOST), letters, strict=False):
        script = unicodedata.name(letter, "").partition(" ")[0]
        counts[_OF_SCRIPT.get(script, "13a")] += 1
    if 20 * counts["ja-mecab"] > counts["zh"]:  # Japanese has Chinese characters, too
        counts["ja-mecab"] += counts.pop("zh", 0)
    return max(counts, key=lambda name: counts[name], default="13a")


def bleu_metric(
    tokenize: str | None = None,
    language: str | None = None,
    texts: Iterable[str] = (),
    **options: Any,
) -> sacrebleu.BLEU:
    """Return sacreBLEU's BLEU with a tokenizer.

    Args:
        tokenize: Name of the tokenizer, one of `TOKENIZERS`; None: that of `tokenizer_of`. If this
            cannot be loaded, because MeCab is not installed, "char" is used, with a warning.
        language, texts: See `tokenizer_of`.
        options: Further arguments of `sacrebleu.BLEU`.

    Raises:
        ValueError: If the tokenizer is unknown, or cannot be loaded.
    """
    name = tokenizer_of(language, texts) if tokenize is None else tokenize
    require(name in TOKENIZERS, "tokenize", name, f"one of {sorted(TOKENIZERS)}")
    # `force` suppresses sacreBLEU's warning about tokenised text, which "none" expects.
    options = {"force": name == "none", **options}
    try:
        return sacrebleu.BLEU(tokenize=name, **options)
    except (RuntimeError, ImportError, OSError) as error:  # no MeCab, or a failed download
        if tokenize is None:
            warnings.warn(
                f"BLEU counts characters: {name} needs `pip install 'sacrebleu[{name[:2]}]'`",
                stacklevel=2,
            )
            return sacrebleu.BLEU(tokenize="char", **options)
        told = " ".join(str(error).split())
        accepted = "a tokenizer that can be loaded"
        raise ValueError(f"tokenize must be {accepted}, got {name!r}: {told}") from error


def lengths_of(texts: Sequence[str]) -> tuple[str, list[int]]:
    """Return the unit of the lengths of texts, and the length of each.

    The unit is "words", separated by spaces. For scripts without spaces it is "characters", of
    which white space does not count.

    Args:
        texts: Texts in one language.
    """
    if tokenizer_of(None, texts) in ("13a", "ko-mecab"):
        return "words", [len(text.split()) for text in texts]
    return "characters", [sum(map(len, text.split())) for text in texts]


def ter_metric(language: str | None = None, texts: Iterable[str] = ()) -> sacrebleu.TER:
    """Return sacreBLEU's TER; in Chinese and Japanese, characters count as words.

    Args:
        language, texts: See `tokenizer_of`.
    """
    is_asian = tokenizer_of(language, texts) in ("zh", "ja-mecab")
    return sacrebleu.TER(normalized=is_asian, asian_support=is_asian)
