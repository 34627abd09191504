"""Live transcription: words of a sound while it arrives, once two transcriptions agree on them."""

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
    """Yield each word once two transcriptions in a row agree on it and on all earlier words.

    This is LocalAgreement-2 (Macháček et al. 2023, section 2.1). Each transcription covers the
    recent sound. When this is longer than about half the window, the sound up to the end of the
    last yielded word is dropped. If the window is full without agreement, its words are yielded
    nevertheless, except the last of several. At the end, the remaining words are yielded.

    Args:
        transcribe: Function from samples (N,) to their words with times.
        chunks: Samples (N,) of the sound, floats in [-1, 1], in pieces of any length.
        sample_rate: Rate of the samples in Hz.
        window: Maximum length in seconds that `transcribe` takes.
        interval: Seconds of new sound between transcriptions; None: 1, or a quarter of the window
            if that is less.

    Raises:
        ValueError: If `interval` is out of range, or a chunk is not an array (N,) of floats.
    """
    interval = min(1.0, window / 4) if interval is None else interval
    accepted = f"above 0 and at most {window / 2:g}, half the model's window"
    require(0 < interval <= window / 2, "interval", interval, accepted)
    live = _Live(transcribe, sample_rate, window - interval)
    size, fresh = max(1, round(interval * sample_rate)), 0
    for chunk in chunks:
        is_sound = isinstance(chunk, np.ndarray) and chunk.ndim == 1
        has_floats = is_sound and np.issubdtype(chunk.dtype, np.floating)
        require(has_floats, "chunks", type(chunk).__name__, "arrays (N,) of floats")
        while len(chunk):
            part, chunk = chunk[: size - fresh], chunk[size - fresh :]
            live.samples = np.concatenate([live.samples, part.astype("float32")])
            fresh += len(part)
            if fresh == size:
                fresh = 0
                yield from live.agreed()
    yield from live.words() if fresh else live.pending


class _Live:
    """The recent sound that is still transcribed again, and its words that are not yet final.

    Args:
        transcribe: See `agreed_words`.
        rate: Rate of the samples in Hz.
        most: Seconds of sound at which words are yielded without agreement.
    """

    def __init__(self, transcribe, rate, most):
        self.transcribe, self.rate, self.most = transcribe, rate, most
        self.samples = np.zeros(0, "float32")
        self.begin = 0.0  # time of the first sample in seconds
        self.end = -1.0  # end of the last word yielded from `samples`; -1: no word was yielded
        self.pending: list[Word] = []  # words of the last transcription that were not yielded

    def words(self):
        """Transcribe the samples, and return the words that have not been yielded."""
        if len(self.samples) < 0.05 * self.rate:  # too short for a word, maybe even for a frame
            return []
        words = [
            dataclasses.replace(x, start=x.start + self.begin, end=x.end + self.begin)
            for x in self.transcribe(self.samples)
        ]
        return [x for x in words if (x.start + x.end) / 2 > self.end]

    def agreed(self):
        """Transcribe; return the words that are final now, and drop sound that is not needed."""
        words = self.words()
        pairs = zip(self.pending, words, strict=False)
        same = itertools.takewhile(lambda pair: _plain(pair[0]) == _plain(pair[1]), pairs)
        count = len(list(same))
        seconds = len(self.samples) / self.rate
        if not count and seconds >= self.most - 1e-6:  # the window is full
            count = max(1, len(words) - 1)
            if not words:  # silence
                self.end = self.begin + seconds
        final, self.pending = words[:count], words[count:]
        if final:
            self.end = max(self.end, final[-1].end)
        if seconds > self.most / 2 and self.end > self.begin:
            cut = min(round((self.end - self.begin) * self.rate), len(self.samples))
            self.samples, self.begin = self.samples[cut:], self.begin + cut / self.rate
            self.end = -1.0
        return final


def _plain(word):
    return re.sub(r"[^\w]", "", word.word).casefold()
