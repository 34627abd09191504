"""Sentences of tagged words: CoNLL files, and labels of their tokens."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from keras_transformer.data.text_files import iterate_lines
from keras_transformer.data.windows import NO_LABEL


def read_tagged(path: str | Path) -> list[tuple[list[str], list[str]]]:
    """The words and tags of each sentence.

    Args:
        path: a line a word, its tag after the last tab; sentences end in an empty line.
            Unpacked on the way if its name ends in `.gz`.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if a line has no tab, which it names, or there is no sentence.
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
    found = [sentence for sentence in sentences if sentence[0]]
    if not found:
        raise ValueError(f"{path} must have a sentence, got none")
    return found


def numbered(names: Sequence[str], labels: Sequence[str], source: str | Path) -> list[int]:
    """The number of each name among the labels.

    Args:
        names: to be looked up.
        labels: all that are known, in their order.
        source: the file that the names are of.

    Raises:
        ValueError: if a name is no label; it says which, of which file, and what the labels are.
    """
    numbers = {label: number for number, label in enumerate(labels)}
    if unknown := sorted(set(names) - set(numbers)):
        raise ValueError(f"{source}: a label must be one of {tuple(labels)}, got {unknown[0]!r}")
    return [numbers[name] for name in names]


def labels_of_tokens(
    encoded: Sequence[tuple[Sequence[int], Sequence[int]]], tags: Sequence[Sequence[int]]
) -> list[np.ndarray]:
    """The number of each word's tag at its first token, and `NO_LABEL` at all others.

    Args:
        encoded: of `TextTokenizer.encode_words`.
        tags: a number for each word.
    """
    labels = []
    for (ids, starts), numbers in zip(encoded, tags, strict=True):
        row = np.full(len(ids), NO_LABEL)
        row[starts] = numbers
        labels.append(row)
    return labels
