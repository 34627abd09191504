"""Attention of a translator by layer and head, and word alignments derived from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from keras_transformer.config import require
from keras_transformer.models import EncoderDecoder
from keras_transformer.running.attention_weights import alignment_weights, attention_weights
from keras_transformer.text.pieces import SPACE
from keras_transformer.text.tokenizer import Tokenizer, checked_texts
from keras_transformer.text.word_spans import Spans, members_of, words
from keras_transformer.translate.translator import Translator

PARTS = ("encoder", "decoder", "cross")


@dataclass(frozen=True)
class Attention:
    """Attention weights for one source and one target, and the tokens that they connect.

    Weights are probabilities: they sum to 1 over the last axis. There are L layers, N heads,
    S source tokens and T target tokens.

    The decoder's input is the target shifted right: its position t reads `input_tokens[t]`, which
    for t > 0 is target token t - 1, and predicts `target_tokens[t]`. So row t of `cross` and
    `decoder` is the query that PREDICTS target token t, and column t of `decoder` is the key that
    reads `input_tokens[t]`.

    Args:
        source, target: The texts.
        source_tokens, target_tokens: Readable tokens, special ones included (EOS, a language, the
            prompt of a task).
        input_tokens: Input of the decoder: BOS, then all target tokens except the last.
        source_spans, target_spans: Start and end (excluded) of each token in characters of the
            text; an empty span for tokens that are not part of the text.
        encoder: Self-attention of the source, (L, N, S, S).
        decoder: Self-attention of the target, (L, N, T, T), 0 for later positions; L and N are 0
            if the decoder has no self-attention.
        cross: Cross-attention from target positions to the source, (L, N, T, S).
    """

    source: str
    target: str
    source_tokens: list[str]
    target_tokens: list[str]
    input_tokens: list[str]
    source_spans: list[tuple[int, int]]
    target_spans: list[tuple[int, int]]
    encoder: np.ndarray
    decoder: np.ndarray
    cross: np.ndarray


def attention(translator: Translator, source: str, target: str) -> Attention:
    """Return the attention of all layers and heads for a source and a given target.

    Args:
        translator: Translator with any encoder-decoder model.
        source: Source text.
        target: A translation of it, by the model or not.

    Raises:
        ValueError: If a text is not a string, has no token, or more than the model's `max_length`;
            or the translator is an ensemble, an exported one or needs two steps.
    """
    for name, text in {"source": source, "target": target}.items():
        require(isinstance(text, str), name, text, "a string")
    _require_attention(translator)
    rows = _encoded(translator, [source], [target], ("source", "target"))
    ((_, weights),) = attention_weights(translator.model, *rows)
    (source_ids,), (target_ids,) = rows
    sizes = {"S": len(source_ids), "T": len(target_ids)}
    encoder, decoder, cross = (
        np.stack([w[0, :, : sizes[t], : sizes[s]] for w in weights[name]])
        if weights[name]
        else np.zeros((0, 0, sizes[t], sizes[s]))
        for name, t, s in (("encoder", "S", "S"), ("decoder", "T", "T"), ("cross", "T", "S"))
    )
    tokenizer = translator.tokenizer
    source_spans = _spans(tokenizer, "source", source, source_ids)
    target_spans = _spans(tokenizer, "target", target, target_ids)
    source_tokens = _names(tokenizer, "source", source, source_ids, source_spans)
    target_tokens = _names(tokenizer, "target", target, target_ids, target_spans)
    (begin,) = _names(tokenizer, "target", "", [tokenizer.bos_id], [(0, 0)])
    input_tokens = [begin, *target_tokens[:-1]]
    tokens, spans = (source_tokens, target_tokens, input_tokens), (source_spans, target_spans)
    return Attention(source, target, *tokens, *spans, encoder, decoder, cross)


def align(
    translator: Translator,
    sources: Sequence[str],
    targets: Sequence[str],
    *,
    split: Callable[[str], Spans] | None = None,
    strict: bool = True,
) -> list[list[tuple[int, int]]]:
    """Align each word of a target with the source word that it translates.

    The source word with the highest cross-attention weight is chosen, see
    `attention_weights.alignment_weights`; the weights of a word's tokens are added up.

    `python -m benchmarks.alignment` measures the alignments on the built-in grammar.

    Args:
        translator: Translator with any encoder-decoder model.
        sources, targets: Texts, the same number of each.
        split: Function from a text to the spans of its words, such as `words` or `spaced_words` of
            `text.word_spans`; None: `words`.
        strict: Whether a text without tokens, or with more than the model's `max_length`, raises
            ValueError; else it has no pairs, or is cut.

    Returns:
        For each text, pairs (source word, target word) of indices, in the order of the target's
        words. Target words without a token have no pair: the tokenizer dropped them, or the text
        was cut before them.

    Raises:
        ValueError: If the numbers of texts differ, a text is not a string, or the translator is an
            ensemble, an exported one or needs two steps; see also `strict`.
    """
    _require_attention(translator)
    encoded = _encoded(translator, sources, targets, ("sources", "targets"), strict)
    whole = [i for i, pair in enumerate(zip(*encoded, strict=True)) if all(pair)]
    source_ids, target_ids = ([side[i] for i in whole] for side in encoded)
    links: list[list[tuple[int, int]]] = [[] for _ in sources]
    guided = getattr(translator.model.config, "guided_alignment", 0) > 0
    for chosen, weights in attention_weights(translator.model, source_ids, target_ids):
        weights_BTS = alignment_weights(weights["cross"], guided)
        for i, weights_TS in zip((whole[i] for i in chosen), weights_BTS, strict=False):
            sides = []
            for language, text, ids in (
                ("source", sources[i], encoded[0][i]),
                ("target", targets[i], encoded[1][i]),
            ):
                spans = _spans(translator.tokenizer, language, text, ids)
                sides.append(members_of((split or words)(text), spans))
            links[i] = _aligned(sides[0], sides[1], weights_TS)
    return links


def between_words(found: Attention, part: str = "cross") -> tuple[list[str], list[str], Any]:
    """Return attention between words, from attention between tokens.

    A weight is the mean over the tokens of the query word, and the sum over those of the key word.

    Args:
        found: Attention between tokens.
        part: "encoder", "decoder" or "cross".

    Returns:
        The words of the queries, the words of the keys, and the weights (L, N, queries, keys),
        whose rows sum to 1. Each special token counts as a word.

    Raises:
        ValueError: If `part` is unknown, or the model has no such attention.
    """
    weights_LNTS = weights_of(found, part)
    shifted = [(0, 0), *found.target_spans[:-1]]
    source = _grouped(found.source, found.source_tokens, found.source_spans)
    target = _grouped(found.target, found.target_tokens, found.target_spans)
    inputs = _grouped(found.target, found.input_tokens, shifted)
    sides = dict(encoder=(source, source), decoder=(target, inputs), cross=(target, source))
    (queries, query_WT), (keys, key_WS) = sides[part]
    mean_WT = query_WT / query_WT.sum(axis=1, keepdims=True)
    return queries, keys, mean_WT @ weights_LNTS @ key_WS.T


def weights_of(found: Attention, part: str) -> np.ndarray:
    """Return the weights (L, N, T, S) of one of `PARTS`.

    Raises:
        ValueError: If `part` is unknown, or the model has no such attention.
    """
    require(part in PARTS, "part", part, f"one of {PARTS}")
    weights = getattr(found, part)
    require(len(weights) > 0, "part", part, "another: this decoder has no self-attention")
    return weights


def _grouped(text, tokens, spans):
    """Return the W words and special tokens of a text, and which of its T tokens each contains.

    The second result is a matrix (W, T) of 0 and 1.
    """
    places = words(text)
    word_spans = [
        next((word for word in places if word[0] < end and start < word[1]), None)
        if start < end
        else None
        for start, end in spans
    ]
    for i in range(len(tokens) - 2, -1, -1):
        if tokens[i] == SPACE:  # a separate space belongs to the next word
            word_spans[i] = word_spans[i + 1]
    labels, owners = [], []
    for i, (token, word) in enumerate(zip(tokens, word_spans, strict=True)):
        if word is None or i == 0 or word != word_spans[i - 1]:
            labels.append(token if word is None else text[slice(*word)])
        owners.append(len(labels) - 1)
    members = np.zeros((len(labels), len(tokens)), "float32")
    members[owners, range(len(tokens))] = 1
    return labels, members


def _aligned(source_WS, target_WT, weights_TS):
    """Return (source word, target word) pairs: of each target word, the most weighted source word.

    Weights are summed over the tokens of both words; a word without tokens is in no pair.

    Args:
        source_WS, target_WT: Results of `members_of` for both sides.
        weights_TS: Cross-attention weights.
    """
    length, width = target_WT.shape[1], source_WS.shape[1]
    weights_WW = target_WT @ weights_TS[:length, :width] @ source_WS.T
    weights_WW[:, ~source_WS.any(axis=1)] = -1  # a word without tokens is never chosen
    best = weights_WW.argmax(axis=1)
    return [(int(best[i]), i) for i in range(len(best)) if target_WT[i].any()]


def _require_attention(translator):
    accepted = "one with an encoder-decoder model: an ensemble or an exported one aligns no words"
    shows = isinstance(translator.model, EncoderDecoder)
    require(shows, "translator", type(translator.model).__name__, accepted)


def _encoded(translator, sources, targets, names, strict=True):
    """Return the ids of sources and targets, special tokens included.

    If a text has no tokens or is too long, raise ValueError with `strict`; else return [] for it,
    or cut it.
    """
    translator.require_direct()
    tokenizer, limit = translator.tokenizer, translator.model.config.max_length
    sides = []
    for name, texts, language in zip(names, (sources, targets), ("source", "target"), strict=True):
        texts = checked_texts(texts, name)
        rows = getattr(tokenizer, f"encode_{language}")(texts)
        frame = getattr(tokenizer, f"{language}_frame")
        for i, (text, ids) in enumerate(zip(texts, rows, strict=True)):
            has_tokens = bool(text.strip() and len(ids) > len(frame.before) + len(frame.after))
            require(has_tokens or not strict, name, text, "a text that has tokens")
            if len(ids) > limit and strict:
                raise ValueError(
                    f"{name} must have at most {limit} tokens each, the model's max_length, got "
                    f"{len(ids)} in {text!r:.60}"
                )
            if len(ids) > limit:
                content = ids[len(frame.before) : len(ids) - len(frame.after)]
                rows[i] = frame.around(content, limit)
            if not has_tokens:
                rows[i] = []
        sides.append(rows)
    if len(sides[0]) != len(sides[1]):
        raise ValueError(
            f"sources and targets must have the same length, got {len(sides[0])} and "
            f"{len(sides[1])}"
        )
    return sides


def _spans(tokenizer: Tokenizer, language: str, text: str, ids: Sequence[int]) -> Spans:
    """Return the start and end of each id in the text; empty spans for special tokens."""
    frame = getattr(tokenizer, f"{language}_frame")
    count = len(ids) - len(frame.before) - len(frame.after)  # fewer if the text was cut
    spans = [(0, 0)] * len(frame.before) + tokenizer.spans(language, text)[:count]
    return spans + [(len(text), len(text))] * (len(ids) - len(spans))


def _names(
    tokenizer: Tokenizer, language: str, text: str, ids: Sequence[int], spans: Spans
) -> list[str]:
    """Return the ids as readable tokens."""
    try:
        pieces = dict(enumerate(tokenizer.pieces_of(language)))
    except ValueError:  # the tokenizer does not list its pieces: use the characters of the text
        pieces = {}
    special = {tokenizer.pad_id: "<pad>", tokenizer.bos_id: "<s>", tokenizer.eos_id: "</s>"}
    names = (
        pieces.get(i) or special.get(i) or text[start:end]
        for i, (start, end) in zip(ids, spans, strict=True)
    )
    return [name.replace(SPACE, " ").strip() or SPACE for name in names]
