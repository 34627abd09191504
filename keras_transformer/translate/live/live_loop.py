"""The loop of live translation: read words, draft, and write what the policy allows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from keras_transformer.config import require
from keras_transformer.search import LIVE, Search, spelled_out
from keras_transformer.text.arriving_text import sentence_parts
from keras_transformer.text.tokenizer import checked_texts
from keras_transformer.text.word_spans import join_words, split_words
from keras_transformer.translate.live.drafts import check_policy, draft
from keras_transformer.translate.live.policies import Draft, Policy, WaitK
from keras_transformer.translate.translator import Translator


@dataclass(frozen=True)
class Commit:
    """A part of a live translation, which is final.

    Args:
        text: Text to append to the translation of the sentence, with the space or the punctuation
            that precedes its first word; empty if a sentence ends without a new word.
        words: The words in it.
        num_read: Number of source words read so far, in all sentences.
        ends_sentence: Whether the sentence ends after these words.
    """

    text: str
    words: list[str]
    num_read: int
    ends_sentence: bool


@spelled_out(Search, LIVE, beam_size=1)
def translate_live(
    translator: Translator,
    chunks: Iterable[str],
    policy: Policy | None = None,
    **options: Any,
) -> Iterator[Commit]:
    """Yield the translation in parts while the source arrives; written words never change.

    ```python
    for commit in translate_live(translator, ["The old", "man", "loves the dog."], WaitK(2)):
        print(commit.text, end="\\n" if commit.ends_sentence else "")
    ```

    After each chunk, the source words of the sentence are translated again, after the words that
    are already written, and the policy decides how many more are written. The end of a sentence is
    found as in `text.arriving_text`, or forced when the sentence has half as many tokens as the
    model's `max_length`; then its translation is completed.

    Args:
        translator: Translator with any engine that accepts `prefixes`.
        chunks: Texts of whole words, such as single ones, read one by one.
        policy: `WaitK`, `AlignAtt` or `LocalAgreement`; None: `WaitK(3)`. `AlignAtt` needs
            the Keras model of an encoder-decoder.
        options: Options of `Translator.translate`, such as `beam_size=1`, except `protect`.

    Raises:
        ValueError: If the policy is none or needs another translator, or an option is out of range.
    """
    is_several = isinstance(chunks, Iterable) and not isinstance(chunks, str | bytes)
    require(is_several, "chunks", chunks, "an iterable of texts")
    policy = WaitK() if policy is None else policy
    return _commits(translator, chunks, policy, _search(translator, policy, options))


@spelled_out(Search, LIVE, beam_size=1)
def continue_translation(
    translator: Translator,
    source: str,
    written: str,
    policy: Policy,
    is_whole: bool = False,
    **options: Any,
) -> str:
    """Return the text that may be appended to what is written of a sentence's translation.

    This is one step of `translate_live`, for callers that keep the state themselves.

    Args:
        translator, options: See `translate_live`.
        source: The whole words of the sentence that have arrived.
        written: What is written of its translation.
        policy: `WaitK` or `AlignAtt`, which look at one draft only.
        is_whole: Whether the sentence ends after these words.

    Raises:
        ValueError: If the policy needs more drafts or another translator.
    """
    search = _search(translator, policy, options)
    require(policy.num_drafts == 1, "policy", policy, "WaitK or AlignAtt")
    sentence = _Sentence(translator, policy, search)
    sentence.source, sentence.written = split_words(source), split_words(written)
    if not sentence.source:
        return ""
    return (sentence.rest() if is_whole else sentence.more())[0]


def _search(translator, policy, options):
    """Return the options of the search, after a check of the policy."""
    require(isinstance(policy, Policy), "policy", policy, "a Policy, such as WaitK(3)")
    check_policy(translator, policy)
    search = translator.options({"beam_size": 1, **options}, LIVE, num_hypotheses=1)
    return replace(search, protect=False)


def _commits(translator, chunks, policy, search):
    """Yield the commits of `translate_live`."""
    sentence, num_read = _Sentence(translator, policy, search), 0
    for chunk in chunks:
        for words, ends in sentence_parts(*checked_texts([chunk], "chunks")):
            num_read += len(words)
            sentence.source += words
            if ends or sentence.is_long():
                if sentence.source:
                    yield Commit(*sentence.rest(), num_read, True)
                sentence = _Sentence(translator, policy, search)
            elif (new := sentence.more())[1]:
                yield Commit(*new, num_read, False)
    if sentence.source:
        yield Commit(*sentence.rest(), num_read, True)


class _Sentence:
    """The words of a sentence read and written so far, and its last drafts."""

    def __init__(self, translator: Translator, policy: Policy, search: Search):
        self.translator, self.policy, self.search = translator, policy, search
        self.source: list[str] = []
        self.written: list[str] = []
        self.drafts: list[Draft] = []

    def is_long(self) -> bool:
        """Return whether the source has more tokens than half the model's `max_length`."""
        (ids,) = self.translator.tokenizer.encode_source([join_words(self.source)])
        return len(ids) > self.translator.config.max_length // 2

    def more(self) -> tuple[str, list[str]]:
        """Return the new text that the policy allows, and its words."""
        num_read, num_written = len(self.source), len(self.written)
        if not self.policy.may_write(num_read, num_written):
            return "", []
        drafts = [*self.drafts, self._draft(is_whole=False)]
        self.drafts = drafts[-self.policy.num_drafts :]
        count = self.policy.stable(self.drafts, num_read)
        return self._write(self.drafts[-1].words[:count]) if count > num_written else ("", [])

    def rest(self) -> tuple[str, list[str]]:
        """Return the text that completes the translation of the sentence, and its words."""
        return self._write(self._draft(is_whole=True).words)

    def _draft(self, is_whole: bool) -> Draft:
        return draft(self.translator, self.search, self.source, self.written, is_whole)

    def _write(self, words: list[str]) -> tuple[str, list[str]]:
        before, self.written = self.written, words
        return join_words(words)[len(join_words(before)) :], words[len(before) :]
