"""Handlers of a server: each translates one language pair, here or in a replica."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from keras_transformer import analysis
from keras_transformer.running.inputs import Request, Source
from keras_transformer.search import NBEST, TRANSLATE
from keras_transformer.text import Tokenizer
from keras_transformer.text.glossary import Glossary
from keras_transformer.text.prompt_tokenizer import PromptTokenizer
from keras_transformer.text.tokenizer import Texts, checked_texts
from keras_transformer.text.word_spans import members_of, words
from keras_transformer.translate import live
from keras_transformer.translate.engines.exported import GraphEngine, SavedModelEngine, estimate
from keras_transformer.translate.quality_estimation import QualityEstimator
from keras_transformer.translate.translator import Translator

MOST_WEIGHTS = 400_000  # attention weights of an answer, of all layers and heads: 3 MB of JSON
Links = list[int | None]
Scored = list[tuple[str, float]]  # translations with their scores, best first
Terms = Sequence[tuple[str, Sequence[str]]]  # source terms, each with its forms


def read_sources(tokenizer: Tokenizer, texts: Sequence[str]) -> tuple[list[Source], list[int]]:
    """Return texts with their token ids, and the number of tokens of each."""
    texts = checked_texts(texts)
    ids = tokenizer.encode_source(texts)
    return [Source(*x) for x in zip(texts, ids, strict=True)], [*map(len, ids)]


def _continues(text, spans):
    """Return for each token whether it continues the word of the previous token."""
    places = words(text)
    if not places:
        return [False] * len(spans)
    members = members_of(places, spans)
    return [False, *map(bool, (members[:, 1:] * members[:, :-1]).any(axis=0))]


class TranslatorHandler:
    """A handler that translates one language pair with a saved translator.

    Args:
        translator: The translator.
        estimator: Estimator of its quality; None: the quality of translations is not estimated.
        options: Search options, as in `Translator.nbest`.
    """

    takes_terms = True

    def __init__(
        self, translator: Translator, estimator: QualityEstimator | None = None, **options: Any
    ):
        self.translator, self._estimator = translator, estimator
        self.can_estimate = estimator is not None
        prompted = isinstance(translator.tokenizer, PromptTokenizer)
        self.can_attend = not prompted
        self.takes_style = prompted and translator.tokenizer.has_style
        self.can_score = not translator.middle  # a translation in two steps has no probability
        self.max_length = translator.config.max_length
        self._search = translator.options(options)
        self._options = options

    def read(self, texts: Sequence[str]) -> tuple[list[Source], list[int]]:
        """Tokenize texts; return the items for `search`, and the number of tokens of each."""
        return read_sources(self.translator.tokenizer, texts)

    def search(
        self,
        sources: Sequence[Source],
        num_hypotheses: int = 1,
        tokens_per_batch: int = 4096,
        terms: Terms = (),
        style: str | None = None,
    ) -> list[list[str]]:
        """Return the best translations of each text, best first.

        Args:
            sources: The items that `read` returned for the texts.
            num_hypotheses: Maximum number of translations per text.
            tokens_per_batch: Maximum number of source tokens per batch, padding included.
            terms: Terms that the translations must contain.
            style: Style of the translations; None: the model's usual one.

        Raises:
            ValueError: If the translator cannot write a term, or takes no terms or style.
        """
        nbest_lists = self._hypotheses(sources, num_hypotheses, tokens_per_batch, terms, style)
        return [[x.text for x in hypotheses] for hypotheses in nbest_lists]

    def nbest(self, sources: Sequence[Source], tokens_per_batch: int = 4096) -> list[Scored]:
        """Return the `beam_size` best translations of each text with their scores, best first."""
        nbest_lists = self._hypotheses(sources, self._search.beam_size, tokens_per_batch)
        return [[(x.text, x.score) for x in hypotheses] for hypotheses in nbest_lists]

    def score(self, pairs: Sequence[tuple[str, str]], tokens_per_batch: int = 4096) -> list[float]:
        """Return log p(target | source) of each pair.

        Raises:
            ValueError: If a text is too long for the model.
        """
        sources, targets = ([*side] for side in zip(*pairs, strict=True))
        return self.translator.score(sources, targets, tokens_per_batch=tokens_per_batch)

    def _hypotheses(self, sources, num_hypotheses, tokens_per_batch, terms=(), style=None):
        beam_size = max(self._search.beam_size, num_hypotheses)
        options = {**self._options, "beam_size": beam_size, "num_hypotheses": num_hypotheses}
        texts, ids = Texts(text for text, _ in sources), [ids for _, ids in sources]
        request = Request(texts, tokens_per_batch=tokens_per_batch, ids=ids)
        if terms:  # a prompt contains its terms, so it is encoded again
            glossary = Glossary({term: [*forms] for term, forms in terms})
            request = replace(request, ids=None, constraint=glossary)
        if style is not None:
            options["style"] = style
        nbest_lists = self.translator.hypotheses(request, self.translator.options(options, NBEST))
        return [hypotheses[:num_hypotheses] for hypotheses in nbest_lists]

    def estimate(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """Return the estimated quality of each pair of a sentence and its translation.

        Returns:
            Numbers in [0, 1]; None for a pair that the model cannot score, and for all pairs
            without an estimator.
        """
        if self._estimator is None or not pairs:
            return [None] * len(pairs)
        sources, translations = zip(*pairs, strict=True)
        qualities = self._estimator.estimate(self.translator, sources, translations).tolist()
        return [None if math.isnan(x) else x for x in qualities]

    def align(self, pairs: Sequence[tuple[str, str]]) -> list[Links | None]:
        """Align pairs of a sentence and its translation, word by word.

        Returns:
            For each pair, a list with the index of the source word of each word of the translation
            (None: the word is not aligned); None for a pair that the model cannot align.
        """
        return [self._links(source, target) for source, target in pairs]

    def _links(self, source, target):
        try:
            (links,) = analysis.align(self.translator, [source], [target])
        except ValueError:  # the translation has no token, or more than the model takes
            return None
        source_of = {j: i for i, j in links}
        return [source_of.get(j) for j in range(len(words(target)))]

    def attention(self, text: str, translation: str) -> dict[str, Any]:
        """Return the tokens of a sentence and its translation, and the weights as nested lists.

        `source_continues` and `target_continues` say for each token whether it continues the word
        of the previous token.

        Raises:
            ValueError: If there are more than `MOST_WEIGHTS` weights.
        """
        self._check_weights(text, translation)
        maps = analysis.attention(self.translator, text, translation)
        names = ("source_tokens", "target_tokens", "input_tokens")
        weights = {
            name: getattr(maps, name).round(4).astype(float).tolist()
            for name in ("encoder", "decoder", "cross")
        }
        continues = {
            "source_continues": _continues(text, maps.source_spans),
            "target_continues": _continues(translation, maps.target_spans),
        }
        return {name: getattr(maps, name) for name in names} | continues | weights

    def live(self, text: str, written: str, policy: str, k: int | None, is_whole: bool) -> str:
        """Return the text to append to `written`, see `translate.live.continue_translation`.

        Args:
            text: The source words of the sentence that have arrived.
            written: What is written of its translation.
            policy, k: Name and number of the policy, see `translate.live.policy_named`.
            is_whole: Whether the sentence ends after these words.
        """
        chosen = live.policy_named(policy, k)
        return live.continue_translation(self.translator, text, written, chosen, is_whole)

    def _check_weights(self, source, target):
        """Refuse long sentences, whose weights are too many for a server or a browser."""
        model, tokenizer = self.translator.model, self.translator.tokenizer
        (s,), (t,) = (
            map(len, tokenizer.encode_source([source])),
            map(len, tokenizer.encode_target([target])),
        )
        stacks = model.encoder, model.decoder
        maps = max(x.options.num_heads for x in stacks) * max(x.num_layers for x in stacks)
        weights = maps * (s * s + t * t + s * t)
        if weights > MOST_WEIGHTS:
            raise ValueError(
                f"q must be shorter: the attention of {s} and {t} tokens has {weights} weights, "
                f"at most {MOST_WEIGHTS} can be shown"
            )


class ExportedHandler:
    """A handler that translates one language pair with an exported translator.

    Args:
        exported: Engine of the exported translator.
        options: Search options, as in `Translator.nbest`.

    Raises:
        ValueError: If an option that cannot be chosen after the export is not at its default.
    """

    can_attend = can_estimate = takes_terms = takes_style = False
    max_length = None  # not known of an exported model

    def __init__(self, exported: SavedModelEngine | GraphEngine, **options: Any):
        self._exported = exported
        self.can_score = isinstance(exported, SavedModelEngine)
        self._given = options
        exported.carried.check(self._given)

    def read(self, texts: Sequence[str]) -> tuple[list[str], list[int]]:
        """Return the texts, and an estimate of the number of tokens of each."""
        return [*texts], [*map(estimate, texts)]

    def search(
        self, texts: Sequence[str], num_hypotheses: int = 1, tokens_per_batch: int = 4096
    ) -> list[list[str]]:
        """Return at most `num_hypotheses` translations of each text, best first.

        `tokens_per_batch` has no effect. The beams of a SavedModel were fixed at its export, and it
        returns no more translations than that.
        """
        if num_hypotheses == 1 and isinstance(self._exported, SavedModelEngine):
            return [[text] for text in self._exported.translations(texts)]
        search = self._exported.options(self._given, TRANSLATE)
        if search.beam_size < num_hypotheses and "beam_size" in self._exported.carried.names:
            search = replace(search, beam_size=num_hypotheses)
        nbest_lists = self._exported.nbest(texts, search)
        return [[x.text for x in hypotheses][:num_hypotheses] for hypotheses in nbest_lists]

    def nbest(self, texts: Sequence[str], tokens_per_batch: int = 4096) -> list[Scored]:
        """Return all translations that the search finds, with their scores, best first."""
        nbest_lists = self._exported.nbest(texts, self._exported.options(self._given, TRANSLATE))
        return [[(x.text, x.score) for x in hypotheses] for hypotheses in nbest_lists]

    def live(self, *arguments: Any) -> str:
        """Refuse to translate live: exported translators accept no prefixes.

        Raises:
            ValueError: Always.
        """
        raise ValueError("live translation needs a saved translator, not an exported one")

    def score(self, pairs: Sequence[tuple[str, str]], tokens_per_batch: int = 4096) -> list[float]:
        """Return log p(target | source) of each pair.

        Raises:
            ValueError: If the exported translator cannot score.
        """
        sources, targets = ([*side] for side in zip(*pairs, strict=True))
        return self._exported.score(None, sources, targets, tokens_per_batch)


class ReplicaHandler:
    """A handler that asks a replica to call its handler of the same model and language pair.

    Args:
        ask: Function that calls a method of the handler in a free replica; takes the method's name
            and its arguments.
        tokenizer: The model's tokenizer for its language pair; None: numbers of tokens are
            estimated.
        max_length: The model's `max_length`; None: unknown.
        can_attend: Whether the model has attention weights.
        can_estimate: Whether the quality of its translations can be estimated.
        can_score: Whether it can score given translations.
        takes_terms: Whether `search` takes the terms of a glossary.
        takes_style: Whether `search` takes a style.
    """

    def __init__(
        self,
        ask: Callable[..., Any],
        tokenizer: Tokenizer | None,
        max_length: int | None,
        can_attend: bool,
        can_estimate: bool,
        can_score: bool = True,
        takes_terms: bool = False,
        takes_style: bool = False,
    ):
        self.max_length, self.can_attend = max_length, can_attend
        self.takes_terms, self.takes_style = takes_terms, takes_style
        self.can_estimate, self.can_score = can_estimate, can_score
        self._ask, self._tokenizer = ask, tokenizer

    def read(self, texts: Sequence[str]) -> tuple[list[Any], list[int]]:
        """Return the items for a replica's `search`, and the number of tokens of each."""
        if self._tokenizer is None:
            return [*texts], [*map(estimate, texts)]
        return read_sources(self._tokenizer, texts)

    def search(
        self,
        sources: Sequence[Any],
        num_hypotheses: int = 1,
        tokens_per_batch: int = 4096,
        terms: Terms = (),
        style: str | None = None,
    ) -> list[list[str]]:
        """Return the best translations of each text, as the handler in the replica does."""
        more = [terms, style] if terms or style is not None else []
        return self._ask("search", list(sources), num_hypotheses, tokens_per_batch, *more)

    def nbest(self, sources: Sequence[Any], tokens_per_batch: int = 4096) -> list[Scored]:
        """Return translations with their scores, as the handler in the replica does."""
        return self._ask("nbest", list(sources), tokens_per_batch)

    def score(self, pairs: Sequence[tuple[str, str]], tokens_per_batch: int = 4096) -> list[float]:
        """Return log p(target | source) of each pair, as the handler in the replica does."""
        return self._ask("score", list(pairs), tokens_per_batch)

    def estimate(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """Return the estimated quality of each pair, as the handler in the replica does."""
        return self._ask("estimate", list(pairs))

    def align(self, pairs: Sequence[tuple[str, str]]) -> list[Links | None]:
        """Align pairs of a sentence and its translation, as the handler in the replica does."""
        return self._ask("align", list(pairs))

    def attention(self, text: str, translation: str) -> dict[str, Any]:
        """Return tokens and attention weights, as the handler in the replica does."""
        return self._ask("attention", text, translation)

    def live(self, *arguments: Any) -> str:
        """Return the text to append to a translation, as the handler in the replica does."""
        return self._ask("live", *arguments)
