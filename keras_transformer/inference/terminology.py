"""Translation with a glossary: what lacks a term is searched again, with its terms as phrases."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from keras_transformer.config import require
from keras_transformer.decoding import Phrases
from keras_transformer.inference.inputs import Request
from keras_transformer.inference.pipeline import Hypothesis
from keras_transformer.search import Search
from keras_transformer.text import Tokenizer
from keras_transformer.text.glossary import Glossary, goes_on, is_kept, spellings

LEAST_BEAMS = 6  # of a search with phrases, which gives some to each part of a phrase


@dataclass(frozen=True)
class _Terms(Phrases):
    """The phrases of each text."""

    of_text: Mapping[str, Any] = field(compare=False, repr=False, default_factory=dict)

    def start(self, texts: Sequence[Any], limits: Sequence[int]) -> dict[str, np.ndarray]:
        """Return the state before the first token of the translations of texts."""
        rows = [self.of_text[text] for text in texts]
        for text, row, limit in zip(texts, rows, limits, strict=True):
            need = sum(min(map(len, forms)) for forms in row) + 1
            accepted = f"terms of at most {limit} tokens with EOS, the longest translation"
            require(need <= limit, f"the glossary for {text!r:.60}", f"{need} tokens", accepted)
        return super().start(rows, limits)


def search_with_terms(
    search_texts: Callable[[Request, Search], list[list[Hypothesis]]],
    tokenizer: Tokenizer,
    eos_ids: Sequence[int],
    request: Request,
    search: Search,
) -> list[list[Hypothesis]]:
    """Return the hypotheses of each text; all of them have the terms of the glossary.

    Most translations have the terms of their own accord. Only the texts of which one of the
    hypotheses wanted lacks a term are searched again, see `decoding.Phrases`, with at least 6
    beams.

    Args:
        search_texts: Searches for the hypotheses of a request.
        tokenizer: Tokenizer of the model.
        eos_ids: EOS ids of the model.
        request: The texts; its constraint is a `Glossary`.
        search: Options of the search.

    Raises:
        ValueError: If the tokenizer cannot spell a term, the terms of a text do not fit into the
            longest translation, or the search samples.
    """
    glossary: Glossary = request.constraint
    require(search.temperature is None, "constraint", glossary, "None for samples")
    require(not search.shortlist, "constraint", glossary, "None with shortlist=True")
    spelled = _spelled(tokenizer, glossary)
    terms = [glossary.terms_in(text) for text in request.texts]
    found = search_texts(dataclasses.replace(request, constraint=None), search)
    wanted = search.num_hypotheses or 1

    def lacks(forms, hypotheses):
        return any(not is_kept(forms, x.text) for x in hypotheses[:wanted])

    again = [
        i for i, row in enumerate(terms) if row and any(lacks(forms, found[i]) for forms in row)
    ]
    again = [i for i in again if request.texts[i].strip()]
    if not again:
        return found
    texts = [request.texts[i] for i in again]
    of_text = {
        request.texts[i]: [[x for form in forms for x in spelled[form]] for forms in terms[i]]
        for i in again
    }
    continues = _continues(tokenizer, glossary)
    constraint = _Terms(tuple(eos_ids), tokenizer.fingerprint(), continues, of_text)
    prefixes = request.prefixes and [request.prefixes[i] for i in again]
    changes: dict[str, Any] = dict(texts=texts, prefixes=prefixes, constraint=constraint)
    beams = max(LEAST_BEAMS, search.beam_size)
    more = search_texts(
        dataclasses.replace(request, **changes),
        dataclasses.replace(search, beam_size=beams, num_hypotheses=wanted),
    )
    for i, hypotheses in zip(again, more, strict=True):
        found[i] = hypotheses
    return found


@functools.lru_cache(maxsize=8)
def _spelled(tokenizer, glossary):
    """Return the sequences of ids of each form: as first word, later, and with a capital."""
    before, after = map(len, tokenizer.target_frame)

    def content(texts):
        return [ids[before : len(ids) - after] for ids in tokenizer.encode_target(texts)]

    (start,) = content(["a"])
    found = {}
    for form in glossary.forms():
        both = spellings(form)
        first, later = content(both), content([f"a {x}" for x in both])
        later = [x[len(start) :] for x in later if x[: len(start)] == start]
        ways = dict.fromkeys(map(tuple, [*first, *later]))
        found[form] = [list(x) for x in ways if x and tokenizer.unk_id not in x]
        is_spelled = bool(first[0]) and tokenizer.unk_id not in first[0]
        accepted = "text that the vocabulary of the translator can spell"
        require(is_spelled, "a term of the glossary", form, accepted)
    return found


@functools.lru_cache(maxsize=8)
def _continues(tokenizer, glossary):
    """Return which ids go on with a word (V,), boolean: they are decoded after a form."""
    anchor = _spelled(tokenizer, glossary)[glossary.forms()[0]][0]
    word, *texts = tokenizer.decode_target(
        [anchor, *([*anchor, i] for i in range(tokenizer.target_vocab_size))]
    )
    return np.array([x.startswith(word) and goes_on(x[len(word) :]) for x in texts])
