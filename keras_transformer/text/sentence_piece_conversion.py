"""Conversion of a SentencePiece model to a `tokenizer.json` with the same ids and texts.

Python's `tokenizers` and JavaScript's `@huggingface/tokenizers` read the file. Text that spells a
control piece, such as "</s>", is encoded like any other text, as in SentencePiece.

- Byte-pair encoding merges the pairs whose union is a piece, best score first. User-defined symbols
  are added tokens, found in the normalized text.
- A unigram model is written in the alphabet of bytes of `ByteLevel`: JavaScript's reader has no
  byte fallback. In it, the first byte of an unknown character has SentencePiece's score of an
  unknown character and each other byte 0, so that the best segmentation stays the same.

Two things differ. Characters of Unicode 13 and later are normalized as far as the reader's tables
know them. The noncharacters U+FDD0 to U+FDD3 are removed from texts.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from keras_transformer.config import require
from keras_transformer.text.charsmap import STOP, normalizers_of, replacement, rules_of
from keras_transformer.text.pieces import SPACE, USER_DEFINED, fields_of

NORMAL, UNKNOWN, CONTROL, UNUSED, BYTE = 1, 2, 3, 5, 6  # types of pieces; 4 is `USER_DEFINED`
KINDS = {1: "unigram", 2: "bpe"}  # SentencePiece's numbers of the kinds of models
# Marks in a text: its start, while it is normalized, and the space in a user-defined symbol.
START, SYMBOL = "\ufdd2", "\ufdd3"
UNKNOWN_PENALTY = 10  # an unknown character scores less than the worst piece by this much
USER_DEFINED_SCORE = -0.1


class _Piece(NamedTuple):
    text: str
    score: float
    type: int


def tokenizer_json(
    model: bytes, before: Sequence[int] = (), after: Sequence[int] = ()
) -> dict[str, Any]:
    """Return the content of the `tokenizer.json` of a SentencePiece model.

    Args:
        model: The serialized model, of kind "bpe" or "unigram".
        before, after: Special ids around each text.

    Raises:
        ValueError: If the model has a property that cannot be written; the message names it.
    """
    parts = dict(fields_of(model))
    trainer, rules = (dict(fields_of(parts.get(i, b""))) for i in (2, 3))
    pieces = [_piece(value) for number, value in fields_of(model) if number == 1]
    kind = KINDS.get(trainer.get(3, 1))
    _check(kind, pieces, trainer, rules, parts)
    write = _bpe if kind == "bpe" else _unigram
    names, specific = write(pieces, trainer.get(44, b" \xe2\x81\x87 ").decode())
    dummy_prefix, remove_spaces = (rules.get(i, 1) for i in (3, 4))
    decoders = [*specific.pop("decoders"), replacement(f"[{SPACE}{SYMBOL}]", " ")]
    if dummy_prefix or remove_spaces:
        decoders.append(replacement(r"\A +" if remove_spaces else r"\A ", ""))
    decoders.append(replacement(STOP, ""))
    frame = [{"SpecialToken": {"id": names[i], "type_id": 0}} for i in (*before, *after)]
    frame.insert(len(before), {"Sequence": {"id": "A", "type_id": 0}})
    special = {i: names[i] for i in (*before, *after)}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": {"type": "Sequence", "normalizers": _normalizers(rules, pieces)},
        "pre_tokenizer": None,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": frame,
            "pair": [*frame, {"Sequence": {"id": "B", "type_id": 0}}],
            "special_tokens": {x: {"id": x, "ids": [i], "tokens": [x]} for i, x in special.items()},
        },
        "decoder": {"type": "Sequence", "decoders": decoders},
        **specific,
    }


def _check(kind, pieces, trainer, rules, parts):
    """Raise ValueError if a property of a model cannot be written."""
    name = "the SentencePiece model"
    require(kind, f"{name}'s kind", trainer.get(3, 1), f"one of {KINDS} for a tokenizer.json")
    refused = {
        "treat_whitespace_as_suffix": trainer.get(24, 0),
        "escape_whitespaces=False": not rules.get(5, 1),
        "rules of denormalization": bool(dict(fields_of(parts.get(5, b""))).get(2)),
        "unused pieces": any(x.type == UNUSED for x in pieces),
    }
    for option, is_used in refused.items():
        require(not is_used, name, f"one with {option}", "one without, for a tokenizer.json")
    changed = rules_of(rules.get(2, b"")) if any(x.type == USER_DEFINED for x in pieces) else {}
    for symbol in (x.text for x in pieces if x.type == USER_DEFINED):
        word = symbol.removeprefix(SPACE)
        is_fixed = all(changed.get(x, x) == x for x in word)
        if kind == "bpe":  # an added token is normalized like a text
            is_fixed &= word != symbol and rules.get(3, 1) and rules.get(4, 1)
        accepted = "a word with a space before it that normalization does not change"
        require(is_fixed, f"{name}'s user-defined symbol", symbol, accepted)


def _piece(message):
    fields = dict(fields_of(message))
    (score,) = struct.unpack("<f", fields.get(2, bytes(4)))
    return _Piece(fields.get(1, b"").decode(), score, fields.get(3, NORMAL))


def _normalizers(rules, pieces):
    """Return the steps of normalization: those of the rules, and then those of white space.

    `START` also avoids an error of `tokenizers` 0.23: NFKC fails after a replacement before the
    first character.
    """
    dummy_prefix, remove_spaces = (rules.get(i, 1) for i in (3, 4))
    symbols = [x.text[1:] for x in pieces if x.type == USER_DEFINED and x.text[0] == SPACE]
    prefix = SPACE if dummy_prefix else ""
    steps = [{"type": "Prepend", "prepend": START}]
    # The space in a symbol is not removed where a text spells it as SPACE.
    marked = [replacement(f"{SPACE}(?={_any(symbols)})", SYMBOL)] if symbols else []
    steps += marked
    if not remove_spaces:
        steps.append(replacement(rf"{START}(?=[\s\S])", START + prefix))
    steps += normalizers_of(rules.get(2, b""))
    if remove_spaces:
        steps.append(replacement(" {2,}", " "))
        steps.append(replacement(rf"[ {SPACE}]+\z", ""))
        steps.append(replacement(rf"{START} ?(?=[\s\S])", prefix))
    return [*steps, replacement(START, ""), replacement(" ", SPACE), *marked]


def _bpe(pieces, unknown_text):
    """Return the name of each id, and the parts of the file that depend on the kind."""
    # The name of a symbol has a real space, so that no normalized text is equal to the name.
    names = [x.text.replace(SPACE, " ") if x.type == USER_DEFINED else x.text for x in pieces]
    ids = {name: i for i, name in enumerate(names)}
    ranked = sorted((x for x in pieces if x.type == NORMAL), key=lambda x: -x.score)
    known = {x.text for x in ranked}
    merges = []
    for text in (x.text for x in ranked):
        pairs = [[text[:i], text[i:]] for i in range(1, len(text))]
        merges += [pair for pair in pairs if {*pair} <= known]
        lone = sorted({*text} - known)
        require(not lone, "the SentencePiece model's characters", lone, "pieces by themselves")
    (unknown,) = (x.text for x in pieces if x.type == UNKNOWN)
    symbols = [i for i, x in enumerate(pieces) if x.type == USER_DEFINED]
    flags = dict(single_word=False, lstrip=False, rstrip=False, normalized=True, special=False)
    return names, {
        "added_tokens": [{"id": i, "content": names[i], **flags} for i in symbols],
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": unknown,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": True,
            "byte_fallback": any(x.type == BYTE for x in pieces),
            "ignore_merges": False,
            "vocab": ids,
            "merges": merges,
        },
        "decoders": [
            _removed(x.text for x in pieces if x.type == CONTROL),
            replacement(_exactly([unknown]), STOP + unknown_text),
            {"type": "ByteFallback"},
            {"type": "Fuse"},
        ],
    }


def _unigram(pieces, unknown_text):
    """Return the name of each id, and the parts of the file that depend on the kind."""
    letters = _letters()
    in_texts = (x for x in enumerate(pieces) if x[1].type in (NORMAL, USER_DEFINED))
    names = {i: _spelled(_in_text(piece), letters) for i, piece in in_texts}
    taken = {*names.values()}
    worst = min((x.score for x in pieces if x.type == NORMAL), default=0.0)
    vocabulary, hidden = [], []
    for i, piece in enumerate(pieces):
        name, score = names.get(i), piece.score
        if piece.type == USER_DEFINED:
            score = USER_DEFINED_SCORE
        elif piece.type == BYTE:
            byte = int(piece.text[1:-1], 16)
            score = 0.0 if 0x80 <= byte < 0xC0 else worst - UNKNOWN_PENALTY
            name = None if letters[byte] in taken else letters[byte]
        if name is None:  # SPACE is no letter of the alphabet, so no text contains this name
            name, score = SPACE + piece.text, 0.0
            hidden += [] if piece.type == UNKNOWN else [name]
        names[i] = name
        vocabulary.append([name, score])
    (unknown,) = (i for i, x in enumerate(pieces) if x.type == UNKNOWN)
    options = dict(add_prefix_space=False, trim_offsets=False, use_regex=False)
    alphabet = {"type": "ByteLevel", **options}
    return [names[i] for i in range(len(pieces))], {
        "pre_tokenizer": alphabet,
        "model": {
            "type": "Unigram", "unk_id": unknown, "vocab": vocabulary, "byte_fallback": False
        },
        "decoders": [
            _removed(hidden),
            replacement(_exactly([names[unknown]]), _spelled(STOP + unknown_text, letters)),
            alphabet,
        ],
    }  # fmt: skip


def _in_text(piece):
    """Return a piece as it is in normalized text."""
    is_symbol = piece.type == USER_DEFINED and piece.text.startswith(SPACE)
    return SYMBOL + piece.text[1:] if is_symbol else piece.text


def _letters() -> list[str]:
    """Return the letter of each byte in the alphabet of `ByteLevel` (GPT-2's)."""
    plain = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(x if x in plain else next(others)) for x in range(256)]


def _spelled(text, letters):
    return "".join(letters[x] for x in text.encode())


def _removed(names):
    return replacement(_exactly(names), "")


def _exactly(names):
    return rf"\A{_any(names)}\z"


def _any(texts):
    """Return a regular expression of any of the texts; without texts, of the empty one."""
    spelled = ("".join(rf"\x{{{ord(x):X}}}" for x in text) for text in texts)
    return f"(?:{'|'.join(spelled)})"
