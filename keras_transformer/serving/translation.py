"""What a request asks for: from its texts through sentences and searches to its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from keras_transformer.alignment import align, attention, words
from keras_transformer.serving import markup
from keras_transformer.serving.batching import Batcher
from keras_transformer.serving.sentences import Sentences


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
    split = [Sentences.of(text, language, _fits(engines[0])) for text in texts]
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
    documents = [markup.blocks(source) for source in sources]
    blocks = [block for document in documents for block in document if block.text]
    split = [Sentences.of(block.text, language, _fits(engines[0])) for block in blocks]
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
        for i, link in zip(chosen, await _aligned(batcher, engine, pairs), strict=True):
            before = links.get(i)
            links[i] = link if before is None else [j if j is None else before[j] for j in link]
    numbered = iter(range(len(texts)))
    results = {}
    for block, one in zip(blocks, split, strict=True):
        own = [next(numbered) for _ in one.numbers]
        results[id(block)] = _whole(block, one, [steps[-1][i] for i in own], own, links)
    return [
        "".join(results[id(block)] if block.text else block.raw for block in document)
        for document in documents
    ]


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


async def _search(batcher, engines, texts, count):
    """The best translations of each text, the last engine's alternatives."""
    for engine in engines[:-1]:
        texts = [x[0] for x in await asyncio.wrap_future(batcher.submit(engine, texts, 1))]
    return await asyncio.wrap_future(batcher.submit(engines[-1], texts, count))


async def _aligned(batcher, engine, pairs):
    """For each pair of sentences, the source word of each target word."""
    if not engine.can_attend:
        return [_in_order(*map(words, pair)) for pair in pairs]

    def align_all():
        found = []
        for source, target in pairs:
            try:
                (links,) = align(engine.translator, [source], [target])
            except ValueError:  # a translation that its own model cannot read
                found.append(_in_order(words(source), words(target)))
            else:
                source_of = {j: i for i, j in links}
                found.append([source_of.get(j) for j in range(len(words(target)))])
        return found

    costs = sum(engine.costs([source for source, _ in pairs])) if pairs else 1
    return await asyncio.wrap_future(batcher.call(align_all, costs))


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
    """
    if translation is None:
        ((translation,),) = await _search(batcher, [engine], [text], 1)
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
