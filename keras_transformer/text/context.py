"""Sentences joined with earlier ones, as input of a translator of documents."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from keras_transformer.config import require, require_whole
from keras_transformer.text.pieces import has_words
from keras_transformer.text.tokenizer import Tokenizer, checked_texts

SEPARATOR = "<sep>"  # written between joined sentences


def in_context(texts: Iterable[str], context_sentences: int) -> Iterator[str]:
    """Yield each sentence after its context, earlier sentences, joined by `SEPARATOR`.

    The "2+2" of Tiedemann and Scherrer 2017 ("Neural Machine Translation with Extended Context",
    section 3) is `context_sentences=1`.

    Args:
        texts: Sentences in order. An empty one ends a document: an empty text is yielded for it,
            and the next sentence has no context.
        context_sentences: Maximum number of earlier sentences of the same document, at least 1.

    Raises:
        ValueError: If the number is out of range, or a sentence is not a string or contains the
            separator.
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
    """Split a text that `in_context` yielded, or its translation, into its sentences."""
    return [x.strip() for x in text.split(SEPARATOR)]


def reads_context(tokenizer: Tokenizer) -> bool:
    """Return whether a tokenizer can encode the texts of `in_context` for its model.

    If so, `SEPARATOR` is a piece of its source vocabulary, or its prompt has a template with
    context.
    """
    return getattr(tokenizer, "has_context", False) or has_words(tokenizer, [SEPARATOR])
