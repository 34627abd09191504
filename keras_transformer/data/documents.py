"""Documents of text files, and their token ids on disk."""

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
_CHUNK = 1 << 20  # characters that are encoded in one call
_TRAINED_ON = 0.9  # share of each file; the rest is for validation


class Encoder(Protocol):
    """The part of a tokenizer that documents need."""

    def encode(self, texts: Sequence[str], framed: bool = True) -> list[list[int]]:
        """Return the ids of each text; framed by special tokens, if the tokenizer has such."""
        ...


def json_lines(path: str | Path) -> Iterator[tuple[str, Any]]:
    """Yield ("file, line 7", value) for each line of JSON that is not blank.

    Args:
        path: The file; decompressed if its name ends in `.gz` or `.zst`.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If a line is no JSON or no UTF-8; names file and line.
    """
    for number, line in enumerate(iterate_lines(path), 1):
        if line.strip():
            where = f"{path}, line {number}"
            try:
                yield where, json.loads(line)
            except (ValueError, RecursionError) as error:
                raise ValueError(f"{where}: malformed JSON ({error})") from error


def read_sentences(path: str | Path) -> list[list[str]]:
    """Return the documents of a text file: a sentence per line, an empty line after each document.

    Args:
        path: The file; decompressed if its name ends in `.gz` or `.zst`.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If no line is left, or the file is not UTF-8; names file and line.
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
    """Yield the text of a file in parts: (whether a document begins, text).

    Args:
        path: JSON lines (`.jsonl`), a document per line: an object with a "text", or a string; or
            Parquet, with a column "text". A text file is one document; it comes in parts of about a
            million characters. All but Parquet may be a `.gz` or `.zst`.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If a line has no text or the file is not UTF-8; names file and line.
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
    """Yield all text of files, to train a tokenizer on; see `read_documents`."""
    for path in paths:
        for _, text in read_documents(path):
            yield text


def encode_documents(
    paths: Sequence[str | Path], tokenizer: Encoder, separator: int, folder: str | Path
) -> dict[str, Ragged]:
    """Write the ids of all documents to disk; return those to train on and those to validate with.

    The last tenth of each file's characters is for validation; a document at this place is divided.
    The memory that this takes grows with the number of documents, and not with their lengths.

    Args:
        paths: Text files, see `read_documents`.
        tokenizer: The tokenizer. Special tokens that it puts before a text, such as BOS, begin each
            document.
        separator: Id that ends each document but the last.
        folder: Existing folder for the files `train.bin` and `validation.bin`, which the result
            reads.

    Returns:
        The ids of the documents of `train` and `validation`, mapped into memory.

    Raises:
        FileNotFoundError, ValueError: See `read_documents`; or if a file has no text.
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
    """Yield (part, whether a document begins in it, text) for all text of a file."""
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
