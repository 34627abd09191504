"""Shortlists in Marian's two formats: binary, and lines of pieces with probabilities."""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from keras_transformer.system.files import replacing
from keras_transformer.system.git_lfs import refuse_pointer
from keras_transformer.text import Tokenizer
from keras_transformer.text.lexical_shortlist import NONE, Shortlist

MAGIC = 0xF11A48D5013417F5
# Magic number, checksum, and four counts: frequent ids, maximum candidates per source id, offsets,
# ids.
_HEADER = struct.Struct("<6Q")


def read_shortlist(
    path: str | os.PathLike,
    tokenizer: Tokenizer,
    *,
    sizes: Sequence[int] | None = None,
    frequent: int = 100,
    per_piece: int = 100,
    least: float = 0.0,
) -> Shortlist:
    """Read a shortlist of Marian, binary or text.

    Marian's lists allow the first ids of the target vocabulary for every source. A binary file
    contains their number, so `frequent`, `per_piece` and `least` apply to text files only; their
    defaults are Marian's. Marian adds up to 7 ids to make their number a multiple of 8; this
    package does not.

    Args:
        path: The file: Marian's binary form, or lines of a target piece, a source piece and the
            probability of the target (`lex.s2t`).
        tokenizer: Tokenizer of the model, with Marian's ids.
        sizes: Marian's number of source and target pieces, if the tokenizer has more; None: those
            of the tokenizer.
        frequent: Number of first target ids that are allowed for every source.
        per_piece: Maximum number of candidates per source piece.
        least: Minimum probability of a candidate.

    Raises:
        ValueError: If the file is damaged, a line is not as described, or a binary file has another
            number of source ids than the vocabulary, or target ids that are not in it.
    """
    path = Path(path)
    refuse_pointer(path)
    content = path.read_bytes()
    ours = tokenizer.source_vocab_size, tokenizer.target_vocab_size
    if content[:8] == struct.pack("<Q", MAGIC):
        frequent, rows = _binary_rows(path, content, sizes or ours)
        rows += [np.array([], "int32")] * (ours[0] - len(rows))
    else:
        rows = _text_rows(path, content, tokenizer, per_piece, least)
    if tokenizer.shared:  # then Marian also allows each piece of the source
        rows = [[number, *(i for i in row if i != number)] for number, row in enumerate(rows)]
    candidates = np.full((ours[0], max(1, *map(len, rows))), NONE, "int32")
    for number, row in enumerate(rows):
        candidates[number, : len(row)] = row
    common = np.arange(min(frequent, (sizes or ours)[1]), dtype="int32")
    return Shortlist(candidates, common, tokenizer.fingerprint())


def write_shortlist(path: str | os.PathLike, shortlist: Shortlist, tokenizer: Tokenizer) -> None:
    """Write a shortlist in Marian's binary form.

    Marian allows only the first ids of the vocabulary for every source. Our frequent ids are any
    ids, so they become candidates of EOS, which ends every source.

    Args:
        path: The file to write.
        shortlist: The shortlist.
        tokenizer: Its tokenizer.
    """
    rows = [np.unique(row[row != NONE]) for row in shortlist.candidates]
    every = [*shortlist.frequent, tokenizer.eos_id]
    rows[tokenizer.eos_id] = np.union1d(rows[tokenizer.eos_id], every)
    sizes = [len(row) for row in rows]
    offsets = np.cumsum([0, *sizes]).astype("<u8")
    ids = np.concatenate(rows).astype("<u4")
    rest = struct.pack("<4Q", 0, max(sizes), len(offsets), len(ids))
    rest += offsets.tobytes() + ids.tobytes()
    with replacing(Path(path)) as temporary:
        temporary.write_bytes(struct.pack("<2Q", MAGIC, _checksum(rest)) + rest)


def _checksum(content: bytes) -> int:
    """Return Marian's hash of the whole 64-bit words; up to 7 bytes at the end are ignored."""
    seed, limit = 0, (1 << 64) - 1
    for (word,) in struct.iter_unpack("<Q", content[: len(content) // 8 * 8]):
        seed ^= (word + 0x9E3779B9 + (seed << 6) + (seed >> 2)) & limit
    return seed


def _binary_rows(path, content, sizes):
    """Return the number of frequent ids, and the target ids of each source id."""
    if len(content) < _HEADER.size:
        raise ValueError(f"{path} is not a whole shortlist: it ends in its header")
    _, checksum, frequent, _, num_offsets, num_ids = _HEADER.unpack_from(content)
    expected = _HEADER.size + 8 * num_offsets + 4 * num_ids
    if len(content) != expected:
        raise ValueError(
            f"{path} is not a whole shortlist: it has {len(content)} bytes instead of {expected}"
        )
    if _checksum(content[16:]) != checksum:
        raise ValueError(f"{path} is damaged: its checksum is not that of its content")
    offsets = np.frombuffer(content, "<u8", num_offsets, _HEADER.size).astype("int64")
    ids = np.frombuffer(content, "<u4", num_ids, _HEADER.size + 8 * num_offsets)
    is_ordered = num_offsets > 0 and offsets[0] == 0 and offsets[-1] == num_ids
    if not is_ordered or (np.diff(offsets) < 0).any():
        raise ValueError(f"{path} is damaged: its offsets are not in order")
    has = num_offsets - 1, int(ids.max(initial=0)) + 1
    # A list may end with its last piece that has candidates: 31,999 of 32,000 in Firefox's en-es.
    if not 0.99 * sizes[0] <= has[0] <= sizes[0] or has[1] > sizes[1]:
        raise ValueError(
            f"{path} is of another vocabulary: it has {has[0]} source pieces and target ids below "
            f"{has[1]}, the model has {sizes[0]} and {sizes[1]}"
        )
    return frequent, np.split(ids, offsets[1:-1])


def _text_rows(path, content, tokenizer, per_piece, least):
    """Return the target ids of each source id, the most probable ones first."""
    sides = ("source", "target")
    source_ids, target_ids = (
        {piece: i for i, piece in enumerate(tokenizer.pieces_of(side))} for side in sides
    )
    scores: list[dict[int, float]] = [{} for _ in source_ids]
    try:
        lines = content.decode().splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not a shortlist of Marian: neither binary nor text") from error
    for number, line in enumerate(lines, 1):
        try:
            target, source, text = line.split()
            score = float(text)
        except ValueError as error:
            message = f"line {number} of {path} must be a target piece, a source piece and a number"
            raise ValueError(f"{message}, got {line!r:.80}") from error
        if "NULL" in (source, target) or score < least:
            continue
        source_id = source_ids.get(source, tokenizer.unk_id)
        target_id = target_ids.get(target, tokenizer.unk_id)
        if source_id is not None and target_id is not None:
            scores[source_id][target_id] = max(score, scores[source_id].get(target_id, score))
    return [sorted(row, key=lambda i: (-row[i], -i))[:per_piece] for row in scores]
