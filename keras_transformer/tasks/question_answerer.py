"""The `QuestionAnswerer`, which finds answers to questions in passages of text."""

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

LONGEST = 30  # default maximum of an answer, in tokens
STRIDE = 128  # default number of tokens from the start of a window to the start of the next


@dataclass(frozen=True)
class Answer:
    """A part of a passage that answers a question.

    Args:
        text: The answer: `passage[start:end]`.
        start: Index of its first character in the passage.
        end: Index of the character after its last.
        score: Logit of the answer minus the logit of "no answer".
    """

    text: str
    start: int
    end: int
    score: float


class QuestionAnswerer(EncoderTask):
    """A finder of answers in passages that `training.question_answering` or `import` saved.

    ```python
    answerer = QuestionAnswerer.load("saved_models/answers")
    (answers,) = answerer.answer([("Where does Ann live?", "Ann Smith lives in Rome.")])
    for answer in answers:
        print(answer.text, answer.start, answer.end, answer.score)
    ```

    The logit of an answer is the start logit of its first token plus the end logit of its last
    token. The logit of "no answer" is the sum of both logits of [CLS], the first token of the input
    (Devlin et al. 2019, sections 4.2 and 4.3). A passage that is too long for the model is read in
    overlapping windows; their answers are ranked together, and the lowest logit of "no answer"
    counts. For a model with three token types, the third marks tokens of the passage that also
    occur in the question (`data.squad.with_shared_words`).

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
            top_k: Maximum number of answers per pair.
            min_score: Answers with a lower score are left out; with 0, those less probable than "no
                answer". Use it only if the model was trained with unanswerable questions (SQuAD
                2.0): other models have random scores of "no answer". None: all are returned.
            max_answer_length: Maximum tokens of an answer.
            stride: Tokens from the start of one window to the start of the next; limited to half
                of the tokens of the passage in a window.
            tokens_per_batch: Maximum tokens in a batch, padding included.
            strict: Whether a passage that is too long raises ValueError; else it is read in
                windows.

        Raises:
            ValueError: If an argument is out of range, a question alone fills the model's
                `max_length`, or a passage is too long and `strict` is set.
        """
        counts = dict(top_k=top_k, max_answer_length=max_answer_length, stride=stride)
        for name, value in counts.items():
            require_whole(name, value, 1)
        is_score = min_score is None or is_number(min_score)
        require(is_score, "min_score", min_score, "a finite number or None")
        pairs = list(pairs)
        encoded = self.tokenizer.encode_pairs(pairs, 1 << 30)
        if getattr(self.model.config, "num_types", 0) > SHARED_WORD:
            encoded = [(x, with_shared_words(x, types, at), at) for x, types, at in encoded]
        windows = [
            (i, *window)
            for i, (pair, encoding) in enumerate(zip(pairs, encoded, strict=True))
            for window in self._windows(pair, *encoding, stride, strict)
        ]
        _, ids, types, _ = zip(*windows, strict=True) if windows else [()] * 4
        span_scores: list[dict[tuple[int, int], float]] = [{} for _ in pairs]
        no_answer = [np.inf] * len(pairs)
        for window, logits in zip(windows, self._run(ids, tokens_per_batch, types), strict=True):
            i, places = window[0], window[3]
            no_answer[i] = min(no_answer[i], float(logits["start"][0] + logits["end"][0]))
            for score, *span in _spans(logits, places, max_answer_length, top_k):
                start, end = _trimmed(pairs[i][1], *span)
                if start < end:
                    span_scores[i][start, end] = max(
                        score, span_scores[i].get((start, end), -np.inf)
                    )
        results = []
        for (_, passage), scores, none in zip(pairs, span_scores, no_answer, strict=True):
            best = sorted((none - score, *place) for place, score in scores.items())[:top_k]
            answers = [Answer(passage[start:end], start, end, -x) for x, start, end in best]
            results.append([x for x in answers if min_score is None or x.score >= min_score])
        return results

    def in_words(self, found: Sequence[Answer]) -> str:
        """Return the answers to a question as a line of text, separated by tabs."""
        return "\t".join(" ".join(x.text.split()) for x in found)

    def _windows(self, pair, ids, types, places, stride, strict):
        """Yield the ids, types and places of each window of a pair; nothing for an empty passage.

        Args:
            pair: The question and the passage.
            ids, types, places: Token ids of the pair, their types, and the start and end of each
                token in the passage; (-1, -1) for other tokens.
            stride, strict: See `answer`.
        """
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

    def function(self) -> Callable:
        def logits(inputs):
            return keras.tree.map_structure(lambda x: ops.cast(x, "float32"), self.model(inputs))

        return logits


def _spans(logits, places, longest, top_k):
    """Yield the best spans of a window: score, index of the first character, index after the last.

    Args:
        logits: Logits "start" and "end" of the window (T,).
        places: Start and end of each token in the passage; (-1, -1) for other tokens.
        longest: Maximum tokens of a span.
        top_k: Maximum number of spans.
    """
    is_inside = np.array([start >= 0 for start, _ in places])
    start_T, end_T = (
        np.where(is_inside, logits[name][: len(places)], -np.inf) for name in ("start", "end")
    )
    longest = min(longest, len(places))
    end_T = np.pad(end_T, (0, longest - 1), constant_values=-np.inf)
    # Rows: first token of the span. Columns: number of further tokens.
    scores = start_T[:, None] + np.lib.stride_tricks.sliding_window_view(end_T, longest)
    for best in np.argsort(-scores, axis=None, kind="stable")[:top_k]:
        first, more = np.unravel_index(best, scores.shape)
        if scores[first, more] > -np.inf:
            yield float(scores[first, more]), places[first][0], places[first + more][1]


def _trimmed(passage, start, end):
    """Return the span without white space at its ends, which the tokens of some tokenizers have."""
    text = passage[start:end]
    start += len(text) - len(text.lstrip())
    return start, start + len(text.strip())
