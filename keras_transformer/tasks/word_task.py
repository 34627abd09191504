"""Base class of the objects that predict something for each word of a text."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from keras_transformer.models import ESM
from keras_transformer.models.encoder_only import EncoderOnly
from keras_transformer.saved.contents import read_config
from keras_transformer.tasks.encoder_task import EncoderTask
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.text.tokenizer import checked_texts

# Each punctuation mark at the ends of a word is a word of its own, except "@" and "#" at its start.
WORD = re.compile(r"[@#]?\w(?:\S*\w)?|[^\w\s]")
RESIDUE = re.compile(r"\S")

Places = list[tuple[int, int]]  # start and end of each word, in characters


class WordTask(EncoderTask):
    """Base class: an encoder that predicts something for each word, from the word's first token.

    Args:
        model: Encoder with the head "token_classification".
        tokenizer: Tokenizer that the model was trained with.
        spaced_words: Whether words were encoded with the space before them in training. It is false
            for folders without this field, which older versions wrote.

    Raises:
        ValueError: If the model has another head, or the tokenizer has more pieces than the model.
    """

    def __init__(self, model: EncoderOnly, tokenizer: TextTokenizer, spaced_words: bool = True):
        super().__init__(model, tokenizer)
        self.spaced_words = spaced_words

    @classmethod
    def of(cls, folder: str | os.PathLike, model: EncoderOnly, tokenizer: TextTokenizer) -> Self:
        """Make the tagger or regressor from a model, a tokenizer and a folder's `config.json`."""
        return cls(model, tokenizer, read_config(folder, cls.kind.what).get("spaced_words") is True)

    def _facts(self):
        return {"spaced_words": self.spaced_words}

    def _of_texts(
        self, texts: Sequence[str], tokens_per_batch: int, strict: bool
    ) -> tuple[list[Places], list[list[np.ndarray | None]]]:
        """Return the start and end of each word of each text, and the result for each word.

        The result is None for words after the cut of a text that is too long.
        A text is split into words as `TokenTagger.tag` describes.
        """
        texts = checked_texts(texts)
        are_letters = isinstance(self.model, ESM)
        word = RESIDUE if are_letters else WORD
        places = [[match.span() for match in word.finditer(text)] for text in texts]
        words = [
            [text[start:end] for start, end in spans]
            for text, spans in zip(texts, places, strict=True)
        ]
        if self.spaced_words and not are_letters:  # encode words with the spaces of the text
            encode = functools.partial(self.tokenizer.encode_places, texts, places)
            return places, self._results(encode, words, tokens_per_batch, strict)
        return places, self._of_words(words, tokens_per_batch, strict)

    def _of_words(
        self, sentences: Sequence[Sequence[str]], tokens_per_batch: int, strict: bool
    ) -> list[list[np.ndarray | None]]:
        """Return the result for each word of split sentences; None for words after a cut."""
        encode = functools.partial(self.tokenizer.encode_words, sentences, spaced=self.spaced_words)
        return self._results(encode, sentences, tokens_per_batch, strict)

    def _results(
        self,
        encode: Callable[..., Any],
        sentences: Sequence[Sequence[str]],
        tokens_per_batch: int,
        strict: bool,
    ) -> list[list[np.ndarray | None]]:
        """Return the result for each word; None for words after the cut of a long sentence.

        Args:
            encode: Function that returns, for each sentence, its token ids and the index of the
                first token of each word. It accepts `max_length`.
            sentences: The words of each sentence.
            tokens_per_batch: Maximum tokens in a batch, padding included.
            strict: Whether a sentence that is too long raises ValueError.
        """
        encoded = encode()
        full = [i for i, words in enumerate(sentences) if len(words)]
        long = [self._is_long(encoded[i][0], " ".join(sentences[i]), strict) for i in full]
        if any(long):
            encoded = encode(max_length=self.model.config.max_length)
        ids = [encoded[i][0] for i in full]
        results: list[list[np.ndarray | None]] = [[] for _ in sentences]
        for i, row, table in zip(full, ids, self._run(ids, tokens_per_batch), strict=True):
            results[i] = [table[start] if start < len(row) else None for start in encoded[i][1]]
        return results
