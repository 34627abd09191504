"""Translation with a glossary: texts that lack a term are searched again with forced phrases."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from keras_transformer.config import require
from keras_transformer.decoding import Phrases
from keras_transformer.running.inputs import Request, encoded_prefixes
from keras_transformer.search import Search
from keras_transformer.text import Tokenizer
from keras_transformer.text.glossary import Glossary, goes_on, is_kept, is_unspaced, spellings
from keras_transformer.translate.engines.engine import Hypothesis

LEAST_BEAMS = 6  # minimum for a search with phrases, which keeps beams for each part of a phrase


@dataclass(frozen=True)
class _Terms(Phrases):
    """A constraint to the phrases of each text.

    Args:
        of_text: For each text, its terms; for each term, its forms as lists of token ids.
        prefix_lengths: Number of tokens of each text's forced prefix; texts without one may be left
            out.
    """

    of_text: Mapping[str, Any] = field(compare=False, repr=False, default_factory=dict)
    prefix_lengths: Mapping[str, int] = field(compare=False, repr=False, default_factory=dict)

    def start(self, texts: Sequence[Any], limits: Sequence[int]) -> dict[str, np.ndarray]:
        """Return the state of the constraint before the first token, see `Phrases.start`.

        Raises:
            ValueError: If the terms of a text do not fit into its maximum length.
        """
        rows = [self.of_text[text] for text in texts]
        for text, row, limit in zip(texts, rows, limits, strict=True):
            need = sum(min(map(len, forms)) for forms in row) + 1 + self.prefix_lengths.get(text, 0)
            accepted = f"at most {limit} tokens, with a prefix and EOS: the longest translation"
            require(need <= limit, f"the glossary for {text!r:.60}", f"{need} tokens", accepted)
        return super().start(rows, limits)


def search_with_terms(
    search_texts: Callable[[Request, Search], list[list[Hypothesis]]],
    tokenizer: Tokenizer,
    config: Any,
    request: Request,
    search: Search,
) -> list[list[Hypothesis]]:
    """Return the hypotheses of each text, best first; each contains the terms of the glossary.

    All texts are searched without the glossary first, since most translations contain the terms
    anyway. Texts with a hypothesis that lacks a term are searched again with at least 6 beams and
    a constraint to phrases, see `decoding.Phrases`.

    Args:
        search_texts: Function from a request and search options to the hypotheses of each text.
        tokenizer: Tokenizer of the model.
        config: Config of the model.
        request: The texts; its constraint is a `Glossary`.
        search: Options of the search.

    Raises:
        ValueError: If the tokenizer cannot spell a term, the terms of a text do not fit into the
            longest translation, or the search samples or uses a shortlist.
    """
    glossary: Glossary = request.constraint
    require(search.temperature is None, "constraint", glossary, "None for samples")
    require(not search.shortlist, "constraint", glossary, "None with shortlist=True")
    spelled = _spelled(tokenizer, glossary)
    terms = [glossary.terms_in(text) for text in request.texts]
    results = search_texts(dataclasses.replace(request, constraint=None), search)
    wanted = search.num_hypotheses or 1

    def lacks(forms, hypotheses):
        return any(not is_kept(forms, x.text) for x in hypotheses[:wanted])

    again = [
        i for i, row in enumerate(terms) if row and any(lacks(forms, results[i]) for forms in row)
    ]
    again = [i for i in again if request.texts[i].strip()]
    if not again:
        return results
    rest = request.part(again)
    of_text = {
        request.texts[i]: [[x for form in forms for x in spelled[form]] for forms in terms[i]]
        for i in again
    }
    continues = _continues(tokenizer, glossary)
    prefix_lengths: dict[str, int] = {}
    all_prefix_ids = encoded_prefixes(tokenizer, rest.prefixes, len(again), config.max_length - 2)
    for text, ids in zip(rest.texts, all_prefix_ids, strict=True):
        prefix_lengths[text] = max(len(ids), prefix_lengths.get(text, 0))
    constraint = _Terms(
        tuple(config.eos_ids), tokenizer.fingerprint(), continues, of_text, prefix_lengths
    )
    # The search compares each form with every other at each step: memory grows with the square.
    forms = max(sum(map(len, row)) for row in of_text.values())
    tokens = max(1, request.tokens_per_batch // max(1, forms**2 // 64))
    beams = max(LEAST_BEAMS, search.beam_size)
    more = search_texts(
        dataclasses.replace(rest, constraint=constraint, tokens_per_batch=tokens),
        dataclasses.replace(search, beam_size=beams, num_hypotheses=wanted),
    )
    for i, hypotheses in zip(again, more, strict=True):
        results[i] = hypotheses
    return results


@functools.lru_cache(maxsize=8)
def _spelled(tokenizer, glossary):
    """Return, for each form, the token id sequences that spell it inside a text.

    They spell it as given, and with a capital first letter.
    """
    begin, end = map(len, tokenizer.target_frame)

    def content(texts):
        return [ids[begin : len(ids) - end] for ids in tokenizer.encode_target(texts)]

    (start,) = content(["a"])
    spelled = {}
    for form in glossary.forms():
        cases = spellings(form)
        first = content(cases)
        # A byte-level tokenizer gives a word other tokens at the start of a text than later.
        after = [f"{before}{x}" for x in cases for before in ("a ", "a")[: 1 + is_unspaced(form)]]
        later = [x[len(start) :] for x in content(after) if x[: len(start)] == start]
        ways = dict.fromkeys(map(tuple, later or first))
        spelled[form] = [list(x) for x in ways if x and tokenizer.unk_id not in x]
        is_spelled = bool(first[0]) and tokenizer.unk_id not in first[0]
        accepted = "text that the vocabulary of the translator can spell"
        require(is_spelled, "a term of the glossary", form, accepted)
    return spelled


@functools.lru_cache(maxsize=8)
def _continues(tokenizer, glossary):
    """Return which ids continue a word: (V,), boolean, found by decoding each id after a form."""
    anchor = _spelled(tokenizer, glossary)[glossary.forms()[0]][0]
    word, *texts = tokenizer.decode_target(
        [anchor, *([*anchor, i] for i in range(tokenizer.target_vocab_size))]
    )
    return np.array([x.startswith(word) and goes_on(x[len(word) :]) for x in texts])
