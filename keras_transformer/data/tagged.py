"""Sentences of tagged words: CoNLL files."""

from __future__ import annotations

from pathlib import Path

from keras_transformer.data.corpora import iterate_lines


def read_tagged(path: str | Path) -> list[tuple[list[str], list[str]]]:
    """The words and tags of each sentence.

    Args:
        path: a line a word, its tag behind the last tab; sentences end in an empty line.
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
