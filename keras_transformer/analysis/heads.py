"""Attention heads ranked by how often they connect two words whose relation is known."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from keras_transformer import demo
from keras_transformer.analysis.alignment import PARTS, Attention, attention, members_of, words
from keras_transformer.config import require
from keras_transformer.demo.relations import linked_pairs
from keras_transformer.translate.translator import Translator

Links = Sequence[Sequence[tuple[int, int]]]


@dataclass(frozen=True)
class Head:
    """An attention head and how well it follows a relation.

    Args:
        layer, head: Its place, both from 0.
        accuracy: Share of the queries whose word with the highest weight is the right one.
        weight: Mean weight of the right word, special tokens included in the sum of 1.
    """

    layer: int
    head: int
    accuracy: float
    weight: float


@dataclass(frozen=True)
class Ranking:
    """The heads of one kind of attention, ranked for one relation.

    Args:
        heads: All heads, the most accurate first.
        chance: Accuracy of a head that picks any word that the query sees.
        distance: The most frequent distance in words from query to key.
        distance_accuracy: Accuracy of a head that always picks the word at that distance.
        links: Number of queries.
    """

    heads: list[Head]
    chance: float
    distance: int
    distance_accuracy: float
    links: int


def rank_heads(
    translator: Translator,
    sources: Sequence[str],
    targets: Sequence[str],
    links: Links,
    part: str = "encoder",
) -> Ranking:
    """Rank the heads of a translator by how often their highest weight is on a known word.

    The query's weights are the mean over its tokens, a key's are the sum over its tokens; special
    tokens are not chosen. Accuracy and the baseline of one fixed distance follow Clark et al. 2019
    ("What Does BERT Look At?", section 4.2).

    Args:
        translator: Translator with any encoder-decoder model.
        sources, targets: Texts, the same number of each.
        links: For each pair of texts, pairs (query word, key word), numbered as in
            `alignment.words`. Queries of "encoder" are words of the source; those of "decoder" and
            "cross" are words of the target, and what counts is the attention that predicts them.
            Keys of "decoder" are words of the target that were read before.
        part: "encoder", "decoder" or "cross".

    Raises:
        ValueError: If `part` is unknown, the lengths differ, there are no links, a word does not
            exist or has no token, a query of "decoder" does not see its key, or a text does not
            fit the model.
    """
    require(part in PARTS, "part", part, f"one of {PARTS}")
    counts = len(sources), len(targets), len(links)
    require(len({*counts}) == 1, "sources, targets, links", counts, "of the same length")
    require(any(map(len, links)), "links", 0, "at least one in all")
    hits, weights, seen, distances = [], [], [], Counter()
    for source, target, own in zip(sources, targets, links, strict=True):
        if not own:
            continue
        weights_LNWW = _of_words(attention(translator, source, target), part)
        for query, key in own:
            row_LNW = weights_LNWW[:, :, query] if query in range(weights_LNWW.shape[2]) else None
            fits = row_LNW is not None and key in range(row_LNW.shape[-1])
            fits = fits and bool(row_LNW[..., key].any())
            accepted = f"a query and a key with tokens that it sees, in {source!r:.60}"
            require(fits, "links", (query, key), accepted)
            hits.append(row_LNW.argmax(axis=-1) == key)
            weights.append(row_LNW[..., key])
            seen.append(row_LNW.any(axis=(0, 1)).sum())
            distances[key - query] += 1
    accuracy_LN, weight_LN = np.mean(hits, axis=0), np.mean(weights, axis=0)
    heads = [
        Head(layer, head, float(accuracy_LN[layer, head]), float(weight_LN[layer, head]))
        for layer, head in np.ndindex(accuracy_LN.shape)
    ]
    heads.sort(key=lambda x: (-x.accuracy, -x.weight))
    ((distance, count),) = distances.most_common(1)
    return Ranking(
        heads, float(np.mean(1 / np.array(seen))), distance, count / len(hits), len(hits)
    )


def neighbours(texts: Iterable[str], distance: int) -> list[list[tuple[int, int]]]:
    """Return links from each word of each text to the word at a distance: 1 is the next word."""
    return [
        [(i, i + distance) for i in range(count) if 0 <= i + distance < count]
        for count in (len(words(text)) for text in texts)
    ]


def grammar_rankings(
    translator: Translator, count: int = 200, seed: int = 0
) -> dict[tuple[str, str], Ranking]:
    """Rank the heads of an English-German translator for relations that the grammar knows.

    Args:
        translator: Translator that knows the words of the embedded grammar.
        count: Sentences for each relation, at least 1.
        seed: Seed of the sentences.

    Returns:
        Rankings by relation and kind of attention: ("antecedent", "encoder"). Relations are "next
        word", "same word" and "previous word", on sentences of all kinds, and those of
        `demo.relations.linked_pairs`.
    """
    found = {}
    sources, targets = zip(*demo.pairs(count, seed), strict=True)
    for name, distance in {"previous word": -1, "same word": 0, "next word": 1}.items():
        links = neighbours(sources, distance)
        found[name, "encoder"] = rank_heads(translator, sources, targets, links)
    links = neighbours(targets, -1)
    found["previous word", "decoder"] = rank_heads(translator, sources, targets, links, "decoder")
    for name in ("separable prefix", "antecedent"):
        linked = linked_pairs(name, count, seed)
        sources, targets = [x.english for x in linked], [x.german for x in linked]
        english = [_words_at(x.english, x.english_link) for x in linked]
        german = [_words_at(x.german, x.german_link) for x in linked]
        if english[0][0] is not None:
            links = [[x] for x in english]
            found[name, "encoder"] = rank_heads(translator, sources, targets, links)
        links = [[x] for x in german]
        found[name, "decoder"] = rank_heads(translator, sources, targets, links, "decoder")
        links = [[(x[0], y[1])] for x, y in zip(german, english, strict=True)]
        found[name, "cross"] = rank_heads(translator, sources, targets, links, "cross")
    return found


def _words_at(text, places):
    """Return the numbers of the words that begin at places of a text."""
    starts = [start for start, _ in words(text)]
    return tuple(None if x is None else bisect.bisect_right(starts, x) - 1 for x in places)


def _of_words(found: Attention, part: str) -> np.ndarray:
    """Return attention between words, without special tokens: (L, N, queries, keys)."""
    source = members_of(words(found.source), found.source_spans)
    target = members_of(words(found.target), found.target_spans)
    read = members_of(words(found.target), [(0, 0), *found.target_spans[:-1]])
    queries_WT, keys_WS = {
        "encoder": (source, source),
        "decoder": (target, read),
        "cross": (target, source),
    }[part]
    mean_WT = queries_WT / np.maximum(queries_WT.sum(axis=1, keepdims=True), 1)
    return mean_WT @ getattr(found, part) @ keys_WS.T
