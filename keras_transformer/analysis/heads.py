"""Ranking of attention heads by how often they connect two words with a known relation."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from keras_transformer import demo
from keras_transformer.analysis.alignment import (
    PARTS,
    Attention,
    attention,
    members_of,
    weights_of,
    words,
)
from keras_transformer.config import require
from keras_transformer.demo.relations import linked_pairs
from keras_transformer.translate.translator import Translator

Links = Sequence[Sequence[tuple[int, int]]]


@dataclass(frozen=True)
class Head:
    """An attention head, and how often it follows a relation.

    Args:
        layer, head: Its layer and its index in the layer, both from 0.
        accuracy: Fraction of the queries whose highest weight is on the right word.
        weight: Mean weight of the right word; the weights of all words and special tokens sum to 1.
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
        chance: Accuracy of a head that picks a random word among those visible to the query.
        distance: The most frequent distance from query to key, in words.
        distance_accuracy: Accuracy of a head that always picks the word at this distance.
        links: Number of links.
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
    """Rank the heads of a translator by how often their highest weight is on a given word.

    A weight is the mean over the tokens of the query word, and the sum over those of the key word;
    special tokens are left out. Accuracy and the baseline of a fixed distance follow Clark et al.
    2019 ("What Does BERT Look At?", section 4.2).

    Args:
        translator: Translator with any encoder-decoder model.
        sources, targets: Texts, the same number of each.
        links: For each pair of texts, pairs (query word, key word) of indices in the result of
            `alignment.words`. Queries of "encoder" are words of the source. Queries of "decoder"
            and "cross" are words of the target: the attention that predicts them counts. Keys of
            "decoder" are earlier words of the target.
        part: "encoder", "decoder" or "cross".

    Raises:
        ValueError: If `part` is unknown, the lengths differ, there are no links, a word does not
            exist or has no token, the key of a link is not visible to its query, or `attention`
            refuses a text or the translator.
    """
    require(part in PARTS, "part", part, f"one of {PARTS}")
    counts = len(sources), len(targets), len(links)
    require(len({*counts}) == 1, "sources, targets, links", counts, "of the same length")
    require(any(map(len, links)), "links", 0, "at least one in all")
    hits, weights, seen, distances = [], [], [], Counter[int]()
    for source, target, pairs in zip(sources, targets, links, strict=True):
        if not pairs:
            continue
        weights_LNWW = _of_words(attention(translator, source, target), part)
        for query, key in pairs:
            queries, keys = map(range, weights_LNWW.shape[2:])
            is_seen = query in queries and key in keys and weights_LNWW[:, :, query, key].any()
            accepted = f"a query and a key with tokens that it sees, in {source!r:.60}"
            require(is_seen, "links", (query, key), accepted)
            row_LNW = weights_LNWW[:, :, query]
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
    """Return links from each word of each text to the word `distance` words later.

    A negative distance links to earlier words. A word without a word at this distance has no link.
    """
    return [
        [(i, i + distance) for i in range(count) if 0 <= i + distance < count]
        for count in (len(words(text)) for text in texts)
    ]


def grammar_rankings(
    translator: Translator, count: int = 200, seed: int = 0
) -> dict[tuple[str, str], Ranking]:
    """Rank the heads of an English-German translator for relations in the built-in grammar.

    Args:
        translator: Translator that was trained on sentences of the built-in grammar.
        count: Number of sentences per relation, at least 1.
        seed: Seed of the sentences.

    Returns:
        Rankings by relation and kind of attention, such as ("antecedent", "encoder"). Relations are
        "previous word", "same word" and "next word", in sentences of all types, and those of
        `demo.relations.linked_pairs`.
    """
    rankings = {}
    sources, targets = map(list, zip(*demo.pairs(count, seed), strict=True))
    for name, distance in {"previous word": -1, "same word": 0, "next word": 1}.items():
        links = neighbours(sources, distance)
        rankings[name, "encoder"] = rank_heads(translator, sources, targets, links)
    links = neighbours(targets, -1)
    rankings["previous word", "decoder"] = rank_heads(
        translator, sources, targets, links, "decoder"
    )
    for name in ("separable prefix", "antecedent"):
        linked = linked_pairs(name, count, seed)
        sources, targets = [x.english for x in linked], [x.german for x in linked]
        english = [_words_at(x.english, x.english_link) for x in linked]
        german = [_words_at(x.german, x.german_link) for x in linked]
        if english[0][0] is not None:
            links = [[x] for x in english]
            rankings[name, "encoder"] = rank_heads(translator, sources, targets, links)
        links = [[x] for x in german]
        rankings[name, "decoder"] = rank_heads(translator, sources, targets, links, "decoder")
        links = [[(x[0], y[1])] for x, y in zip(german, english, strict=True)]
        rankings[name, "cross"] = rank_heads(translator, sources, targets, links, "cross")
    return rankings


def _words_at(text, places):
    """Return the index of the word at each position in a text; None for a position of None."""
    starts = [start for start, _ in words(text)]
    return tuple(None if x is None else bisect.bisect_right(starts, x) - 1 for x in places)


def _of_words(maps: Attention, part: str) -> np.ndarray:
    """Return attention between words, without special tokens: (L, N, queries, keys)."""
    source = members_of(words(maps.source), maps.source_spans)
    target = members_of(words(maps.target), maps.target_spans)
    read = members_of(words(maps.target), [(0, 0), *maps.target_spans[:-1]])
    queries_WT, keys_WS = {
        "encoder": (source, source),
        "decoder": (target, read),
        "cross": (target, source),
    }[part]
    mean_WT = queries_WT / np.maximum(queries_WT.sum(axis=1, keepdims=True), 1)
    return mean_WT @ weights_of(maps, part) @ keys_WS.T
