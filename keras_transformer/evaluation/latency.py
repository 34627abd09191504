"""Latency of simultaneous translation: how far the written words lag behind the source."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from keras_transformer.config import require, require_whole


def latency(delays: Sequence[int], source_length: int, reference_length: int) -> dict[str, float]:
    """Return the latency of one translation by the definitions of SimulEval.

    With delays d_1 ... d_n, source length S, reference length R, and τ the first word that is
    written after the whole source has been read:

    - `al`, average lagging (Ma et al. 2019): the mean of d_t - (t - 1) S / R over t = 1 ... τ.
    - `laal`, length-adaptive average lagging (Papi et al. 2022): the same with max(n, R) for R, so
      that a long translation is not taken for a fast one.
    - `dal`, differentiable average lagging (Cherry and Foster 2019): the mean over all words, each
      at least S / n later than the one before, with n for R.
    - `ap`, average proportion (Cho and Esipova 2016): the sum of the delays / (S R).

    Args:
        delays: For each target word, the number of source words read when it was written.
        source_length: Number of source words.
        reference_length: Number of words of a reference translation.

    Raises:
        ValueError: If there are no delays, they fall or are negative, or a length is below 1.
    """
    require(len(delays) > 0, "delays", delays, "of at least one word")
    ascend = all(x <= y for x, y in itertools.pairwise([0, *delays]))
    require(ascend, "delays", delays, "numbers of at least 0 that never fall")
    require_whole("source_length", source_length, 1)
    require_whole("reference_length", reference_length, 1)
    count = len(delays)
    pace = source_length / count
    late = itertools.accumulate(map(float, delays), lambda last, x: max(last + pace, x))
    return {
        "al": _lagging(delays, source_length, reference_length),
        "laal": _lagging(delays, source_length, max(count, reference_length)),
        "dal": sum(d - t * pace for t, d in enumerate(late)) / count,
        "ap": sum(delays) / (source_length * reference_length),
    }


def mean_latency(latencies: Sequence[dict[str, float]]) -> dict[str, float]:
    """Return the mean of each measure over sentences.

    Args:
        latencies: Results of `latency`, at least one.
    """
    require(len(latencies) > 0, "latencies", latencies, "those of at least one sentence")
    return {name: sum(x[name] for x in latencies) / len(latencies) for name in latencies[0]}


def _lagging(delays, source_length, target_length):
    """Return the mean lag of the words up to the first that is written after the whole source."""
    is_partial = [x < source_length for x in delays]
    last = is_partial.index(False) + 1 if False in is_partial else len(delays)
    lags = (d - t * source_length / target_length for t, d in enumerate(delays[:last]))
    return sum(lags) / last
