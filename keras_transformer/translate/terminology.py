"""Search with required phrases: if a translation lacks one, search again with a constraint."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from keras_transformer.config import require
from keras_transformer.decoding import Phrases
from keras_transformer.running.inputs import Request, encoded_prefixes
from keras_transformer.search import Search
from keras_transformer.text import Tokenizer
from keras_transformer.text.glossary import Glossary, goes_on, is_kept, is_unspaced, spellings
from keras_transformer.text.protected import is_copied
from keras_transformer.translate.engines.engine import Hypothesis

# Minimum `beam_size` of a search with phrases, which reserves beam slots, see `decoding.banks`.
LEAST_BEAMS = 6
# Maximum number of spellings of the required numbers of a text, all of which a search compares with
# each other.
MOST_FORMS = 64

Ways = list[list[int]]  # sequences of token ids that spell a phrase


class _Wanted(NamedTuple):
    """The required phrases of a translation: terms and numbers, each a tuple of accepted forms.

    The values of `numbers` are the sequences of token ids of these forms.
    """

    terms: list[tuple[str, ...]]
    numbers: dict[tuple[str, ...], Ways]

    def are_in(self, translation: str) -> bool:
        """Return whether a translation contains a form of each phrase."""
        has_terms = all(is_kept(forms, translation) for forms in self.terms)
        return has_terms and all(is_copied(forms, translation) for forms in self.numbers)


@dataclass(frozen=True)
class _Terms(Phrases):
    """A constraint to the phrases of each text.

    Args:
        of_text: For each text, its terms and its numbers; each as the sequences of token ids that
            spell it.
        prefix_lengths: Number of tokens of each text's forced prefix; texts without one may be left
            out.
    """

    of_text: Mapping[str, tuple[list[Ways], list[Ways]]] = field(
        compare=False, repr=False, default_factory=dict
    )
    prefix_lengths: Mapping[str, int] = field(compare=False, repr=False, default_factory=dict)

    def start(self, texts: Sequence[Any], limits: Sequence[int]) -> dict[str, np.ndarray]:
        """Return the state of the constraint before the first token, see `Phrases.start`.

        Numbers that do not fit into the maximum length of a text are left out.

        Raises:
            ValueError: If the terms of a text do not fit into its maximum length.
        """
        rows = []
        for text, limit in zip(texts, limits, strict=True):
            terms, numbers = self.of_text[text]
            need = sum(map(self.least, terms)) + 1 + self.prefix_lengths.get(text, 0)
            accepted = f"at most {limit} tokens, with a prefix and EOS: the longest translation"
            has_room = need <= limit or not terms
            require(has_room, f"the glossary for {text!r:.60}", f"{need} tokens", accepted)
            rows.append([*terms])
            for ways in numbers:
                if need + self.least(ways) <= limit:
                    rows[-1].append(ways)
                    need += self.least(ways)
        return super().start(rows, limits)


def search_with_terms(
    search_texts: Callable[[Request, Search], list[list[Hypothesis]]],
    tokenizer: Tokenizer,
    config: Any,
    request: Request,
    search: Search,
    numbers: Sequence[Mapping[tuple[str, ...], bool]] | None = None,
) -> list[list[Hypothesis]]:
    """Return the hypotheses of each text, best first, with the required terms and numbers.

    All texts are searched without the glossary first, since most translations contain the terms
    anyway. If one of the first `num_hypotheses` (None: 1) hypotheses of a text lacks a term or a
    number, the text is searched again, with at least 6 beams and the constraint `decoding.Phrases`.

    Args:
        search_texts: Function from a request and search options to the hypotheses of each text.
        tokenizer: Tokenizer of the model.
        config: Config of the model.
        request: The texts; its constraint is a `Glossary`, or None.
        search: Options of the search.
        numbers: For each text, numbers that its translation should contain: a tuple of accepted
            spellings, and whether the number may directly follow a mark such as "(". Numbers that
            the tokenizer cannot spell, or that do not fit, are not required. None: no numbers.

    Raises:
        ValueError: If the tokenizer cannot spell a term, the terms of a text do not fit into the
            longest translation, or there is a glossary and the search samples or uses a shortlist.
    """
    glossary: Glossary | None = request.constraint if search.force_terms else None
    search = dataclasses.replace(search, force_terms=True)
    if glossary is not None:
        require(search.temperature is None, "constraint", glossary, "None for samples")
        require(not search.shortlist, "constraint", glossary, "None with shortlist=True")
        _spelled(tokenizer, glossary)  # raises for a term that cannot be spelled
    wanted = [
        _Wanted(glossary.terms_in(text) if glossary is not None else [], _numbers(tokenizer, forms))
        for text, forms in zip(request.texts, numbers or [{}] * len(request.texts), strict=True)
    ]
    results = search_texts(dataclasses.replace(request, constraint=None), search)
    count = search.num_hypotheses or 1
    again = [
        i
        for i, (text, phrases) in enumerate(zip(request.texts, wanted, strict=True))
        if text.strip() and not all(phrases.are_in(x.text) for x in results[i][:count])
    ]
    if again:
        part = dataclasses.replace(request.part(again), constraint=glossary)
        part = _constrained(tokenizer, config, part, [wanted[i] for i in again])
        beams = max(LEAST_BEAMS, search.beam_size)
        # Without a shortlist, which may lack the pieces of a phrase.
        search = dataclasses.replace(search, beam_size=beams, num_hypotheses=count, shortlist=False)
        more = search_texts(part, search)
        for i, hypotheses in zip(again, more, strict=True):
            results[i] = hypotheses
    return results


def _constrained(tokenizer, config, request, wanted):
    """Return a request with a constraint to the phrases of each of its texts."""
    spelled = _spelled(tokenizer, request.constraint) if request.constraint is not None else {}
    of_text = {}
    for text, phrases in zip(request.texts, wanted, strict=True):
        terms = [[x for form in forms for x in spelled[form]] for forms in phrases.terms]
        of_text[text] = terms, [*phrases.numbers.values()]
    prefix_lengths: dict[str, int] = {}
    limit = config.max_length - 2
    all_prefix_ids = encoded_prefixes(tokenizer, request.prefixes, len(wanted), limit)
    for text, ids in zip(request.texts, all_prefix_ids, strict=True):
        prefix_lengths[text] = max(len(ids), prefix_lengths.get(text, 0))
    vocabulary, continues = tokenizer.fingerprint(), _continues(tokenizer)
    constraint = _Terms(tuple(config.eos_ids), vocabulary, continues, of_text, prefix_lengths)
    # The search compares each form with every other at each step: memory grows with the square.
    forms = max(sum(map(len, terms + numbers)) for terms, numbers in of_text.values())
    tokens = max(1, request.tokens_per_batch // max(1, forms**2 // 64))
    return dataclasses.replace(request, constraint=constraint, tokens_per_batch=tokens)


@functools.lru_cache(maxsize=8)
def _spelled(tokenizer, glossary):
    """Return, for each form, the token id sequences that spell it inside a text.

    The form is spelled unchanged and with a capital first letter.
    """
    spelled = {}
    for form in glossary.forms():
        before = ("a ", "a")[: 1 + is_unspaced(form)]
        first, *others = (_ways(tokenizer, text, before) for text in spellings(form))
        accepted = "text that the vocabulary of the translator can spell"
        require(bool(first), "a term of the glossary", form, accepted)
        spelled[form] = [*first, *(x for row in others for x in row if x not in first)]
    return spelled


def _numbers(tokenizer, numbers):
    """Return the token id sequences that spell each number, by the forms of the number.

    Numbers that cannot be spelled are left out, as are those beyond `MOST_FORMS` sequences.
    """
    spelled, count = {}, 0
    for forms, is_after_mark in numbers.items():
        beginnings = ("a ", "(")[: 1 + is_after_mark]
        ways = [x for form in forms for x in _ways(tokenizer, form, beginnings)]
        count += len(ways)
        if ways and count <= MOST_FORMS:
            spelled[forms] = ways
    return spelled


def _ways(tokenizer, text, beginnings):
    """Return all token id sequences that spell a text after one of `beginnings`.

    If the tokens of each beginning change when the text follows, return the sequence of the text
    alone.
    """
    begin, end = map(len, tokenizer.target_frame)
    # A byte-level tokenizer gives a word other tokens at the start of a text than later.
    texts = [text, *(x.strip() for x in beginnings), *(f"{x}{text}" for x in beginnings)]
    first, *rows = (ids[begin : len(ids) - end] for ids in tokenizer.encode_target(texts))
    pairs = zip(rows, rows[len(beginnings) :], strict=False)
    later = [whole[len(start) :] for start, whole in pairs if whole[: len(start)] == start]
    ways = dict.fromkeys(map(tuple, later or [first]))
    return [[*x] for x in ways if x and tokenizer.unk_id not in x]


@functools.lru_cache(maxsize=8)
def _continues(tokenizer):
    """Return which ids continue a word: (V,), boolean, found by decoding each id after a word."""
    size = tokenizer.target_vocab_size
    words = tokenizer.decode_target([[i] for i in range(size)])
    anchor = next((i for i, x in enumerate(words) if x.isalpha() and goes_on(x)), 0)
    word, *texts = tokenizer.decode_target([[anchor], *([anchor, i] for i in range(size))])
    return np.array([x.startswith(word) and goes_on(x[len(word) :]) for x in texts])
