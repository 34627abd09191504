"""Tagged words: a reader of CoNLL files, and labels for the tokens of the words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from keras_transformer.data.text_files import iterate_lines
from keras_transformer.data.windows import NO_LABEL


def read_tagged(path: str | Path) -> list[tuple[list[str], list[str]]]:
    """Return the words and the tags of each sentence of a file.

    Args:
        path: File with one word per line, its tag after the last tab, and an empty line after
            each sentence; decompressed if its name ends in `.gz` or `.zst`.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If a line has no tab or no tag, or there is no sentence.
    """
    sentences: list[tuple[list[str], list[str]]] = [([], [])]
    for number, line in enumerate(iterate_lines(path), 1):
        if not line.strip():
            if sentences[-1][0]:
                sentences.append(([], []))
            continue
        word, tab, tag = line.rpartition("\t")
        if not tab or not tag.strip():
            raise ValueError(f"{path}, line {number} must be a word, a tab and a tag, got {line!r}")
        sentences[-1][0].append(word)
        sentences[-1][1].append(tag.strip())
    sentences = [sentence for sentence in sentences if sentence[0]]
    if not sentences:
        raise ValueError(f"{path} must have a sentence, got none")
    return sentences


def numbered(names: Sequence[str], labels: Sequence[str], source: str | Path) -> list[int]:
    """Return the index of each name in a list of labels.

    Args:
        names: Names to look up.
        labels: All labels, in order.
        source: The file that the names come from, for the error message.

    Raises:
        ValueError: If a name is not among the labels.
    """
    numbers = {label: number for number, label in enumerate(labels)}
    if unknown := sorted(set(names) - set(numbers)):
        raise ValueError(f"{source}: a label must be one of {tuple(labels)}, got {unknown[0]!r}")
    return [numbers[name] for name in names]


def labels_of_tokens(
    encoded: Sequence[tuple[Sequence[int], Sequence[int]]], tags: Sequence[Sequence[int]]
) -> list[np.ndarray]:
    """Return labels (T,) of the tokens of each sentence.

    The label of the first token of a word is the word's tag; other tokens have `NO_LABEL`. Words
    that were cut off have no label.

    Args:
        encoded: Token ids and word starts of each sentence, from `TextTokenizer.encode_words`.
        tags: Number of the tag of each word of each sentence.
    """
    labels = []
    for (ids, starts), numbers in zip(encoded, tags, strict=True):
        row = np.full(len(ids), NO_LABEL)
        kept = np.less(starts, len(ids))
        row[np.array(starts, int)[kept]] = np.array(numbers, int)[kept]
        labels.append(row)
    return labels
