"""Compute the answer to a request: split texts into sentences, search, join the translations."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from keras_transformer.analysis.alignment import words
from keras_transformer.serving import markup
from keras_transformer.serving.engines import Links
from keras_transformer.serving.jobs import Aligner, Judge
from keras_transformer.serving.queue import Batcher, EngineError
from keras_transformer.serving.sentences import Sentences
from keras_transformer.serving.turns import Workers
from keras_transformer.system import interruption

PART = 50_000  # characters per call that counts tokens; each text counts for a hundred more


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
    engines: Sequence[Any],
    language: str,
    texts: Sequence[str],
    alternatives: int,
    estimates: bool = False,
) -> list[Translated]:
    """Translate texts; white space is preserved.

    Args:
        batcher: The batcher that runs the engines.
        workers: The threads that split and join texts.
        engines: The engines from `Catalogue.route`.
        language: Language of the texts, for sentence splitting.
        texts: The texts.
        alternatives: Maximum number of further translations per text. Those of a text of several
            sentences differ in one or more sentences.
        estimates: Whether to estimate the quality, if a single engine has a calibration.

    Raises:
        TooLargeError, QueueFullError: See `Batcher.check`.
        EngineError: If an engine fails.
    """
    split, costs = await workers.run(_split, texts, language, engines[0], batcher)
    sentences = [sentence for one in split for sentence in one.texts]
    count = 1 + alternatives
    hypotheses = await _search(batcher, workers, engines, sentences, count, costs)
    qualities = [None] * len(sentences)
    if estimates and len(engines) == 1 and engines[0].can_estimate:
        pairs = [(text, own[0]) for text, own in zip(sentences, hypotheses, strict=True)]
        qualities = await submitted(batcher, workers, Judge(engines[0]), pairs, 1, costs)
    return await workers.run(_joined, split, hypotheses, qualities, alternatives)


def _joined(split, hypotheses, qualities, alternatives):
    """Return the translations of each text, from those of its sentences."""
    found, judged = iter(hypotheses), iter(qualities)
    results = []
    for one in split:
        own = [next(found) for _ in one.texts]
        quality = _mean_quality(one.texts, [next(judged) for _ in one.texts])
        best = one.joined([hypotheses[0] for hypotheses in own])
        several = [best]
        for rank in range(1, 1 + alternatives):
            other = one.joined([hypotheses[min(rank, len(hypotheses) - 1)] for hypotheses in own])
            if other not in several:
                several.append(other)
        results.append(Translated(several, quality))
    return results


def _mean_quality(sentences, qualities):
    """Return the mean weighted by characters, over the sentences with a quality."""
    known = [(len(x), y) for x, y in zip(sentences, qualities, strict=True) if y is not None]
    total = sum(size for size, _ in known)
    return round(sum(size * y for size, y in known) / total, 4) if total else None


async def translate_html(
    batcher: Batcher,
    workers: Workers,
    engines: Sequence[Any],
    language: str,
    sources: Sequence[str],
) -> list[str]:
    """Translate the text in HTML and place the tags around the aligned words.

    Args:
        batcher, workers, engines, language: As in `translate_texts`.
        sources: HTML texts.

    Raises:
        TooLargeError, QueueFullError, EngineError: As in `translate_texts`.
    """
    documents = await workers.run(lambda: [markup.blocks(source) for source in sources])
    blocks = [block for document in documents for block in document if block.text]
    plain = [block.text for block in blocks]
    split, costs = await workers.run(_split, plain, language, engines[0], batcher)
    # Sentences with tags need word alignments, through each engine in turn.
    texts = [sentence for one in split for sentence in one.texts]
    steps = [texts]
    for engine in engines:
        found = await submitted(batcher, workers, engine, steps[-1], 1, costs)
        steps.append([x[0] for x in found])
        costs = None
    tagged = [
        bool(block.nodes) for block, one in zip(blocks, split, strict=True) for _ in one.texts
    ]
    chosen = [i for i, is_tagged in enumerate(tagged) if is_tagged]
    links: dict[int, Links] = {}
    for engine, sources_, targets in zip(engines, steps, steps[1:], strict=False):
        pairs = [(sources_[i], targets[i]) for i in chosen]
        found = await submitted(batcher, workers, Aligner(engine), pairs, 1)
        for i, link in zip(chosen, found, strict=True):
            before = links.get(i)
            links[i] = link if before is None else [j if j is None else before[j] for j in link]

    def put_together():
        numbered = iter(range(len(texts)))
        results = {}
        for block, one in zip(blocks, split, strict=True):
            own = [next(numbered) for _ in one.texts]
            results[id(block)] = _whole(block, one, [steps[-1][i] for i in own], own, links)
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
            own = [at_source + begin for begin, _ in words(part)]
            target_words += [(at_target + x, at_target + y) for x, y in words(text)]
            aligned += [None if j is None else starts.get(own[j]) for j in links[i]]
        at_source += len(part)
        at_target += len(text)
    return markup.placed(block, translation, aligned, target_words)


class _Costs:
    """Counts the tokens of texts, some at a time, and ends the work if they are too many.

    Args:
        engine: The engine whose tokens they are.
        batcher: The batcher that shall take them.
    """

    def __init__(self, engine, batcher):
        self.counted: list[int] = []
        self._engine, self._batcher = engine, batcher
        self._total, self._waiting, self._size = 0, [], 0

    def add(self, texts):
        """Count texts, or let them wait for others."""
        interruption.check()
        self._waiting += texts
        self._size += sum(map(len, texts)) + 100 * len(texts)
        if self._size >= PART:
            self._count()

    def all(self):
        """Return the number of tokens of each text."""
        self._count()
        return self.counted

    def _count(self):
        costs = self._engine.costs(self._waiting) if self._waiting else []
        self.counted += costs
        self._total += sum(costs)
        self._waiting, self._size = [], 0
        self._batcher.check(self._total)


def _split(texts, language, engine, batcher):
    """Return the sentences of each text, and the number of tokens of each sentence."""
    fits, costs = _fits(engine), _Costs(engine, batcher)
    return [Sentences.of(text, language, fits, costs.add) for text in texts], costs.all()


def _counted(texts, engine, batcher):
    costs = _Costs(engine, batcher)
    for text in texts:
        costs.add([text])
    return costs.all()


async def _search(batcher, workers, engines, texts, count, costs=None):
    """Return `count` translations of each text, best first; the alternatives are the last engine's.

    Earlier engines pass on only the best translation.
    """
    for engine in engines[:-1]:
        texts = [x[0] for x in await submitted(batcher, workers, engine, texts, 1, costs)]
        costs = None
    return await submitted(batcher, workers, engines[-1], texts, count, costs)


async def submitted(
    batcher: Batcher,
    workers: Workers,
    engine: Any,
    texts: Sequence[Any],
    count: int,
    costs: Sequence[int] | None = None,
) -> list[Any]:
    """Return an engine's results.

    Args:
        batcher, workers, engine: As in `translate_texts`, with one engine.
        texts: What its `search` takes.
        count: Maximum number of results for each.
        costs: Number of tokens of each text; None: the engine counts them.

    Raises:
        TooLargeError, QueueFullError, EngineError: As in `translate_texts`.
    """
    if costs is None:
        costs = await workers.run(_counted, texts, engine, batcher)
    try:
        return await asyncio.wrap_future(batcher.submit(engine, texts, count, costs))
    except ValueError as error:  # any text can be translated
        raise EngineError(str(error)) from error


def _fits(engine):
    if engine.max_length is None:
        return lambda sentence: True
    # A token has at least one byte, so most sentences fit by their bytes and need no tokenizing.
    limit = engine.max_length
    return lambda sentence: (
        len(sentence.encode()) + 8 <= limit or engine.costs([sentence])[0] <= limit
    )


async def attend(
    batcher: Batcher, workers: Workers, engine: Any, text: str, translation: str | None
) -> dict[str, Any]:
    """Return the attention for a sentence: tokens of both sides, and weights as nested lists.

    Args:
        batcher, workers: As in `translate_texts`.
        engine: The engine of a translator.
        text: The sentence.
        translation: Its translation; None: the model's best.

    Raises:
        ValueError: If the sentence is too long for a picture.
    """
    if translation is None:
        ((translation,),) = await submitted(batcher, workers, engine, [text], 1)
    (cost,) = await workers.run(engine.costs, [text])
    found = await asyncio.wrap_future(
        batcher.call(lambda: engine.attention(text, translation), cost)
    )
    return dict(translation=translation, **found)
