"""Questions about texts, as SQuAD's files have them (Rajpurkar et al. 2016)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from keras_transformer.data.text_files import opened


@dataclass(frozen=True)
class Question:
    """A question, the text that answers it, and right answers with their first characters."""

    id: str
    article: str
    question: str
    context: str
    answers: tuple[tuple[str, int], ...]


def read_squad(path: str | Path) -> list[Question]:
    """All questions of a file; those without an answer have no `answers`.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is no SQuAD file, or an answer does not stand where it is said to.
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
    except (ValueError, KeyError, TypeError) as error:  # no JSON, no UTF-8, or of another form
        raise ValueError(f"{path} is no SQuAD file: {error!r}") from error
    for asked in questions:
        for text, begin in asked.answers:
            is_place = isinstance(text, str) and isinstance(begin, int)
            if not is_place or asked.context[begin : begin + len(text)] != text:
                raise ValueError(
                    f"{path}: an answer to {asked.id!r} must stand at character {begin!r} of its "
                    f"text, got {text!r}"
                )
    return questions


def span_of(places: Sequence[tuple[int, int]], answer: tuple[str, int]) -> tuple[int, int] | None:
    """The first and the last piece of an answer; None if not all of it is there.

    Args:
        places: of `TextTokenizer.encode_pairs`.
        answer: its text and first character.
    """
    text, begin = answer
    end = begin + len(text)
    inside = [i for i, (first, after) in enumerate(places) if first < end and after > begin]
    if not inside or places[inside[-1]][1] < end:
        return None
    return inside[0], inside[-1]
