"""Times of spoken words, from cross-attention by dynamic time warping, as in Whisper."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from keras import ops

from keras_transformer.backend import without_gradients
from keras_transformer.config import require
from keras_transformer.layers import record_attention
from keras_transformer.models import Speech, SpeechConfig
from keras_transformer.running.inputs import padded
from keras_transformer.running.runner import LENGTH_MULTIPLE
from keras_transformer.speech.hearing import HOP, Hearing
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.text.tokenizer import round_up
from keras_transformer.text.word_spans import text_words


@dataclass(frozen=True)
class Word:
    """A spoken word with its punctuation, and its start and end in seconds."""

    word: str
    start: float
    end: float


def check_alignment_heads(hearing: Hearing, config: SpeechConfig) -> None:
    """Raise ValueError if the model lacks one of `hearing.alignment_heads`."""
    layers, heads = config.num_decoder_layers, config.decoder_sizes["num_heads"]
    are_known = all(i < layers and j < heads for i, j in hearing.alignment_heads)
    accepted = f"pairs of a layer below {layers} and a head below {heads}"
    require(are_known, "alignment_heads", hearing.alignment_heads, accepted)


def timed_words(
    model: Speech,
    tokenizer: TextTokenizer,
    hearing: Hearing,
    begin: float,
    features: np.ndarray,
    seconds: float,
    first_ids: Sequence[int],
    ids: Sequence[int],
) -> list[Word]:
    """Return the words of a transcribed clip with their times.

    Args:
        model: The model that transcribed it.
        tokenizer: The model's tokenizer.
        hearing: The model's input format.
        begin: Time of the clip's first sample in seconds.
        features: Log-mel features (F, mels) of the F frames of the clip.
        seconds: Length of the clip without padding.
        first_ids: Ids that precede the text, beginning with BOS.
        ids: Ids of the text, without EOS.
    """
    config, tokens = model.config, [*first_ids, *ids]
    length = min(round_up(len(features), LENGTH_MULTIPLE), config.max_frames)
    source = np.pad(features[None], ((0, 0), (0, length - len(features)), (0, 0)))
    places = min(round_up(len(tokens), LENGTH_MULTIPLE), config.max_length)
    inputs = {"features": source, "target_ids": padded([tokens], 1, places, config.pad_id)}
    if not hearing.pads_clips:
        inputs["num_frames"] = np.array([len(features)], "int32")
    with record_attention() as weights, without_gradients():
        model({name: ops.convert_to_tensor(x) for name, x in inputs.items()})
    layers = [block.cross_attention.path for block in model.decoder.blocks]
    later, count = range(len(layers) // 2, len(layers)), config.decoder_sizes["num_heads"]
    heads = hearing.alignment_heads or itertools.product(later, range(count))
    chosen = [ops.convert_to_numpy(ops.cast(weights[layers[i]][0, j], "float32")) for i, j in heads]
    positions = max(1, min(math.ceil(seconds / HOP / 2), -(-len(features) // 2)))
    rows = slice(len(first_ids) - 1, len(tokens))  # rows that predict the text and EOS
    weights_NTS = np.stack(chosen)[:, rows, :positions]
    weights_NTS /= np.maximum(weights_NTS.sum(axis=-1, keepdims=True), 1e-9)
    times = begin + np.minimum(token_starts(weights_NTS) * 2 * HOP, seconds)
    times_T = np.round(times, 3).tolist()
    return [Word(word, times_T[i], times_T[j]) for word, i, j in words_of(tokenizer, ids)]


def token_starts(weights_NTS: np.ndarray, width: int = 7) -> np.ndarray:
    """Return the source position at which each token starts, derived from cross-attention.

    The weights of each position are standardized over the tokens and smoothed by a median filter
    over the positions; the heads are averaged. The best monotonic path through the result gives
    each token its positions (Radford et al. 2022, implementation of `word_timestamps`).

    Args:
        weights_NTS: Cross-attention weights of N chosen heads, in the rows that predict T tokens.
        width: Width of the median filter in positions, odd.

    Returns:
        Positions (T,), from 0, not decreasing.
    """
    spread = np.maximum(weights_NTS.std(axis=1, keepdims=True), 1e-9)
    standard_NTS = (weights_NTS - weights_NTS.mean(axis=1, keepdims=True)) / spread
    score_TS = median_filter(standard_NTS, width).mean(axis=0)
    tokens, positions = time_warping(-score_TS)
    return positions[np.flatnonzero(np.diff(tokens, prepend=-1))]


def median_filter(x: np.ndarray, width: int) -> np.ndarray:
    """Return x after a median filter along the last axis, reflected at the ends: (..., S).

    Args:
        x: Values (..., S).
        width: Number of values per median, odd. If S is at most half of it, x is returned
            unchanged.
    """
    require(width % 2 == 1 and width > 0, "width", width, "an odd number above 0")
    half = width // 2
    if x.shape[-1] <= half:
        return x
    padded = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(half, half)], mode="reflect")
    return np.median(np.lib.stride_tricks.sliding_window_view(padded, width, axis=-1), axis=-1)


def time_warping(cost_TS: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the cheapest path from (0, 0) to (T - 1, S - 1) in steps of 0 or 1 along each axis.

    This is dynamic time warping (Sakoe and Chiba 1978). If the two cheapest steps cost the same,
    the step along S alone is taken, as in Whisper.

    Args:
        cost_TS: Cost of each cell.

    Returns:
        Rows (L,) and columns (L,) of the L cells of the path.
    """
    rows, columns = cost_TS.shape
    # Cells of an anti-diagonal depend only on the two previous ones, so all are computed at once.
    total = np.full((rows + 1, columns + 1), np.inf)
    total[0, 0] = 0
    choice = np.zeros((rows + 1, columns + 1), "int8")
    for diagonal in range(2, rows + columns + 1):
        i = np.arange(max(1, diagonal - columns), min(rows, diagonal - 1) + 1)
        j = diagonal - i
        corner, down, along = total[i - 1, j - 1], total[i - 1, j], total[i, j - 1]
        best = np.where((down < corner) & (down < along), 1, 2)
        best = np.where((corner < down) & (corner < along), 0, best)
        choice[i, j] = best
        total[i, j] = cost_TS[i - 1, j - 1] + np.choose(best, [corner, down, along])
    choice[0, :], choice[:, 0] = 2, 1
    i, j, path = rows, columns, []
    while i > 0 or j > 0:
        path.append((i - 1, j - 1))
        step = choice[i, j]
        i, j = i - (step != 2), j - (step != 1)
    tokens, positions = np.array(path[::-1]).T
    return tokens, positions


def words_of(tokenizer: TextTokenizer, ids: Sequence[int]) -> list[tuple[str, int, int]]:
    """Return each word of a transcript with the start and end of its tokens, as indices.

    The words are those of `text.word_spans.text_words`. The end is the index after the last token.

    Args:
        tokenizer: Tokenizer of the transcript.
        ids: Token ids.
    """
    prefixes = tokenizer.decode([ids[: i + 1] for i in range(len(ids))])
    if not prefixes:
        return []
    # While a token has only the first bytes of a character, it is decoded as U+FFFD.
    lengths = np.maximum.accumulate([len(x) for x in prefixes])
    whole = np.maximum.accumulate([len(x.rstrip("\ufffd")) for x in prefixes])
    words = []
    for start, end in text_words(prefixes[-1]):
        first = np.searchsorted(lengths, start, side="right")
        last = np.searchsorted(whole, end - 1, side="right")
        words.append((prefixes[-1][start:end], int(first), min(int(last) + 1, len(ids))))
    return words
