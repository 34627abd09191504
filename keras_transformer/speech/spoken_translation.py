"""Translations of spoken words that keep their times: of whole recordings, and live."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from keras_transformer.speech.cues import PAUSE
from keras_transformer.speech.word_times import Word
from keras_transformer.text.arriving_text import ends_sentence
from keras_transformer.text.word_spans import join_words, split_words
from keras_transformer.translate.live import Policy, translate_live
from keras_transformer.translate.translator import Translator

MOST_WORDS = 50  # source words that are translated together, if no sentence ends


def translate_words(translator: Translator, words: Iterable[Word], **options: Any) -> list[Word]:
    """Translate timed words sentence by sentence; return the words of the translation.

    A sentence ends with its last punctuation mark, before a pause of `cues.PAUSE`, or after
    `MOST_WORDS`. Its time is divided among the words of its translation by their characters.

    Args:
        translator: The translator.
        words: Words of a `Transcriber`.
        options: Options of `Translator.translate`.
    """
    sentences: list[list[Word]] = []
    for word in words:
        last = sentences[-1][-1] if sentences else None
        ends = last is None or ends_sentence(last.word) or word.start - last.end >= PAUSE
        if ends or len(sentences[-1]) == MOST_WORDS:
            sentences.append([])
        sentences[-1].append(word)
    sources = [join_words(x.word for x in sentence) for sentence in sentences]
    translations = translator.translate(sources, **options)
    pairs = zip(sentences, translations, strict=True)
    return [word for pair in pairs for word in spread_words(*pair)]


def spread_words(words: Sequence[Word], translation: str) -> list[Word]:
    """Return the words of a translation at the times of the source, in proportion to characters.

    Args:
        words: Words of the source, at least one.
        translation: Its translation.
    """
    source_ends = np.cumsum([len(x.word) for x in words])
    target = split_words(translation)
    target_ends = np.cumsum([len(x) for x in target])
    places = np.stack([np.append(0, source_ends[:-1]), source_ends], axis=1).ravel()
    times = np.maximum.accumulate([time for x in words for time in (x.start, x.end)])

    def time_of(place: float, side: float) -> float:
        # Between two words, an end is that of the first one, and a start that of the second.
        share = place / target_ends[-1] * source_ends[-1] + side * 1e-6
        return round(float(np.interp(share, places, times)), 3)

    starts = [0, *target_ends[:-1]] if target else []
    ends = zip(target, starts, target_ends, strict=True)
    return [Word(word, time_of(start, 1), time_of(end, -1)) for word, start, end in ends]


def translate_spoken(
    translator: Translator, words: Iterable[Word], policy: Policy | None = None, **options: Any
) -> Iterator[Word]:
    """Yield the words of a live translation, with the times of the words that they translate.

    ```python
    words = transcriber.stream(chunks, sample_rate=16000)
    for word in translate_spoken(translator, words, WaitK(3)):
        print(word.start, word.end, word.word)
    ```

    Words that are written together have the time of the source words that were read since the
    last ones. The last word is yielded when the next one is known, because punctuation may follow.

    Args:
        translator, policy, options: See `translate_live`.
        words: Words of `Transcriber.stream`, or of a recording.
    """
    read: list[Word] = []
    held: Word | None = None
    begin, done = 0.0, 0

    def sources() -> Iterator[str]:
        for word in words:
            read.append(word)
            yield word.word

    for commit in translate_live(translator, sources(), policy, **options):
        begin = max(begin, read[min(done, len(read) - 1)].start)
        end = max(begin, read[min(commit.num_read, len(read)) - 1].end)
        if held:
            joined = commit.text.removesuffix(join_words(commit.words)).strip()
            yield Word(held.word + joined, held.start, held.end)
            held = None
        if commit.words:
            *first, held = (Word(x, begin, end) for x in commit.words)
            yield from first
            begin, done = end, commit.num_read
    if held:
        yield held
