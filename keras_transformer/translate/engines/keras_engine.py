"""The default engine, "keras": the Keras model on any backend."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from keras_transformer.config import require
from keras_transformer.models import DecoderOnly, EncoderDecoder, Ensemble, Prompted
from keras_transformer.running.inputs import Request
from keras_transformer.running.runner import Runner
from keras_transformer.running.scoring import score_pairs
from keras_transformer.saved.folder import load_model, save_folder
from keras_transformer.search import Search
from keras_transformer.text import Tokenizer
from keras_transformer.text.glossary import Glossary
from keras_transformer.text.lexical_shortlist import Shortlist
from keras_transformer.text.prompt_tokenizer import PromptTokenizer
from keras_transformer.translate.engines.engine import Hypothesis
from keras_transformer.translate.pipeline import search_texts
from keras_transformer.translate.protection import Numbers, search_protected
from keras_transformer.translate.reply_checks import checked_replies
from keras_transformer.translate.terminology import search_with_terms


class KerasEngine:
    """The default engine: the search in `decoding` with the Keras model on the active backend.

    It accepts all search options, constraints and prefixes; the engines of CTranslate2 and of
    exported translators accept fewer.

    Args:
        model: The model.
        shortlist: The translator's shortlist; None: the search option `shortlist` is refused.
    """

    def __init__(self, model: EncoderDecoder, shortlist: Shortlist | None = None):
        self.model, self.shortlist = model, shortlist
        self._runner = Runner()

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike,
        saved: Mapping[str, Any],
        tokenizer: Tokenizer,
        precision: str | None,
    ) -> Self:
        """Load the engine of a saved translator.

        Args:
            folder: Folder of the translator.
            saved: Its `config.json`.
            tokenizer: Its tokenizer.
            precision: See `Translator.load`.
        """
        model = load_model(folder, saved, tokenizer, precision)
        if isinstance(tokenizer, PromptTokenizer) and isinstance(model, DecoderOnly):
            model = Prompted(model, tokenizer.ends)
        return cls(model, Shortlist.read(folder, tokenizer))

    def save(
        self,
        folder: str | os.PathLike,
        tokenizer: Tokenizer,
        facts: Mapping[str, Any],
        base: str | os.PathLike | None,
    ) -> None:
        """Write a translator with this model, see `saved.folder.save_folder`.

        Raises:
            ValueError: If the model is an ensemble, or a language model with a prompt.
        """
        if isinstance(self.model, Ensemble | Prompted):
            which = "an ensemble" if isinstance(self.model, Ensemble) else "a prompted model"
            parts = "translators" if isinstance(self.model, Ensemble) else "language model"
            raise ValueError(f"{which} cannot be saved: save its {parts}")
        save_folder(folder, self.model, tokenizer, facts, [self.shortlist], base)

    @property
    def config(self) -> Any:
        """The model's config."""
        return self.model.config

    options = staticmethod(Search.of)

    def search(
        self, tokenizer: Tokenizer, request: Request, search: Search
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each text, best first; an empty text gets an empty one.

        Raises:
            ValueError: If the constraint is neither a `Glossary` nor has a method `start`; see also
                `search_texts` and `search_with_terms`.
        """
        glossary = request.constraint if isinstance(request.constraint, Glossary) else None
        prompted = tokenizer if isinstance(tokenizer, PromptTokenizer) else None
        can_read = prompted is not None and prompted.has_terms
        accepted = "True without a prompt that has a place for terms"
        require(glossary is None or search.force_terms or can_read, "force_terms", False, accepted)
        if prompted is None:
            require(search.style is None, "style", search.style, "None without a prompt")
            return self._found(tokenizer, tokenizer, request, search)
        encoder = prompted.asking_for(glossary, search.style)
        if glossary is not None or search.style is not None:
            request = replace(request, ids=None)
        lists = self._found(tokenizer, encoder, request, replace(search, style=None))
        return checked_replies(prompted, request.texts, lists)

    def _found(self, tokenizer, encoder, request, search):
        """Return the hypotheses of a request, whose texts `encoder` encodes; see `search`."""
        request = request.read(encoder)

        def find_with(part: Request, numbers: Sequence[Numbers] | None) -> list[list[Hypothesis]]:
            return self.search_with_numbers(tokenizer, part, search, numbers)

        is_free, is_glossary = request.constraint is None, isinstance(request.constraint, Glossary)
        protects = search.protect and search.temperature is None
        search = replace(search, protect=False)
        if protects and (is_free or is_glossary):
            return search_protected(find_with, encoder, self.config.max_length, request)
        if is_glossary:
            return find_with(request, None)
        can_start = is_free or hasattr(request.constraint, "start")
        accepted = "None, a Glossary, or an object with a method start"
        require(can_start, "constraint", request.constraint, accepted)
        return self._search(tokenizer, request, search)

    def search_with_numbers(
        self,
        tokenizer: Tokenizer,
        request: Request,
        search: Search,
        numbers: Sequence[Numbers] | None,
    ) -> list[list[Hypothesis]]:
        """Return hypotheses with required numbers and terms, see `search_with_terms`."""
        find = functools.partial(self._search, tokenizer)
        return search_with_terms(find, tokenizer, self.config, request, search, numbers)

    def _search(self, tokenizer, request, search):
        return search_texts(self._runner, self.model, tokenizer, request, search, self.shortlist)

    def score(
        self,
        tokenizer: Tokenizer,
        sources: Sequence[str],
        targets: Sequence[str],
        tokens_per_batch: int,
    ) -> list[float]:
        """Return log p(target | source) of each pair, see `running.scoring.score_pairs`."""
        return score_pairs(self._runner, self.model, tokenizer, sources, targets, tokens_per_batch)
