"""`WordTokenizer`, a tokenizer with one id per word, and with classes for rare words."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from keras_transformer.config import require_whole
from keras_transformer.system.files import read_json
from keras_transformer.text.tokenizer import Tokenizer, checked_texts, round_up

SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")
FILES = ("source.json", "target.json")


def word_class(word: str) -> str:
    """Return the class of a word: capitals, digits, hyphen, and its last two letters if it is long.

    "Painted" has the class "<A~ed>", "1,200" the class "<0>". Parsers replace rare words by their
    classes (Petrov et al. 2006).
    """
    shape = "A" if word[:1].isupper() else "a" if word[:1].isalpha() else ""
    shape += "A" if len(word) > 1 and word.isupper() else ""
    shape += "0" if re.search(r"\d", word) else ""
    shape += "-" if "-" in word.strip("-") else ""
    letters = word.strip("-").lower()
    return f"<{shape}{'~' + letters[-2:] if letters[-4:].isalpha() and len(letters) > 4 else ''}>"


class WordTokenizer(Tokenizer):
    """A tokenizer of texts whose words are separated by spaces, with one id per word.

    A source word that was rare in training gets the id of its `word_class`, or `unk_id` if the
    class was rare, too. With the probability `sampling`, any source word gets the id of its class,
    so that classes are trained as well. Each target word of the training texts has an id; others
    get `unk_id`.

    Args:
        source_words, target_words: The vocabularies in the order of ids, each beginning with the
            four tokens `SPECIAL`.
    """

    def __init__(self, source_words: Sequence[str], target_words: Sequence[str]):
        self._source, self._target = (
            {word: i for i, word in enumerate(words)} for words in (source_words, target_words)
        )
        self.shared = False
        self.pad_id, self.unk_id, self.bos_id, self.eos_id = range(4)
        self.source_vocab_size = round_up(len(self._source))
        self.target_vocab_size = round_up(len(self._target))

    @classmethod
    def train(
        cls, source_texts: Iterable[str], target_texts: Iterable[str], *, min_count: int = 2
    ) -> WordTokenizer:
        """Make the vocabularies from training texts.

        Args:
            source_texts, target_texts: Texts of words separated by spaces.
            min_count: Minimum number of occurrences of a source word, or of a class, to get an id.

        Raises:
            ValueError: If texts are not strings, or `min_count` is not a whole number from 1.
        """
        require_whole("min_count", min_count, 1)
        counts: Counter[str] = Counter()
        for text in checked_texts(source_texts, "source_texts"):
            counts.update(text.split())
        classes: Counter[str] = Counter()
        for word, count in counts.items():
            classes[word_class(word)] += count
        frequent = [
            sorted(x for x, n in word_counts.items() if n >= min_count)
            for word_counts in (classes, counts)
        ]
        targets = {x for text in checked_texts(target_texts, "target_texts") for x in text.split()}
        source_words = dict.fromkeys([*SPECIAL, *frequent[0], *frequent[1]])
        return cls(list(source_words), [*SPECIAL, *sorted(targets - set(SPECIAL))])

    def pieces_of(self, language: str) -> list[str]:
        """Return the words of "source" or "target" in the order of their ids."""
        return list(getattr(self, f"_{language}"))

    def _encode(self, side, texts, sampling, seed):
        random = Random(seed)
        rows = []
        for text in texts:
            ids = []
            for word in text.split():
                known = None if word in SPECIAL else side.get(word)
                if side is self._source and (known is None or random.random() < sampling):
                    known = side.get(word_class(word))
                ids.append(self.unk_id if known is None else known)
            rows.append([*ids, self.eos_id])
        return rows

    def _decode(self, side, ids):
        words = dict(enumerate(side))
        return [" ".join(words.get(i, SPECIAL[1]) for i in row) for row in ids]

    def _spans(self, side, text):
        return [match.span() for match in re.finditer(r"\S+", text)]

    def _files(self) -> dict[str, bytes]:
        return {
            name: json.dumps(list(side), ensure_ascii=False).encode()
            for name, side in zip(FILES, (self._source, self._target), strict=True)
        }

    def _config(self) -> dict[str, Any]:
        return {}

    @classmethod
    def _load(cls, folder: Path, manifest: dict[str, Any]) -> WordTokenizer:
        return cls(*(read_json(folder / name) for name in FILES))
