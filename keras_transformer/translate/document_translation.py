"""Translation of documents: the model reads each sentence after the sentences that precede it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keras_transformer.config import require
from keras_transformer.search import TRANSLATE, Search, spelled_out
from keras_transformer.text.context import SEPARATOR, in_context, reads_context, sentences
from keras_transformer.text.tokenizer import checked_texts
from keras_transformer.translate.translator import Translator


@spelled_out(Search, TRANSLATE)
def translate_documents(
    translator: Translator, texts: Sequence[str], context_sentences: int = 1, **options: Any
) -> list[str]:
    """Translate each sentence with its context, the sentences that precede it in its document.

    ```python
    translator = Translator.load("saved_models/documents")
    translate_documents(translator, ["Anna bought a lamp.", "It was cheap."], 2)
    ```

    The model translates a sentence and its context as one text; the last sentence of that
    translation is the result. If source and translation have different numbers of sentences, the
    sentence is translated again without context. The prompt of a language model asks for the
    translation of the last sentence alone.

    Args:
        translator: A translator that was trained with `context_sentences`, or a language model
            whose prompt has `with_context`.
        texts: Sentences in their order; an empty one ends a document.
        context_sentences: Maximum number of earlier sentences in the context, at least 1; best
            is the number that the model was trained with. Fewer are read if the text would be
            longer than the model's `max_length`.
        options: Options of `Translator.translate`, except `prefixes`.

    Returns:
        One translation per text; "" for an empty text.

    Raises:
        ValueError: If an option is out of range, or the translator does not read context.
    """
    windows = list(in_context(checked_texts(texts), context_sentences))
    return translate_windows(translator, windows, **options)


def translate_windows(translator: Translator, windows: Sequence[str], **options: Any) -> list[str]:
    """Return the translation of the last sentence of each window.

    Args:
        translator, options: See `translate_documents`.
        windows: Texts from `text.context.in_context`: a sentence after its context.
    """
    require("prefixes" not in options, "prefixes", options.get("prefixes"), "left out")
    accepted = "a saved one that was trained with context_sentences"
    require(reads_context(translator.tokenizer), "translator", translator, accepted)
    windows = _shortened(translator, windows)
    if getattr(translator.tokenizer, "has_context", False):  # its reply is one sentence
        return translator.translate(windows, **options)
    rows = [sentences(x) for x in translator.translate(windows, **options)]
    sources = [sentences(x) for x in windows]
    torn = [i for i, row in enumerate(sources) if len(row) != len(rows[i])]
    alone = translator.translate([sources[i][-1] for i in torn], **options)
    for i, translation in zip(torn, alone, strict=True):
        rows[i] = [translation.replace(SEPARATOR, "")]
    return [row[-1] for row in rows]


def _shortened(translator, windows):
    """Return the windows; if one is too long for the model, its first sentences are left out."""
    windows = list(windows)
    long: Sequence[int] = range(len(windows))
    while long := [i for i in long if SEPARATOR in windows[i]]:
        ids = translator.tokenizer.encode_source([windows[i] for i in long])
        limit = translator.config.max_length
        long = [i for i, row in zip(long, ids, strict=True) if len(row) > limit]
        for i in long:
            windows[i] = windows[i].partition(SEPARATOR)[2].strip()
    return windows
