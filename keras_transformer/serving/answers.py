"""Compute the answer to a request: split texts into sentences, search, join the translations."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keras_transformer.serving import markup
from keras_transformer.serving.handlers import Links
from keras_transformer.serving.jobs import NO_WISHES, Aligner, Judge, Wished, Wishes
from keras_transformer.serving.queue import Batcher, HandlerError
from keras_transformer.serving.sentences import Sentences
from keras_transformer.serving.turns import Workers
from keras_transformer.system import interruption
from keras_transformer.text.word_spans import words

Terms = Mapping[str, Sequence[str]]  # source terms, and the accepted forms of each

# Number of characters at which the handler reads the waiting texts, that is, counts their tokens.
# Each text counts as 100 characters more than it has.
PART = 50_000


@dataclass(frozen=True)
class Translated:
    """The translations of a text.

    Args:
        texts: The translations, best first.
        quality: Estimated quality of the best one, in [0, 1]: the mean over its sentences, weighted
            by their characters; None: not estimated.
    """

    texts: list[str]
    quality: float | None = None


async def translate_texts(
    batcher: Batcher,
    workers: Workers,
    handlers: Sequence[Any],
    language: str,
    texts: Sequence[str],
    alternatives: int,
    estimates: bool = False,
    wishes: Wishes = NO_WISHES,
) -> list[Translated]:
    """Translate texts; white space is preserved.

    Args:
        batcher: The batcher that runs the handlers.
        workers: The threads that split and join texts.
        handlers: The handlers from `Catalogue.route`.
        language: Language of the texts, for sentence splitting.
        texts: The texts.
        alternatives: Maximum number of further translations per text. Those of a text of several
            sentences differ in one or more sentences.
        estimates: Whether to estimate the quality; without effect unless there is one handler, with
            a calibration.
        wishes: What the request wants of its translations.

    Raises:
        TooLargeError, QueueFullError: See `Batcher.check`.
        ValueError: If there are wishes and no single handler that takes them.
        HandlerError: If a handler fails.
    """
    split, items, costs = await workers.run(_split, texts, language, handlers[0], batcher)
    sentences = [sentence for split_text in split for sentence in split_text.texts]
    count = 1 + alternatives
    searchers = await workers.run(with_wishes, handlers, wishes, sentences)
    hypotheses = await _search(batcher, workers, searchers, items, count, costs)
    qualities = [None] * len(sentences)
    if estimates and len(handlers) == 1 and handlers[0].can_estimate:
        pairs = [(text, ranked[0]) for text, ranked in zip(sentences, hypotheses, strict=True)]
        qualities = await submitted(batcher, workers, Judge(handlers[0]), pairs, 1, costs)
    return await workers.run(_joined, split, hypotheses, qualities, alternatives)


def _joined(split, hypotheses, qualities, alternatives):
    """Return the translations of each text, from those of its sentences."""
    remaining, judged = iter(hypotheses), iter(qualities)
    results = []
    for split_text in split:
        per_sentence = [next(remaining) for _ in split_text.texts]
        quality = _mean_quality(split_text.texts, [next(judged) for _ in split_text.texts])
        best = split_text.joined([hypotheses[0] for hypotheses in per_sentence])
        translations = [best]
        for rank in range(1, 1 + alternatives):
            other = split_text.joined(
                [hypotheses[min(rank, len(hypotheses) - 1)] for hypotheses in per_sentence]
            )
            if other not in translations:
                translations.append(other)
        results.append(Translated(translations, quality))
    return results


def _mean_quality(sentences, qualities):
    """Return the mean quality, weighted by characters; None if no sentence has a quality."""
    known = [(len(x), y) for x, y in zip(sentences, qualities, strict=True) if y is not None]
    total = sum(size for size, _ in known)
    return round(sum(size * y for size, y in known) / total, 4) if total else None


async def translate_html(
    batcher: Batcher,
    workers: Workers,
    handlers: Sequence[Any],
    language: str,
    sources: Sequence[str],
    wishes: Wishes = NO_WISHES,
) -> list[str]:
    """Translate the text in HTML and place the tags around the aligned words.

    Args:
        batcher, workers, handlers, language: As in `translate_texts`.
        sources: HTML texts.
        wishes: As in `translate_texts`.

    Raises:
        TooLargeError, QueueFullError, HandlerError, ValueError: As in `translate_texts`.
    """
    documents = await workers.run(lambda: [markup.blocks(source) for source in sources])
    blocks = [block for document in documents for block in document if block.text]
    plain = [block.text for block in blocks]
    split, items, costs = await workers.run(_split, plain, language, handlers[0], batcher)
    # Sentences with tags need word alignments. The alignments of two handlers are composed.
    texts = [sentence for split_text in split for sentence in split_text.texts]
    steps = [texts]
    for searcher in await workers.run(with_wishes, handlers, wishes, texts):
        hypotheses = await submitted(batcher, workers, searcher, items, 1, costs)
        steps.append([x[0] for x in hypotheses])
        items, costs = steps[-1], None
    tagged = [
        bool(block.nodes)
        for block, split_text in zip(blocks, split, strict=True)
        for _ in split_text.texts
    ]
    chosen = [i for i, is_tagged in enumerate(tagged) if is_tagged]
    links: dict[int, Links] = {}
    for handler, sources_, targets in zip(handlers, steps, steps[1:], strict=False):
        pairs = [(sources_[i], targets[i]) for i in chosen]
        alignments = await submitted(batcher, workers, Aligner(handler), pairs, 1)
        for i, link in zip(chosen, alignments, strict=True):
            before = links.get(i)
            links[i] = link if before is None else [j if j is None else before[j] for j in link]

    def put_together():
        numbered = iter(range(len(texts)))
        results = {}
        for block, split_text in zip(blocks, split, strict=True):
            indices = [next(numbered) for _ in split_text.texts]
            results[id(block)] = _whole(
                block, split_text, [steps[-1][i] for i in indices], indices, links
            )
        return [
            "".join(results[id(block)] if block.text else block.raw for block in document)
            for document in documents
        ]

    return await workers.run(put_together)


def _whole(block, split, translations, numbers, links):
    """Return a block's HTML, made from the translations of its sentences."""
    translation = split.joined(translations)
    if not block.nodes:
        return markup.placed(block, translation, [], [])
    starts = {begin: i for i, (begin, _) in enumerate(words(block.text))}
    target_words, aligned = [], []
    at_source = at_target = 0
    order = iter(zip(translations, numbers, strict=True))
    for place, part in enumerate(split.parts):
        text, i = next(order) if place % 2 else (part, None)
        if i is not None:
            word_starts = [at_source + begin for begin, _ in words(part)]
            target_words += [(at_target + x, at_target + y) for x, y in words(text)]
            aligned += [None if j is None else starts.get(word_starts[j]) for j in links[i]]
        at_source += len(part)
        at_target += len(text)
    return markup.placed(block, translation, aligned, target_words)


class _Reader:
    """A reader of texts: makes the items for a handler's `search`, and refuses too many tokens.

    Args:
        handler: The handler.
        batcher: The batcher that will run the handler.
    """

    def __init__(self, handler, batcher):
        self._handler, self._batcher = handler, batcher
        self._items, self._costs = [], []
        self._waiting, self._size, self._total = [], 0, 0
        self._known = {}  # maps each text that `fits` has read to its item and number of tokens

    def fits(self, sentence):
        """Return whether a sentence is not too long for the handler."""
        limit = self._handler.max_length
        # A token has at least one byte, so short sentences need no count. 8: for special tokens.
        if limit is None or len(sentence.encode()) + 8 <= limit:
            return True
        (self._known[sentence],) = zip(*self._handler.read([sentence]), strict=True)
        return self._known[sentence][1] <= limit

    def add(self, texts):
        """Add texts; they are read once enough of them are waiting."""
        interruption.check()
        self._waiting += texts
        self._size += sum(map(len, texts)) + 100 * len(texts)
        if self._size >= PART:
            self._read()

    def all(self):
        """Read the remaining texts; return the items and numbers of tokens of all."""
        self._read()
        return self._items, self._costs

    def _read(self):
        """Read the waiting texts, and count their tokens; a repeated text is read once."""
        texts, known = self._waiting, self._known
        new = [text for text in texts if text not in known]
        if new:
            known.update(zip(new, zip(*self._handler.read(new), strict=True), strict=True))
        for item, cost in map(known.__getitem__, texts):
            self._items.append(item)
            self._costs.append(cost)
            self._total += cost
        self._waiting, self._size, self._known = [], 0, {}
        self._batcher.check(self._total)


def _split(texts, language, handler, batcher):
    """Return the `Sentences` of each text, the items for `search`, and their numbers of tokens."""
    reader = _Reader(handler, batcher)
    split = [Sentences.of(text, language, reader.fits, reader.add) for text in texts]
    return split, *reader.all()


def read_all(texts: Sequence[Any], handler: Any, batcher: Batcher) -> tuple[list[Any], list[int]]:
    """Read texts for a handler part by part; return the items and their numbers of tokens.

    Raises:
        TooLargeError, QueueFullError: If the batcher does not accept so many tokens.
    """
    reader = _Reader(handler, batcher)
    for text in texts:
        reader.add([text])
    return reader.all()


def with_wishes(handlers: Sequence[Any], wishes: Wishes, sentences: Sequence[str]) -> Sequence[Any]:
    """Return the handlers, or the job that translates sentences as wished.

    Raises:
        ValueError: If there are wishes and no single handler that takes them.
    """
    single = handlers[0] if len(handlers) == 1 else None
    if wishes.glossary and not (single and single.takes_terms):
        raise ValueError("a glossary needs a single saved translator for this pair of languages")
    if wishes.style is not None and not (single and single.takes_style):
        raise ValueError("a style needs a language model whose prompt has a place for it")
    if not wishes.glossary and wishes.style is None:
        return handlers
    return [Wished.of(single, wishes, sentences)]


async def _search(batcher, workers, handlers, texts, count, costs=None):
    """Return at most `count` translations of each text, best first.

    Of two handlers, the first passes on only its best translation.
    """
    for handler in handlers[:-1]:
        texts = [x[0] for x in await submitted(batcher, workers, handler, texts, 1, costs)]
        costs = None
    return await submitted(batcher, workers, handlers[-1], texts, count, costs)


async def submitted(
    batcher: Batcher,
    workers: Workers,
    handler: Any,
    texts: Sequence[Any],
    count: int,
    costs: Sequence[int] | None = None,
) -> list[Any]:
    """Submit texts to a handler through the batcher, and return its results.

    Args:
        batcher, workers, handler: As in `translate_texts`, with one handler.
        texts: The texts; if `costs` is given, the items from the handler's `read`.
        count: Maximum number of results for each.
        costs: Number of tokens of each text; None: the handler reads them.

    Raises:
        TooLargeError, QueueFullError, HandlerError: As in `translate_texts`.
    """
    if costs is None:
        texts, costs = await workers.run(read_all, texts, handler, batcher)
    try:
        return await asyncio.wrap_future(batcher.submit(handler, texts, count, costs))
    except ValueError as error:  # no text is invalid: the handler is at fault, or the wishes
        if isinstance(handler, Wished):
            raise ValueError(f"glossary: {error}" if handler.terms else str(error)) from error
        raise HandlerError(str(error)) from error


async def attend(
    batcher: Batcher, workers: Workers, handler: Any, text: str, translation: str | None
) -> dict[str, Any]:
    """Return the fields of an `AttentionResponse`: tokens, weights and the translation.

    Args:
        batcher, workers: As in `translate_texts`.
        handler: The handler of a translator.
        text: The sentence.
        translation: Its translation; None: the model's best.

    Raises:
        ValueError: If there are more than `handlers.MOST_WEIGHTS` weights.
    """
    items, costs = await workers.run(handler.read, [text])
    if translation is None:
        ((translation,),) = await submitted(batcher, workers, handler, items, 1, costs)
    attention = await asyncio.wrap_future(
        batcher.call(lambda: handler.attention(text, translation), costs[0])
    )
    return dict(translation=translation, **attention)
