"""Answers to questions, found in passages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import keras
import numpy as np
from keras import ops

from keras_transformer.config import is_number, require, require_whole
from keras_transformer.data.squad import SHARED_WORD, with_shared_words
from keras_transformer.saved.kinds import kind_of
from keras_transformer.tasks.encoder_task import EncoderTask

LONGEST = 30  # pieces of the longest answer that is considered
STRIDE = 128


@dataclass(frozen=True)
class Answer:
    """A part of a passage that answers a question.

    Args:
        text: The characters of the passage from `start` to `end`.
        start: Number of the first character.
        end: Number of the character after the last.
        score: Logit of the answer less that of "no answer".
    """

    text: str
    start: int
    end: int
    score: float


class QuestionAnswerer(EncoderTask):
    """Finds answers in passages with what `training.question_answering` or `import` saved.

    ```python
    answerer = QuestionAnswerer.load("saved_models/answers")
    (answers,) = answerer.answer([("Where does Ann live?", "Ann Smith lives in Rome.")])
    for answer in answers:
        print(answer.text, answer.start, answer.end, answer.score)
    ```

    The logit of an answer is that of its first token as a start, plus that of its last as an end;
    the logit of "no answer" is the same of the first token of all, [CLS] (Devlin et al. 2019,
    sections 4.2 and 4.3). A passage that is too long for the model is read in overlapping windows:
    the best answer of all of them counts, and the least logit of "no answer". A model of three
    token types also reads which tokens of the passage the question has (`with_shared_words`).

    Args:
        model: Encoder with the head "span_extraction".
        tokenizer: Tokenizer that the model was trained with.

    Raises:
        ValueError: If the model has another head, or the tokenizer has more pieces than the model.
    """

    kind = kind_of("QuestionAnswerer")

    def answer(
        self,
        pairs: Sequence[tuple[str, str]],
        top_k: int = 1,
        *,
        min_score: float | None = None,
        max_answer_length: int = LONGEST,
        stride: int = STRIDE,
        tokens_per_batch: int = 8192,
        strict: bool = False,
    ) -> list[list[Answer]]:
        """Return the answers to each question, best first.

        Args:
            pairs: Pairs of a question and a passage.
            top_k: Number of answers per pair. There are fewer if the passage has no more.
            min_score: Answers with a lower score are left out. 0: those less probable than "no
                answer", of a model that was trained with questions without an answer (SQuAD 2.0;
                other models have random scores of "no answer"). None: none are left out.
            max_answer_length: Maximum tokens of an answer.
            stride: Tokens from the start of a window to that of the next, at most half of the
                tokens of the passage in a window.
            tokens_per_batch: Maximum tokens in a batch, padding included.
            strict: Whether a passage that is too long raises ValueError; else it is read in
                windows.

        Raises:
            ValueError: If an argument is out of range, a question leaves no room for a passage, or
                a passage is too long and `strict`.
        """
        counts = dict(top_k=top_k, max_answer_length=max_answer_length, stride=stride)
        for name, value in counts.items():
            require_whole(name, value, 1)
        fits = min_score is None or is_number(min_score)
        require(fits, "min_score", min_score, "a finite number or None")
        pairs = list(pairs)
        encoded = self.tokenizer.encode_pairs(pairs, 1 << 30)
        if getattr(self.model.config, "num_types", 0) > SHARED_WORD:
            encoded = [(x, with_shared_words(x, types, at), at) for x, types, at in encoded]
        windows = [
            (i, *window)
            for i, (pair, own) in enumerate(zip(pairs, encoded, strict=True))
            for window in self._windows(pair, *own, stride, strict)
        ]
        _, ids, types, _ = zip(*windows, strict=True) if windows else [()] * 4
        found: list[dict[tuple[int, int], float]] = [{} for _ in pairs]
        no_answer = [np.inf] * len(pairs)
        for window, logits in zip(windows, self._run(ids, tokens_per_batch, types), strict=True):
            i, places = window[0], window[3]
            no_answer[i] = min(no_answer[i], float(logits["start"][0] + logits["end"][0]))
            for score, *span in _spans(logits, places, max_answer_length, top_k):
                start, end = _trimmed(pairs[i][1], *span)
                if start < end:
                    found[i][start, end] = max(score, found[i].get((start, end), -np.inf))
        results = []
        for (_, passage), own, none in zip(pairs, found, no_answer, strict=True):
            best = sorted((none - score, *place) for place, score in own.items())[:top_k]
            answers = [Answer(passage[start:end], start, end, -x) for x, start, end in best]
            results.append([x for x in answers if min_score is None or x.score >= min_score])
        return results

    def in_words(self, found: Sequence[Answer]) -> str:
        """Return the answers to a question as a line of text."""
        return "\t".join(" ".join(x.text.split()) for x in found)

    def _windows(self, pair, ids, types, places, stride, strict):
        """Yield the ids, types and places of each window; none if the passage has no tokens."""
        limit = self.model.config.max_length
        inside = [i for i, (start, _) in enumerate(places) if start >= 0]
        if not inside:
            return
        if strict:
            self._is_long(ids, pair, strict)
        first, after = inside[0], inside[-1] + 1
        others = len(ids) - (after - first)
        room = limit - others
        if room < 1:
            raise ValueError(
                f"questions must leave room for a passage in the model's {limit} tokens, got "
                f"{others} with special tokens in {pair[0]!r:.60}"
            )
        start, end = first, 0
        while end < after:
            end = min(start + room, after)
            start = max(first, end - room)  # the last window is as long as the others
            yield tuple(x[:first] + x[start:end] + x[after:] for x in (ids, types, places))
            start += min(stride, -(-room // 2))

    def _function(self) -> Callable:
        def logits(inputs):
            return keras.tree.map_structure(lambda x: ops.cast(x, "float32"), self.model(inputs))

        return logits


def _spans(logits, places, longest, top_k):
    """Yield a window's best spans: score, first character, and the one after the last."""
    is_inside = np.array([start >= 0 for start, _ in places])
    start_T, end_T = (
        np.where(is_inside, logits[name][: len(places)], -np.inf) for name in ("start", "end")
    )
    longest = min(longest, len(places))
    end_T = np.pad(end_T, (0, longest - 1), constant_values=-np.inf)
    # Row: first token. Column: number of further tokens.
    scores = start_T[:, None] + np.lib.stride_tricks.sliding_window_view(end_T, longest)
    for best in np.argsort(-scores, axis=None, kind="stable")[:top_k]:
        first, more = np.unravel_index(best, scores.shape)
        if scores[first, more] > -np.inf:
            yield float(scores[first, more]), places[first][0], places[first + more][1]


def _trimmed(passage, start, end):
    """Return the place without white space at its ends, which some tokenizers add to tokens."""
    text = passage[start:end]
    start += len(text) - len(text.lstrip())
    return start, start + len(text.strip())
