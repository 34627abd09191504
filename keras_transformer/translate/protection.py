"""Search with protected spans, which numbers replace in the source during the search."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from keras_transformer.running.inputs import Request
from keras_transformer.search import Search
from keras_transformer.text import Tokenizer
from keras_transformer.text.protected import (
    PLACEHOLDERS,
    Masked,
    is_copied,
    is_protected,
    masked,
)
from keras_transformer.translate.engines.engine import Hypothesis

Numbers = Mapping[tuple[str, ...], bool]  # the result of `Masked.copies`


def search_protected(
    search_with_numbers: Callable[[Request, Sequence[Numbers]], list[list[Hypothesis]]],
    tokenizer: Tokenizer,
    max_length: int,
    request: Request,
) -> list[list[Hypothesis]]:
    """Return the hypotheses of each text, best first, with the protected spans of the text.

    A text of nothing but protected spans and numbers, without prefix or terms, is its own
    translation. In other texts, a number replaces each span before the search, see
    `text.protected`. The search requires all numbers of the text as it requires terms; then each
    span replaces its number.

    Args:
        search_with_numbers: Function from a request, and for each of its texts the numbers that a
            translation should contain, to the hypotheses of each text.
        tokenizer: Tokenizer of the model.
        max_length: The model's `max_length`.
        request: The texts; its constraint is a `Glossary`, or None.
    """
    request = request.read(tokenizer)
    results = [[Hypothesis(text.strip(), 0.0)] for text in request.texts]
    sources = _masked(tokenizer, request)
    part = request.part([*sources])
    texts, ids = [x.text for x in sources.values()], [*(part.ids or ())]
    changed = [i for i, text in enumerate(part.texts) if texts[i] != text]
    for i, row in zip(changed, tokenizer.encode_source([texts[i] for i in changed]), strict=True):
        ids[i] = row
    numbers = [
        x.copies() if len(row) <= max_length else {}  # cut texts may lose numbers
        for x, row in zip(sources.values(), ids, strict=True)
    ]
    part = dataclasses.replace(part, texts=texts, ids=ids)
    lists = search_with_numbers(part, numbers)
    for (i, source), hypotheses in zip(sources.items(), lists, strict=True):
        results[i] = [Hypothesis(source.restored(x.text), x.score) for x in hypotheses]
    return results


def with_all_numbers(
    engine: Callable[[], Any],
    tokenizer: Tokenizer,
    request: Request,
    search: Search,
    numbers: Sequence[Numbers],
    results: list[list[Hypothesis]],
) -> list[list[Hypothesis]]:
    """Return the results of a plain search, after a new search for texts that lack a number.

    Args:
        engine: Returns the `KerasEngine` that searches again.
        tokenizer: Its tokenizer.
        request: The texts.
        search: Options of the search.
        numbers: For each text the numbers that its translation should contain.
        results: Hypotheses of each text; those of texts that lack a number are replaced.
    """
    count = search.num_hypotheses or 1
    lacking = [
        i
        for i, forms in enumerate(numbers)
        if not all(is_copied(x, y.text) for x in forms for y in results[i][:count])
    ]
    if lacking:
        required = [numbers[i] for i in lacking]
        part = request.part(lacking)
        again = engine().search_with_numbers(tokenizer, part, search, required)
        for i, hypotheses in zip(lacking, again, strict=True):
            results[i] = hypotheses
    return results


def _masked(tokenizer, request):
    """Return the masked sources by index, without texts that are their own translation."""
    (spelled,) = tokenizer.encode_target([" ".join(PLACEHOLDERS)])
    placeholders = () if tokenizer.unk_id in spelled else PLACEHOLDERS
    sources: dict[int, Masked] = {}
    for i, text in enumerate(request.texts):
        terms = request.constraint.terms_in(text) if request.constraint is not None else []
        prefix = request.prefixes[i] if request.prefixes is not None else ""
        if prefix or terms or not is_protected(text):
            taken = f"{text} {prefix} {terms}"
            free = [x for x in placeholders if x not in taken]
            sources[i] = masked(text, free, at_ends=not prefix)
    return sources
