"""Sentences with the sentences before them, as one text for a translator."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from keras_transformer.config import require, require_whole
from keras_transformer.text.pieces import has_words
from keras_transformer.text.tokenizer import Tokenizer, checked_texts

SEPARATOR = "<sep>"  # between the sentences of a text


def in_context(texts: Iterable[str], context_sentences: int) -> Iterator[str]:
    """Yield each sentence after those before it, with `SEPARATOR` between them, for each text.

    The "2+2" of Tiedemann and Scherrer 2017 ("Neural Machine Translation with Extended Context",
    section 3) is `context_sentences=1`.

    Args:
        texts: Sentences. An empty one ends a document: it stays empty, and the next one has no
            context.
        context_sentences: Number of sentences before each, at least 1, as far as the document has
            them.

    Raises:
        ValueError: If the number is out of range, or a sentence is no text or has the separator.
    """
    require_whole("context_sentences", context_sentences, 1)

    def joined():
        window: deque[str] = deque(maxlen=context_sentences + 1)
        for text in texts:
            (text,) = checked_texts([text])
            require(SEPARATOR not in text, "texts", f"{text:.80}", f"text without {SEPARATOR}")
            if text.strip():
                window.append(text.strip())
            else:
                window.clear()
            yield f" {SEPARATOR} ".join(window)

    return joined()


def sentences(text: str) -> list[str]:
    """Return the sentences of a text that `in_context` joined, or of its translation."""
    return [x.strip() for x in text.split(SEPARATOR)]


def reads_context(tokenizer: Tokenizer) -> bool:
    """Return whether `SEPARATOR` is a piece of a tokenizer's source vocabulary."""
    return has_words(tokenizer, [SEPARATOR])
