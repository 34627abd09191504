"""Vocabularies of Marian (SentencePiece models, lists in YAML or JSON) as one of our tokenizers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import sentencepiece

from keras_transformer.config import require
from keras_transformer.hub.marian.marian_options import read_pieces
from keras_transformer.system.git_lfs import read_bytes
from keras_transformer.text.marian_tokenizer import EOS, PAD, UNK, MarianTokenizer
from keras_transformer.text.pieces import SPACE
from keras_transformer.text.word_model import word_model

SPM = ".spm"
LISTS = (".yml", ".yaml", ".json")
_LONGEST = 2_000  # maximum bytes per piece in a list
PAIR = ("source.spm", "target.spm")
# Pieces of bytes that are control characters, which Marian never generates.
_CONTROL = re.compile(r"<0x[01][0-9A-F]>")


def tokenizer_of(paths: Sequence[Path], sizes: Sequence[int], where: Path) -> MarianTokenizer:
    """Return the tokenizer of a model, with padding as the last piece of both sides.

    A list (YAML or JSON) has the pieces of `source.spm` or `target.spm` in its folder. Without this
    SentencePiece model, they are words: texts are split at spaces, as in Marian.

    Args:
        paths: The vocabularies of source and target, which may be the same file.
        sizes: Number of their pieces, from the weights.
        where: The file of the weights, for messages.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If a file cannot be read, or has another number of pieces than the weights.
    """
    models, vocabularies = [], []
    for side, path, size in zip(PAIR, paths, sizes, strict=True):
        if not path.is_file():
            raise FileNotFoundError(f"there is no vocabulary {path}, which {where} needs")
        length, most = path.stat().st_size, _LONGEST * size
        is_short = path.suffix not in LISTS or length <= most
        require(is_short, f"bytes of {path}", length, f"at most {most} for {size} pieces")
        model, pieces = _read(path, path.parent / side)
        accepted = f"{size}, as in {where}"
        require(len(pieces) == size, f"the number of pieces in {path}", len(pieces), accepted)
        models.append(model)
        vocabularies.append(pieces)
    longest = max(sizes)
    unused = [f"<unused_{i}>" for i in range(longest)]
    padded = [x + unused[len(x) :] + [PAD] for x in vocabularies]
    source, target = ({piece: i for i, piece in enumerate(x)} for x in padded)
    try:
        return MarianTokenizer(models[0], models[1], source, None if source == target else target)
    except ValueError as error:
        files = " and ".join(dict.fromkeys(map(str, paths)))
        raise ValueError(f"{files} cannot be read: {error}") from error


def suppressed(tokenizer: MarianTokenizer) -> set[int]:
    """Return the ids of the target's pieces that Marian never generates."""
    pieces = tokenizer.pieces_of("target")
    return {i for i, piece in enumerate(pieces) if piece == UNK or _CONTROL.fullmatch(piece)}


def model_pieces(model: bytes, path: Path) -> list[str]:
    """Return the pieces of a SentencePiece model, with the names that `tokenizer_of` gives them.

    Args:
        model: The serialized model.
        path: Its file, for messages.

    Raises:
        ValueError: If it is no SentencePiece model, or has a piece twice.
    """
    return _with_names(_pieces(model, path), path)


def _read(path, beside):
    """Return the SentencePiece model of one side, and its pieces in the order of their ids.

    `beside` is the path of the SentencePiece model that a list belongs to, if it exists.
    """
    if path.suffix == SPM:
        model = read_bytes(path)
        return model, model_pieces(model, path)
    accepted = f"a path that ends with {SPM} or one of {LISTS}"
    require(path.suffix in LISTS, "a vocabulary", str(path), accepted)
    ids = read_pieces(path)
    pieces = sorted(ids, key=lambda piece: ids[piece])
    accepted = f"each number from 0 to {len(pieces) - 1} once"
    is_whole = [ids[piece] for piece in pieces] == list(range(len(pieces)))
    require(is_whole, f"the ids in {path}", [*ids.values()][:10], accepted)
    if not {EOS, UNK} <= {*pieces}:
        raise ValueError(f"{path} must have the pieces {EOS} and {UNK}")
    if beside.is_file():
        return read_bytes(beside), _with_names(pieces, path)
    words = [x if x in (UNK, EOS) else SPACE + x for x in _with_names(pieces, path)]
    return word_model(words, UNK, EOS), words


def _pieces(model, path):
    """Return the pieces of a SentencePiece model; those of EOS and unknown text get our names."""
    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(model)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"{path} is not a SentencePiece model") from error
    pieces = [processor.id_to_piece(i) for i in range(len(processor))]
    for name, number in ((EOS, processor.eos_id()), (UNK, processor.unk_id())):
        if number >= 0:
            pieces[number] = name
    return pieces


def _with_names(pieces, path):
    """Return the pieces; a piece with the name of the padding that we add gets another name.

    Raises:
        ValueError: If a piece occurs twice.
    """
    require(len({*pieces}) == len(pieces), f"the pieces in {path}", len(pieces), "different ones")
    return [f"<unused{PAD}>" if piece == PAD else piece for piece in pieces]
