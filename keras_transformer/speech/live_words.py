"""Words of a sound while it arrives: those that two transcriptions in a row agree on."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from keras_transformer.config import require
from keras_transformer.speech.word_times import Word


def agreed_words(
    transcribe: Callable[[np.ndarray], list[Word]],
    chunks: Iterable[np.ndarray],
    sample_rate: int,
    window: float,
    interval: float | None = None,
) -> Iterator[Word]:
    """Yield each word as soon as two transcriptions in a row agree on it and all words before it.

    This is LocalAgreement-2 (Macháček et al. 2023, section 2.1). The sound that is transcribed
    begins after the last word that was yielded, or earlier while it is shorter than half the
    window: consecutive transcriptions overlap. If the window is full without agreement, its
    words but the last are yielded.

    Args:
        transcribe: Function from samples to words with times.
        chunks: Samples (N,) of the sound, floats in [-1, 1], in pieces of any length.
        sample_rate: Rate of the samples in Hz.
        window: Maximum length in seconds that `transcribe` takes.
        interval: Seconds of new sound between transcriptions; None: 1, or a quarter of the window
            if that is less.

    Raises:
        ValueError: If `interval` is out of range, or a chunk is not such an array.
    """
    interval = min(1.0, window / 4) if interval is None else interval
    accepted = f"above 0 and at most {window / 2:g}, half the model's window"
    require(0 < interval <= window / 2, "interval", interval, accepted)
    live = _Live(transcribe, sample_rate, window - interval)
    size, fresh = max(1, round(interval * sample_rate)), 0
    for chunk in chunks:
        is_sound = isinstance(chunk, np.ndarray) and chunk.ndim == 1
        fits = is_sound and np.issubdtype(chunk.dtype, np.floating)
        require(fits, "chunks", type(chunk).__name__, "arrays (N,) of floats")
        while len(chunk):
            part, chunk = chunk[: size - fresh], chunk[size - fresh :]
            live.samples = np.concatenate([live.samples, part.astype("float32")])
            fresh += len(part)
            if fresh == size:
                fresh = 0
                yield from live.agreed()
    yield from live.words() if fresh else live.pending


class _Live:
    """The sound that is not yet transcribed for good."""

    def __init__(self, transcribe, rate, most):
        self.transcribe, self.rate, self.most = transcribe, rate, most
        self.samples = np.zeros(0, "float32")
        self.begin = 0.0  # time of the first of the samples
        self.end = -1.0  # of the last word in the samples that was yielded
        self.pending: list[Word] = []  # of the last transcription, not yielded

    def words(self):
        """Return the words of the samples that have not been yielded."""
        if len(self.samples) < 0.05 * self.rate:  # no word, and maybe less than a frame
            return []
        words = [
            dataclasses.replace(x, start=x.start + self.begin, end=x.end + self.begin)
            for x in self.transcribe(self.samples)
        ]
        return [x for x in words if (x.start + x.end) / 2 > self.end]

    def agreed(self):
        """Return the words that are final, and forget sound that is no longer needed."""
        words = self.words()
        pairs = zip(self.pending, words, strict=False)
        same = itertools.takewhile(lambda pair: _plain(pair[0]) == _plain(pair[1]), pairs)
        count = len(list(same))
        seconds = len(self.samples) / self.rate
        if not count and seconds >= self.most - 1e-6:  # full
            count = max(1, len(words) - 1)
            if not words:  # silence
                self.end = self.begin + seconds
        found, self.pending = words[:count], words[count:]
        if found:
            self.end = max(self.end, found[-1].end)
        if seconds > self.most / 2 and self.end > self.begin:
            cut = min(round((self.end - self.begin) * self.rate), len(self.samples))
            self.samples, self.begin = self.samples[cut:], self.begin + cut / self.rate
            self.end = -1.0
        return found


def _plain(word):
    return re.sub(r"[^\w]", "", word.word).casefold()
