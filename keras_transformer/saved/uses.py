"""Declarations of tasks, from which their commands and their routes of the server are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from keras_transformer.signatures import number, option, whole


@dataclass(frozen=True)
class ClassifyOptions:
    """Options of `classify`."""

    threshold: float | None = option(
        None,
        number(lambda x: 0 <= x <= 1, "a number from 0 to 1, or None"),
        "Leave out labels with a lower probability.  [default: 0.5 if a text may have several "
        "labels, else 0]",
    )


@dataclass(frozen=True)
class FillOptions:
    """Options of `fill`."""

    top_k: int = option(5, whole(1), "Number of candidates per text.", flags="--top-k -k", most=100)


@dataclass(frozen=True)
class AnswerOptions:
    """Options of `answer`."""

    top_k: int = option(1, whole(1), "Maximum answers per question.", flags="--top-k -k", most=100)
    min_score: float | None = option(
        None,
        number(lambda x: True, "a finite number or None"),
        "Leave out answers with a lower score; for models of SQuAD 2.0. A score is above 0 if the "
        "answer is more probable than that there is no answer.  [default: no limit]",
    )
    stride: int = option(
        128,
        whole(1),
        "Tokens from the start of a window to the start of the next; at most half a window.",
        flags="--stride",
        served=False,  # with a small stride, a request would make the server compute many windows
    )


@dataclass(frozen=True)
class NoOptions:
    """Options of a task that has none."""


@dataclass(frozen=True)
class Use:
    """Declaration of a task, from which its command and its route of the server are made.

    Both call the method of the loaded object that has the name of the command, such as `classify`.

    Args:
        help: Help of the command.
        found: Key of the results in answers of the server, such as "labels".
        items: Type of the inputs: "texts", "texts or pairs" or "questions".
        record: Key of the result in the command's JSON lines; None: `found`.
        options: Class of the task's options; the server does not take those with `served=False`.
        search: Names of the options of `search.Search` that the command takes.
        tokens_per_batch: Default of the command's option `--tokens-per-batch`.
    """

    help: str
    found: str
    items: str = "texts"
    record: str | None = None
    options: type[Any] = NoOptions
    search: tuple[str, ...] = ()
    tokens_per_batch: int = 8192


CLASSIFY = Use(
    """Find the class of each line of text.

    Write one line for each line read: the most probable label, a tab, and its probability. With
    --json, write the text and all labels, best first. A tab in a line separates the two texts of a
    pair, for models of pairs.
    If a text may have any number of labels, write all above the threshold, with tabs between them.
    For a regression, write each label and its value.

    \b
    Examples:
        echo "A gripping film." | keras-transformer classify saved_models/sentiment
        keras-transformer classify saved_models/sentiment --json < reviews.txt > classes.jsonl
    """,
    "labels",
    "texts or pairs",
    options=ClassifyOptions,
)
TAG = Use(
    """Find the entities in each line of text, such as persons and places.

    Write one line for each line read: its entities as label=text, with tabs between them; an empty
    line if there are none. With --json, write the text and its entities with the number of their
    first character, of the one after the last, and a score.

    \b
    Examples:
        echo "Ann lives in Rome." | keras-transformer tag saved_models/entities
        keras-transformer tag saved_models/entities --json < news.txt > entities.jsonl
    """,
    "entities",
)
REGRESS = Use(
    """Find a number for each word of each line of text.

    Write one line for each line read: its words as word=number, with tabs between them. With
    --json, write the text and its words with the number of their first character, of the one after
    the last, and the value.

    \b
    Example:
        echo "Ann lives in Rome." | keras-transformer regress saved_models/reading-times
    """,
    "values",
)
FILL = Use(
    """Fill the masked place in each line of text.

    Each line has the mask token of the model once, [MASK] or <mask>. Write one line for each line
    read: the candidates, best first, with tabs between them. With --json,
    write the text and the candidates with their probabilities.

    \b
    Examples:
        echo "a [MASK] film" | keras-transformer fill saved_models/bert
        keras-transformer fill saved_models/esm --top-k 3 --json < proteins.txt
    """,
    "candidates",
    options=FillOptions,
    tokens_per_batch=1024,
)
ANSWER = Use(
    """Find the answer to each question in a passage.

    Each line has a question, a tab and a passage; or it is a JSON object with "question" and
    "context", the passage. Write one line for each line read: the answers, best first, with tabs
    between them; an empty line if there are none. With --json, write the object and its answers
    with the number of their first character, of the one after the last, and a score. A passage too
    long for the model is read in windows.

    \b
    Examples:
        keras-transformer answer saved_models/answers < questions.tsv
        keras-transformer answer saved_models/answers --json < questions.jsonl > answers.jsonl
    """,
    "answers",
    "questions",
    options=AnswerOptions,
)
PARSE = Use(
    """Find the phrase-structure tree of each sentence, one per line.

    Words and punctuation must be separated by spaces, as in a treebank. Write one line for each
    line read: the tree with brackets; an empty line if there are no words.

    \b
    Example:
        echo "The cat sat on the mat ." | keras-transformer parse saved_models/parser
    """,
    "trees",
    record="tree",
    search=("beam_size", "length_penalty"),
    tokens_per_batch=4096,
)
