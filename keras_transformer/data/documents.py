"""Readers of documents in text files, JSON lines and Parquet, and their token ids on disk."""

from __future__ import annotations

import contextlib
import json
import reprlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from keras_transformer.config import require
from keras_transformer.data.formats import JSON, require_lines, suffix_of
from keras_transformer.data.lines import parquet_rows
from keras_transformer.data.ragged import Ragged
from keras_transformer.data.ragged_file import RaggedFile
from keras_transformer.data.text_files import iterate_lines

PARTS = ("train", "validation")
_CHUNK = 1 << 20  # minimum characters of a part of a text file
_TRAINED_ON = 0.9  # fraction of each file for training; the rest is for validation


class TextEncoder(Protocol):
    """The method of a tokenizer that documents need, see `TextTokenizer`."""

    def encode(self, texts: Sequence[str], framed: bool = True) -> list[list[int]]:
        """Return the ids of each text; if `framed`, between the tokenizer's special tokens."""
        ...


def json_lines(path: str | Path) -> Iterator[tuple[str, Any]]:
    """Yield the name, such as "data.jsonl, line 7", and the value of each non-blank line of JSON.

    Args:
        path: The file; decompressed if its name ends in `.gz` or `.zst`.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If a line is not JSON or not UTF-8; the message names file and line.
    """
    for number, line in enumerate(iterate_lines(path), 1):
        if line.strip():
            where = f"{path}, line {number}"
            try:
                yield where, json.loads(line)
            except (ValueError, RecursionError) as error:
                raise ValueError(f"{where}: malformed JSON ({error})") from error


def read_sentences(path: str | Path) -> list[list[str]]:
    """Return the documents of a text file, as lists of sentences.

    The file has one sentence per line, and an empty line between documents.

    Args:
        path: The file; decompressed if its name ends in `.gz` or `.zst`.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If the file has no text, is not UTF-8, or `formats.require_lines` refuses its
            suffix.
    """
    require_lines(path, "text")
    documents: list[list[str]] = [[]]
    for line in iterate_lines(path):
        if line.strip():
            documents[-1].append(line)
        elif documents[-1]:
            documents.append([])
    if not documents[0]:
        raise ValueError(f"{path} must have a line of text, got none")
    return documents if documents[-1] else documents[:-1]


def read_documents(path: str | Path) -> Iterator[tuple[bool, str]]:
    """Yield the text of a file in parts, as pairs: whether a document begins here, and the part.

    Args:
        path: JSON lines (`.jsonl`, `.ndjson`, `.json`) with one document per line, an object with a
            "text", or a string; Parquet with a column "text"; or a text file, which is one
            document, in parts of about a million characters. Empty documents are skipped. All but
            Parquet may be compressed (`.gz`, `.zst`).

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If a line or row has no text or is not UTF-8 (the message names it), or the
            suffix is that of another format (TSV is read as text).
        ImportError: If the package that reads Parquet or `.zst` is not installed.
    """
    suffix = suffix_of(path)
    if suffix in JSON or suffix == ".parquet":
        rows = enumerate(parquet_rows(path), 1) if suffix == ".parquet" else ()
        named = ((f"{path}, row {number}", row) for number, row in rows)
        for where, value in named if suffix == ".parquet" else json_lines(path):
            text = value.get("text") if isinstance(value, dict) else value
            if not isinstance(text, str):
                raise ValueError(f'{where}: expected a "text", got {reprlib.repr(value)}')
            if text:
                yield True, text
        return
    require_lines(path, "text, JSON lines or Parquet")
    begins, lines, size = True, [], 0
    for line in iterate_lines(path):
        lines.append(f"{line}\n")
        size += len(lines[-1])
        if size >= _CHUNK:
            yield begins, "".join(lines)
            begins, lines, size = False, [], 0
    if lines:
        yield begins, "".join(lines)


def texts_of(paths: Iterable[str | Path]) -> Iterator[str]:
    """Yield the text of files in parts, for the training of a tokenizer; see `read_documents`."""
    for path in paths:
        for _, text in read_documents(path):
            yield text


def encode_documents(
    paths: Sequence[str | Path], tokenizer: TextEncoder, separator: int, folder: str | Path
) -> dict[str, Ragged]:
    """Encode all documents of some files, split into training and validation data on disk.

    The last tenth of each file's characters is for validation; a document that spans this boundary
    is divided. Memory holds one text that `read_documents` yields (8,192 rows of Parquet), and the
    lengths of the documents.

    Args:
        paths: Files of text, see `read_documents`.
        tokenizer: The tokenizer. Each document begins with the special tokens that it adds to a
            text, such as BOS.
        separator: Id at the end of each document, except the last training document and the last
            validation document.
        folder: Existing folder for the files `train.bin` and `validation.bin`, which the result
            reads.

    Returns:
        The ids of each document, under "train" and "validation", mapped into memory.

    Raises:
        FileNotFoundError, ValueError, ImportError: See `read_documents`.
        ValueError: If a file has no text.
    """
    (begin,) = tokenizer.encode([""])
    files = {part: RaggedFile(Path(folder, f"{part}.bin")) for part in PARTS}
    with contextlib.ExitStack() as stack:
        for file in files.values():
            stack.enter_context(file)
        for path in paths:
            for part, begins, text in _divided(path):
                file = files[part]
                if begins and len(file):
                    file.extend([separator])
                if begins:
                    file.append(begin)
                file.extend(tokenizer.encode([text], framed=False)[0])
    return {part: file.read() for part, file in files.items()}


def _divided(path):
    """Yield the texts of a file as (one of `PARTS`, whether a document begins here, text)."""
    size = sum(len(text) for _, text in read_documents(path))
    require(size > 0, f"text in {path}", size, "at least one character")
    split, place = int(_TRAINED_ON * size), 0
    for begins, text in read_documents(path):
        left = max(split - place, 0)
        if head := text[:left]:
            yield "train", begins, head
        if tail := text[left:]:
            yield "validation", begins or place <= split, tail
        place += len(text)
