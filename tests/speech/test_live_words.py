"""Words of a sound that arrives, with an oracle in place of a model."""

import numpy as np
import pytest

from keras_transformer.speech.live_words import agreed_words
from keras_transformer.speech.word_times import Word

pytestmark = pytest.mark.once("lists and NumPy")
RATE = 100
TEXTS = "the quick brown fox jumps over the lazy dog and runs over the hills far away".split()


def oracle(words, calls):
    """Knows the words; of one that is cut off, it hears a part. Samples are their own places."""

    def transcribe(samples):
        calls.append(len(samples) / RATE)
        begin, end = samples[0] / RATE, (samples[-1] + 1) / RATE
        heard = []
        for word in words:
            start, stop = max(word.start, begin), min(word.end, end)
            if stop - start > 0.05:
                whole = stop - start > word.end - word.start - 0.05
                text = word.word if whole else word.word[: int(1 + 100 * (stop - start)) % 3]
                heard.append(Word(text, start - begin, stop - begin))
        return heard

    return transcribe


def words_at(rng, pauses):
    words, now = [], 0.5
    for text, pause in zip(TEXTS, pauses, strict=True):
        end = now + rng.uniform(0.2, 0.6)
        words.append(Word(text, round(now, 2), round(end, 2)))
        now = end + pause
    return words


@pytest.mark.parametrize("size", [1, 7, 50, 10_000])
def test_every_word_comes_once_and_soon(size, rng):
    pauses = rng.uniform(0, 0.3, len(TEXTS))
    pauses[5] = 6.0  # silence that is longer than the window
    words, calls, read = words_at(rng, pauses), [], [0.0]
    sound = np.arange(round((words[-1].end + 0.1) * RATE), dtype="float32")

    def chunks():
        for start in range(0, len(sound), size):
            read[0] = min(start + size, len(sound)) / RATE
            yield sound[start : start + size]

    found, late = [], []
    for word in agreed_words(oracle(words, calls), chunks(), RATE, window=4.0, interval=0.5):
        found.append(word)
        late.append(read[0] - word.end)
    assert [x.word for x in found] == TEXTS
    for one, other in zip(found, words, strict=True):
        assert abs(one.start - other.start) < 0.06 and abs(one.end - other.end) < 0.06
    assert max(calls) <= 4.0 and len(calls) <= len(sound) / RATE / 0.5 + 1
    if size <= 50:  # two transcriptions after the word's end, and one more if it was cut
        assert max(late) <= 1.5 + size / RATE


def test_a_full_window_without_agreement_goes_on():
    count = iter(range(100))

    def transcribe(samples):
        seconds = len(samples) / RATE
        return [Word(f"w{next(count)}", 0, seconds / 2), Word("tail", seconds / 2, seconds)]

    sound = np.zeros(10 * RATE, "float32")
    found = list(agreed_words(transcribe, [sound], RATE, window=2.0, interval=0.5))
    assert 4 <= len(found) <= 20 and found[-1].end == pytest.approx(10, abs=0.1)


def test_no_sound():
    assert list(agreed_words(None, [], RATE, window=2.0)) == []
    assert list(agreed_words(None, [np.zeros(0, "float32")], RATE, window=2.0)) == []
    assert list(agreed_words(None, [np.zeros(4, "float32")], RATE, window=2.0)) == []  # 0.04 s


def test_bad_input():
    for interval in (0, 1.1):
        with pytest.raises(ValueError, match="interval must be above 0 and at most 1, half the"):
            next(agreed_words(None, [], RATE, window=2.0, interval=interval))
    for chunk in (b"12", np.zeros((2, 2)), np.zeros(3, "int16")):
        with pytest.raises(ValueError, match=r"chunks must be arrays \(N,\) of floats, got "):
            next(agreed_words(None, [chunk], RATE, window=2.0))
