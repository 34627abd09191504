"""Translation of documents: each sentence is translated together with those before it."""

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
    """Translate sentences with those before them, so that a pronoun can follow its noun.

    ```python
    translator = Translator.load("saved_models/documents")
    translate_documents(translator, ["Anna bought a lamp.", "It was cheap."], 2)
    ```

    Each sentence is translated once for itself and once for each that it is the context of; the
    last sentence of a translation counts. Where the number of sentences changes in translation, the
    sentence is translated alone.

    Args:
        translator: A translator that was trained with `context_sentences`.
        texts: Sentences in their order; an empty one ends a document.
        context_sentences: Number of sentences before each, at least 1; best that of the training.
            Fewer are read where the text would be longer than the model's `max_length`.
        options: Options of `Translator.translate` but `prefixes`.

    Returns:
        One translation per text; that of an empty one is empty.

    Raises:
        ValueError: If an option is out of range, or the translator was trained without context.
    """
    windows = list(in_context(checked_texts(texts), context_sentences))
    return translate_windows(translator, windows, **options)


def translate_windows(translator: Translator, windows: Sequence[str], **options: Any) -> list[str]:
    """Return the translation of the last sentence of each text of `in_context`.

    Args:
        translator, options: See `translate_documents`.
        windows: What `in_context` yields.
    """
    require("prefixes" not in options, "prefixes", options.get("prefixes"), "left out")
    fits = reads_context(translator.tokenizer)
    require(fits, "translator", translator, "a saved one that was trained with context_sentences")
    windows = _shortened(translator, windows)
    found = [sentences(x) for x in translator.translate(windows, **options)]
    sources = [sentences(x) for x in windows]
    torn = [i for i, row in enumerate(sources) if len(row) != len(found[i])]
    alone = translator.translate([sources[i][-1] for i in torn], **options)
    for i, translation in zip(torn, alone, strict=True):
        found[i] = [translation.replace(SEPARATOR, "")]
    return [row[-1] for row in found]


def _shortened(translator, windows):
    """Leave out the first sentences of windows that the model cannot read."""
    windows = list(windows)
    long = range(len(windows))
    while long := [i for i in long if SEPARATOR in windows[i]]:
        ids = translator.tokenizer.encode_source([windows[i] for i in long])
        limit = translator.config.max_length
        long = [i for i, row in zip(long, ids, strict=True) if len(row) > limit]
        for i in long:
            windows[i] = windows[i].partition(SEPARATOR)[2].strip()
    return windows
