"""Tokenizers of models that CTranslate2 has converted, from the tokenizer files beside them."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from keras_transformer.hub.ctranslate2_reader import Converted
from keras_transformer.system.files import write_json
from keras_transformer.system.git_lfs import read_bytes
from keras_transformer.text import SentencePieceTokenizer, Tokenizer
from keras_transformer.text.hugging_face_tokenizer import (
    FAST,
    MODELS,
    OPTIONS,
    START,
    read_tokenizer,
)
from keras_transformer.text.languages import M2M100, MBART50, NLLB200
from keras_transformer.text.marian_tokenizer import TAG, MarianTokenizer
from keras_transformer.text.pieces import SPACE, fields_of
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.text.tokenizer_options import ADDED
from keras_transformer.text.vocabulary_files import MERGES, WORDS

PAIR = ("source.spm", "target.spm")
UNIGRAM = 1  # model_type in a serialized SentencePiece model
OTHERS = (OPTIONS, "special_tokens_map.json", ADDED, FAST, WORDS, MERGES)
TIME = r"<\|\d+\.\d+\|>"  # Whisper's timestamp tokens


def text_tokenizer_of(converted: Converted) -> TextTokenizer:
    """Read the tokenizer of a Whisper; timestamp tokens that it lacks come from the vocabulary.

    Raises:
        FileNotFoundError: If its files are missing.
        ValueError: If it cannot be read or does not match the vocabulary.
    """
    folder, pieces = converted.folder, converted.vocabularies["target"]
    if not ((folder / FAST).is_file() or all((folder / x).is_file() for x in (WORDS, MERGES))):
        raise FileNotFoundError(
            f"{folder} has no {FAST}: copy the {FAST} of the original Whisper into it"
        )
    tokenizer = TextTokenizer.read(folder, "whisper")
    more = pieces[tokenizer.vocab_size :]
    if more and all(re.fullmatch(TIME, piece) for piece in more):
        tokenizer = tokenizer.with_special_tokens(more)
    ids = tokenizer.pieces()
    _check_pieces(sorted(ids, key=lambda piece: ids[piece]), pieces, folder)
    return tokenizer


def tokenizer_of(converted: Converted) -> Tokenizer:
    """Read the tokenizer of an encoder-decoder.

    Raises:
        FileNotFoundError: If its files are missing; names those that are needed.
        ValueError: If a file cannot be read, or the tokenizer does not match the vocabulary.
    """
    folder, (source, target) = converted.folder, converted.vocabularies.values()
    kind = _kind(converted.kind, source)
    if kind is None and all((folder / name).is_file() for name in PAIR):
        models = [read_bytes(folder / name) for name in PAIR]
        tokenizer = _trained(models, source, target) or MarianTokenizer(
            models[0],
            models[1],
            _ids(source),
            None if source == target else _ids(target),
            converted.config.bos_id,
        )
    else:
        tokenizer = _of_family(converted, kind or "bart")
    for side, pieces in converted.vocabularies.items():
        _check_pieces(tokenizer.pieces_of(side), pieces, folder)
    return tokenizer


def _kind(kind: str, pieces: Sequence[str]) -> str | None:
    """Return the `model_type` that a vocabulary shows; None: BART, Marian or one trained here."""
    if kind == "t5":
        return kind
    known = {*pieces}
    if {*NLLB200[:5]} <= known or {f"__{code}__" for code in M2M100[:5]} <= known:
        return "m2m_100"
    return "mbart" if {*MBART50[:5]} <= known else None


def _trained(models, source, target):
    """Return the tokenizer of a translator trained here; None if its pieces differ from these."""
    kind = dict(fields_of(dict(fields_of(models[0])).get(2, b""))).get(3, UNIGRAM)
    tags = [x.removeprefix(SPACE) for x in source]
    languages = [x[2:-2] for x in tags if re.fullmatch(TAG, x)]
    shared = models[0] if models[0] == models[1] else None
    try:
        tokenizer = SentencePieceTokenizer(
            models[0],
            None if shared else models[1],
            kind="unigram" if kind == UNIGRAM else "bpe",
            target_languages=languages,
        )
    except ValueError:  # special pieces are missing, as in Marian's models
        return None
    pieces = tokenizer.pieces_of("source"), tokenizer.pieces_of("target")
    return tokenizer if pieces == (source, target) else None


def _of_family(converted, kind):
    """Read the tokenizer of a Hugging Face family, from a temporary folder in its layout."""
    folder, config = converted.folder, converted.config
    source = converted.vocabularies["source"]
    theirs = dict(
        model_type=kind,
        vocab_size=len(source),
        pad_token_id=config.pad_id,
        eos_token_id=config.eos_id,
    )
    theirs[START] = config.bos_id
    with tempfile.TemporaryDirectory() as temporary:
        room = Path(temporary)
        files = {name: folder / name for name in (*OTHERS, *MODELS)}
        if not any((folder / name).is_file() for name in MODELS):  # as in our exports
            files[MODELS[0]] = folder / PAIR[0]
        for name, path in files.items():
            if path.is_file():
                shutil.copyfile(path, room / name)
        needed = (FAST, WORDS) if kind == "bart" else (FAST, *MODELS)
        if not any((room / name).is_file() for name in needed):
            raise FileNotFoundError(
                f"{folder} has no tokenizer: copy {' and '.join(PAIR)} (Marian), or one of "
                f"{', '.join(dict.fromkeys((FAST, *MODELS)))} of the original model into it"
            )
        _complete(room, kind, source, config.bos_id)
        try:
            return read_tokenizer(room, theirs)
        except (FileNotFoundError, ValueError) as error:
            is_missing = isinstance(error, FileNotFoundError)
            problem = str(error).replace(temporary, str(folder))
            raise (FileNotFoundError if is_missing else ValueError)(problem) from error


def _complete(room: Path, kind: str, pieces: Sequence[str], bos_id: int) -> None:
    """Write missing files of M2M-100 (`vocab.json`) and mBART (`tokenizer_config.json`)."""
    is_fast = not any((room / name).is_file() for name in MODELS)
    first = next((i for i, x in enumerate(pieces) if re.fullmatch(r"__\w+__", x)), None)
    if kind == "m2m_100" and first and not is_fast and not (room / WORDS).is_file():
        write_json(room / WORDS, _ids(pieces[:first]))
    if kind == "mbart" and not (room / OPTIONS).is_file():
        is_first = pieces[bos_id] in MBART50  # mBART-25 begins with the language
        name = "MBartTokenizer" if is_first else "MBart50Tokenizer"
        write_json(room / OPTIONS, dict(tokenizer_class=name))


def _ids(pieces: Sequence[str]) -> Mapping[str, int]:
    return {piece: i for i, piece in enumerate(pieces)}


def _check_pieces(pieces, vocabulary, folder):
    """Raise ValueError if a piece of a tokenizer differs from that in the model's vocabulary.

    Pieces named "<unused_..." and ids that only one of the two has are not compared.
    """
    for i, (piece, other) in enumerate(zip(pieces, vocabulary, strict=False)):
        if piece != other and not piece.startswith("<unused_"):
            raise ValueError(
                f"the tokenizer files in {folder} do not belong to the model: piece {i} is "
                f"{piece!r} in them and {other!r} in the vocabulary"
            )
