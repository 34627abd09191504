"""The way of a request: from its texts through sentences and searches to its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from keras_transformer.analysis.alignment import align, attention, words
from keras_transformer.serving import markup
from keras_transformer.serving.queue import Batcher
from keras_transformer.serving.sentences import Sentences

MOST_WEIGHTS = 3_000_000  # of attention, in all layers and heads
PART = 500  # texts whose tokens are counted at a time


async def translate_texts(
    batcher: Batcher, engines: Sequence[Any], language: str, texts: Sequence[str], alternatives: int
) -> list[list[str]]:
    """The best translations of each text, best first, with its white space.

    Args:
        batcher: computes.
        engines: of `Catalogue.route`.
        language: the texts', for what splits sentences.
        texts: any.
        alternatives: how many more translations of each text, at most; those of a text of several
            sentences differ in one or more of them.
    """
    split = await asyncio.to_thread(_split, texts, language, engines[0])
    sentences = [sentence for one in split for sentence in one.texts]
    found = iter(await _search(batcher, engines, sentences, 1 + alternatives))
    results = []
    for one in split:
        own = [next(found) for _ in one.numbers]
        best = one.joined([hypotheses[0] for hypotheses in own])
        several = [best]
        for rank in range(1, 1 + alternatives):
            other = one.joined([hypotheses[min(rank, len(hypotheses) - 1)] for hypotheses in own])
            if other not in several:
                several.append(other)
        results.append(several)
    return results


async def translate_html(
    batcher: Batcher, engines: Sequence[Any], language: str, sources: Sequence[str]
) -> list[str]:
    """HTML with its text translated and its tags around the words that they belong to.

    Args: as of `translate_texts`.
    """
    documents = await asyncio.to_thread(lambda: [markup.blocks(source) for source in sources])
    blocks = [block for document in documents for block in document if block.text]
    split = await asyncio.to_thread(_split, [x.text for x in blocks], language, engines[0])
    # Where there are tags, alignments are needed, from one engine's language to the next.
    texts = [sentence for one in split for sentence in one.texts]
    steps = [texts]
    for engine in engines:
        steps.append([x[0] for x in await _search(batcher, [engine], steps[-1], 1)])
    tagged = [
        bool(block.nodes) for block, one in zip(blocks, split, strict=True) for _ in one.texts
    ]
    chosen = [i for i, is_tagged in enumerate(tagged) if is_tagged]
    links: dict[int, list[int | None]] = {}
    for engine, sources_, targets in zip(engines, steps, steps[1:], strict=False):
        pairs = [(sources_[i], targets[i]) for i in chosen]
        found = await _submitted(batcher, Aligner(engine), pairs, 1)
        for i, link in zip(chosen, found, strict=True):
            before = links.get(i)
            links[i] = link if before is None else [j if j is None else before[j] for j in link]

    def put_together():
        numbered = iter(range(len(texts)))
        results = {}
        for block, one in zip(blocks, split, strict=True):
            own = [next(numbered) for _ in one.numbers]
            results[id(block)] = _whole(block, one, [steps[-1][i] for i in own], own, links)
        return [
            "".join(results[id(block)] if block.text else block.raw for block in document)
            for document in documents
        ]

    return await asyncio.to_thread(put_together)


def _whole(block, split, translations, numbers, links):
    """A block's HTML from its sentences' translations."""
    translation = split.joined(translations)
    if not block.nodes:
        return markup.placed(block, translation, [], [])
    starts = {begin: i for i, (begin, _) in enumerate(words(block.text))}
    target_words, aligned = [], []
    at_source = at_target = 0
    order = dict(zip(split.numbers, zip(translations, numbers, strict=True), strict=True))
    for number, part in enumerate(split.parts):
        text, i = order.get(number, (part, None))
        if i is not None:
            own = [at_source + begin for begin, _ in words(part)]
            target_words += [(at_target + x, at_target + y) for x, y in words(text)]
            aligned += [None if j is None else starts.get(own[j]) for j in links[i]]
        at_source += len(part)
        at_target += len(text)
    return markup.placed(block, translation, aligned, target_words)


def _split(texts, language, engine):
    fits = _fits(engine)
    return [Sentences.of(text, language, fits) for text in texts]


async def _search(batcher, engines, texts, count):
    """The best translations of each text, the last engine's alternatives."""
    for engine in engines[:-1]:
        texts = [x[0] for x in await _submitted(batcher, engine, texts, 1)]
    return await _submitted(batcher, engines[-1], texts, count)


async def _submitted(batcher, engine, texts, count):
    """Return the batcher's translations; tokens are counted outside the event loop, in parts."""
    costs = []
    for start in range(0, len(texts), PART):
        costs += await asyncio.to_thread(engine.costs, texts[start : start + PART])
    return await asyncio.wrap_future(batcher.submit(engine, texts, count, costs))


@dataclass(frozen=True)
class Aligner:
    """For pairs of a sentence and its translation, the source word of each target word.

    A batcher takes it for an engine, so that the pairs of a long document keep no one waiting.

    Args:
        engine: what translated them.
    """

    engine: Any

    def costs(self, pairs: Sequence[tuple[str, str]]) -> list[int]:
        """Tokens of each source."""
        return self.engine.costs([source for source, _ in pairs])

    def search(
        self, pairs: Sequence[tuple[str, str]], num_hypotheses: int, tokens_per_batch: int
    ) -> list[list[int | None]]:
        """For each pair a number or None for each word of the translation."""
        return [self._links(source, target) for source, target in pairs]

    def _links(self, source, target):
        if self.engine.can_attend:
            try:
                (links,) = align(self.engine.translator, [source], [target])
            except ValueError:  # a translation that its own model cannot read
                pass
            else:
                source_of = {j: i for i, j in links}
                return [source_of.get(j) for j in range(len(words(target)))]
        return _in_order(words(source), words(target))


def _in_order(source_words, target_words):
    """Without a model's alignment: words in the same order, at the same pace."""
    pace = len(source_words) / max(len(target_words), 1)
    return [int(j * pace) if source_words else None for j in range(len(target_words))]


def _fits(engine):
    if engine.max_length is None:
        return lambda sentence: True
    # No piece is shorter than a byte, and few sentences are longer than that.
    limit = engine.max_length
    return lambda sentence: (
        len(sentence.encode()) + 8 <= limit or engine.costs([sentence])[0] <= limit
    )


async def attend(
    batcher: Batcher, engine: Any, text: str, translation: str | None
) -> dict[str, Any]:
    """Attention for a sentence: tokens of both sides, and weights as nested lists.

    Args:
        batcher: computes.
        engine: of a translator.
        text: the sentence.
        translation: its translation; None: the best.

    Raises:
        ValueError: if there are more than `MOST_WEIGHTS`.
    """
    if translation is None:
        ((translation,),) = await _search(batcher, [engine], [text], 1)
    _check_weights(engine.translator, text, translation)
    found = await asyncio.wrap_future(
        batcher.call(
            lambda: attention(engine.translator, text, translation), sum(engine.costs([text]))
        )
    )
    weights = {
        name: getattr(found, name).round(4).astype(float).tolist()
        for name in ("encoder", "decoder", "cross")
    }
    names = ("source_tokens", "target_tokens", "input_tokens")
    tokens = {name: getattr(found, name) for name in names}
    return dict(translation=translation, **tokens, **weights)


def _check_weights(translator, source, target):
    """Weights of long sentences are more than a server can hold, or a browser show."""
    model, tokenizer = translator.model, translator.tokenizer
    (s,), (t,) = (
        map(len, tokenizer.encode_source([source])),
        map(len, tokenizer.encode_target([target])),
    )
    maps = model.config.num_heads * max(len(model.encoder.blocks), len(model.decoder.blocks))
    weights = maps * (s * s + t * t + s * t)
    if weights > MOST_WEIGHTS:
        raise ValueError(
            f"q must be shorter: the attention of {s} and {t} tokens has {weights} weights, "
            f"{MOST_WEIGHTS} may be shown"
        )
