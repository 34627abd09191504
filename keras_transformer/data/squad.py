"""Reader of questions about texts in the format of SQuAD (Rajpurkar et al. 2016)."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from keras_transformer.data.text_files import opened


@dataclass(frozen=True)
class Question:
    """A question about a text, with its correct answers.

    Args:
        id: Id of the question in the data set.
        article: Title of the article that the text is from.
        question: The question.
        context: The text.
        answers: Correct answers, each with the index of its first character in the text; empty: the
            text does not answer the question.
    """

    id: str
    article: str
    question: str
    context: str
    answers: tuple[tuple[str, int], ...]


def read_squad(path: str | Path) -> list[Question]:
    """Read all questions of a SQuAD file; unanswerable ones have empty `answers`.

    Args:
        path: JSON file; decompressed if its name ends in `.gz` or `.zst`.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If it is not a SQuAD file, or an answer is not found at its `answer_start`.
    """
    with opened(path) as file:
        content = file.read()
    try:
        questions = [
            Question(
                asked["id"],
                article["title"],
                asked["question"],
                paragraph["context"],
                tuple((answer["text"], answer["answer_start"]) for answer in asked["answers"]),
            )
            for article in json.loads(content)["data"]
            for paragraph in article["paragraphs"]
            for asked in paragraph["qas"]
        ]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        # It is not JSON, not UTF-8, or of another structure.
        raise ValueError(f"{path} is not a SQuAD file: {error!r}") from error
    for asked in questions:
        texts = (asked.id, asked.article, asked.question, asked.context)
        if not all(isinstance(text, str) for text in texts):
            raise ValueError(
                f"{path}: id, title, question and context must be texts, got {reprlib.repr(texts)}"
            )
        for text, begin in asked.answers:
            is_place = isinstance(text, str) and isinstance(begin, int)
            if not is_place or asked.context[begin : begin + len(text)] != text:
                raise ValueError(
                    f"{path}: an answer to {asked.id!r:.80} must be at character {begin!r} of its "
                    f"context, got {text!r:.200}"
                )
    return questions


def span_of(places: Sequence[tuple[int, int]], answer: tuple[str, int]) -> tuple[int, int] | None:
    """Return the indices of an answer's first and last token; None if its end or all was cut off.

    Args:
        places: Start and end of each token in the context, in characters; (-1, -1) for other
            tokens. From `TextTokenizer.encode_pairs`.
        answer: The text of the answer, and the index of its first character in the context.
    """
    text, begin = answer
    end = begin + len(text)
    inside = [i for i, (first, after) in enumerate(places) if first < end and after > begin]
    if not inside or places[inside[-1]][1] < end:
        return None
    return inside[0], inside[-1]


SHARED_WORD = 2  # token type of passage tokens that are in the question, too


def with_shared_words(
    ids: Sequence[int], types: Sequence[int], places: Sequence[tuple[int, int]]
) -> list[int]:
    """Return token types, with `SHARED_WORD` for each passage token that is in the question, too.

    This is the feature "exact match" of Chen et al. 2017 ("Reading Wikipedia to Answer Open-Domain
    Questions", section 3.2).

    Args:
        ids: Token ids of a question and a passage.
        types: 0 for each token of the question, 1 for each of the passage.
        places: Start and end of each token in the passage, in characters; (-1, -1) for others.
    """
    asked = {x for x, (start, _) in zip(ids, places, strict=True) if start < 0}
    return [
        SHARED_WORD if start >= 0 and x in asked else kind
        for x, kind, (start, _) in zip(ids, types, places, strict=True)
    ]
