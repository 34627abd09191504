"""Commands that run encoders on lines of text: classes, entities, masked places."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from keras_transformer.cli.common import Precision, answer_lines
from keras_transformer.cli.folders import saved_argument
from keras_transformer.cli.reading import TEXT_FILE, TextField, read_lines, read_whole_lines
from keras_transformer.data.formats import TSV, suffix_of

Classifier = Annotated[Path, saved_argument("A saved text classifier")]
Tagger = Annotated[Path, saved_argument("A saved token tagger")]
Filler = Annotated[Path, saved_argument("A saved masked language model")]
Input = Annotated[
    Path | None,
    typer.Option("--input", "-i", help=f"{TEXT_FILE}.  [default: stdin]"),
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="File to write.  [default: stdout]")
]
Json = Annotated[bool, typer.Option("--json", help="Write JSON lines, with all that is found.")]
TokensPerBatch = Annotated[
    int, typer.Option(min=1, help="Maximum tokens per batch, padding included.")
]
Threshold = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        max=1.0,
        help="Leave out labels with a lower probability.  [default: 0.5 for a model of any number "
        "of labels, else 0]",
    ),
]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Fail on a text too long for the model; else cut the text."),
]


def classify(
    folder: Classifier,
    input_file: Input = None,
    text_field: TextField = None,
    output_file: Output = None,
    as_json: Json = False,
    threshold: Threshold = None,
    tokens_per_batch: TokensPerBatch = 8192,
    strict: Strict = False,
    precision: Precision = None,
) -> None:
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
    """
    from keras_transformer.tasks.text_classifier import TextClassifier

    classifier = TextClassifier.load(folder, precision)
    options = dict(threshold=threshold, tokens_per_batch=tokens_per_batch, strict=strict)

    def find(lines):
        parts = [line.split("\t") for line in lines]
        texts = [own[0] if len(own) == 1 else tuple(own) for own in parts]
        return classifier.classify(texts, **options)

    def in_words(labels):
        return in_a_line(labels, classifier.problem)

    # Both columns of TSV are a pair.
    is_table = input_file is not None and suffix_of(input_file) in TSV and text_field is None
    lines = read_whole_lines(input_file) if is_table else read_lines(input_file, text_field)
    _each_line(lines, input_file, output_file, find, in_words, "labels" if as_json else None)


def tag(
    folder: Tagger,
    input_file: Input = None,
    text_field: TextField = None,
    output_file: Output = None,
    as_json: Json = False,
    tokens_per_batch: TokensPerBatch = 8192,
    strict: Strict = False,
    precision: Precision = None,
) -> None:
    """Find the entities in each line of text, such as persons and places.

    Write one line for each line read: its entities as label=text, with tabs between them; an empty
    line if there are none. With --json, write the text and its entities with the number of their
    first character, of the one after the last, and a score.

    \b
    Examples:
        echo "Ann lives in Rome." | keras-transformer tag saved_models/entities
        keras-transformer tag saved_models/entities --json < news.txt > entities.jsonl
    """
    from keras_transformer.tasks.token_tagger import TokenTagger

    tagger = TokenTagger.load(folder, precision)
    options = dict(tokens_per_batch=tokens_per_batch, strict=strict)

    def find(lines):
        return tagger.tag(lines, **options)

    lines = read_lines(input_file, text_field)
    _each_line(lines, input_file, output_file, find, _entities, "entities" if as_json else None)


def fill(
    folder: Filler,
    top_k: Annotated[
        int, typer.Option("--top-k", "-k", min=1, help="Number of candidates per line.")
    ] = 5,
    input_file: Input = None,
    text_field: TextField = None,
    output_file: Output = None,
    as_json: Json = False,
    tokens_per_batch: TokensPerBatch = 1024,
    strict: Strict = False,
    precision: Precision = None,
) -> None:
    """Fill the masked place in each line of text.

    Each line has the mask token once: [MASK] for a BERT or an ALBERT, <mask> for a RoBERTa or an
    ESM. Write one line for each line read: the candidates, best first, with tabs between them.
    With --json, write the text and the candidates with their probabilities.

    \b
    Examples:
        echo "a [MASK] film" | keras-transformer fill saved_models/bert
        keras-transformer fill saved_models/esm --top-k 3 --json < proteins.txt
    """
    from keras_transformer.tasks.mask_filler import MaskFiller

    filler = MaskFiller.load(folder, precision)
    options = dict(tokens_per_batch=tokens_per_batch, strict=strict)

    def find(lines):
        return filler.fill(lines, top_k, **options)

    lines = read_lines(input_file, text_field)
    _each_line(lines, input_file, output_file, find, _tokens, "candidates" if as_json else None)


def _tokens(candidates):
    return "\t".join(x.token for x in candidates)


def in_a_line(labels: Sequence[Any], problem: str) -> str:
    """Return the labels of a text or image as a line: the best, or all if they are independent.

    Args:
        labels: What `classify` found.
        problem: The `problem` of the classifier.
    """
    from keras_transformer.models.problems import REGRESSION, SINGLE

    if problem == REGRESSION:
        return "\t".join(f"{x.label}\t{x.value:.6g}" for x in labels)
    shown = labels[:1] if problem == SINGLE else labels
    return "\t".join(f"{x.label}\t{x.probability:.4f}" for x in shown)


def _entities(found):
    return "\t".join(f"{x.label}={' '.join(x.text.split())}" for x in found)


def _each_line(
    lines: Iterator[str],
    input_file: Path | None,
    output_file: Path | None,
    find: Callable[[Sequence[str]], list[list[Any]]],
    in_words: Callable[[list[Any]], str],
    name: str | None,
) -> None:
    """Write a line for each line read.

    Args:
        input_file: File to read; None: stdin.
        output_file: File to write; None: stdout.
        find: Function from lines to what is found in each, a list of dataclasses.
        in_words: Function from what is found in a line to the line to write.
        name: Name of what is found in lines of JSON; None: lines of text.
    """

    def answers(chunk):
        for line, found in zip(chunk, find(chunk), strict=True):
            if name is None:
                yield in_words(found)
                continue
            record = {"text": line, name: [dataclasses.asdict(x) for x in found]}
            yield json.dumps(record, ensure_ascii=False)

    answer_lines(input_file, output_file, answers, lines)
