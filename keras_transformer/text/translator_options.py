"""Tokenizer options of translation models in Hugging Face's layout: read, ignored or refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_transformer.config import require
from keras_transformer.text.languages import NLLB200
from keras_transformer.text.tokenizer_options import (
    CONFIG,
    LISTS,
    NAMED,
    options_of,
    table,
    text_of,
    without_own_tokens,
)

GENERIC = ("PreTrainedTokenizerFast", "TokenizersBackend")
# The tokenizer of SMaLL-100, which names the target language in the source; not in `transformers`.
SMALL100 = "SMALL100Tokenizer"
_T5 = ("MT5Tokenizer", "T5Tokenizer", *GENERIC)
CLASSES = {
    "m2m_100": ("M2M100Tokenizer", "NllbTokenizer", SMALL100, *GENERIC),
    "marian": ("MarianTokenizer",),
    "mbart": ("MBart50Tokenizer", "MBartTokenizer", *GENERIC),
    "mt5": _T5,
    "pegasus": ("MarianTokenizer",),
    "t5": _T5,
    "umt5": _T5,
}
_LANGUAGES = ("src_lang", "tgt_lang")
_SIDE = {"truncation_side": ("right", None)}
_T5_TABLE = table(("extra_ids",), _SIDE)
_MARIAN_TABLE = table(
    ("separate_vocabs", "source_lang", "target_lang"), _SIDE, ("target_vocab_file",)
)
TABLES = {
    "m2m_100": table(
        ("language_codes", "legacy_behaviour", *_LANGUAGES),
        _SIDE | {"language_codes": ("m2m100", "wmt21", None)},
        ("num_madeup_words", "tokenizer_file", "spm_file"),
    ),
    "marian": _MARIAN_TABLE,
    "mbart": table(_LANGUAGES, _SIDE),
    "mt5": _T5_TABLE,
    "pegasus": _MARIAN_TABLE,
    "t5": _T5_TABLE,
    "umt5": _T5_TABLE,
}


def translator_options(folder: Path, model: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Return the result of `options_of` after a check, with a `tokenizer_class`.

    It is the class in `tokenizer_config.json`, else in `config.json`, without "Fast"; None if
    neither has it.

    Args:
        folder: Folder of the checkpoint.
        model: Content of the model's `config.json`.
        kind: Its `model_type`, a key of `CLASSES`.

    Raises:
        ValueError: If the class of the tokenizer or an option is not supported.
    """
    options, path = options_of(folder), folder / CONFIG
    name = options.get("tokenizer_class") or model.get("tokenizer_class")
    short = name.removesuffix("Fast") if isinstance(name, str) else name
    known = {x.removesuffix("Fast") for x in CLASSES[kind]}
    accepted = f"one of {sorted(CLASSES[kind])}, or none"
    require(short is None or short in known, f"tokenizer_class in {path}", name, accepted)
    TABLES[kind].check(without_own_tokens(options), path)
    return options | {"tokenizer_class": short}


def check_special_tokens(
    options: Mapping[str, Any], pieces: list[str], ids: Mapping[str, int | None], folder: Path
) -> None:
    """Check that the named tokens in a folder's options agree with the tokenizer.

    Args:
        options: Result of `translator_options`.
        pieces: The vocabulary in the order of its ids.
        ids: Special ids of the tokenizer, by name, such as "eos_token".
        folder: The folder, for messages.

    Raises:
        ValueError: If a named token has another id, or is a piece of plain text.
    """
    for name, i in ids.items():
        text = text_of(options.get(name))
        if text is not None and i is not None and i < len(pieces) and text != pieces[i]:
            raise ValueError(
                f"{name} in {folder / CONFIG} is {text!r}, but the model's is {pieces[i]!r}"
            )
    for name in NAMED:
        text = text_of(options.get(name))
        if text is not None and text in pieces and not text.startswith(("<", "[")):
            raise ValueError(f"{name} in {folder / CONFIG} is {text!r}, a piece of plain text")


def filled(
    pieces: list[str], folder: Path, options: Mapping[str, Any], config: Mapping[str, Any]
) -> list[str]:
    """Return the vocabulary with the added tokens, and placeholders up to `vocab_size`.

    Args:
        pieces: The vocabulary in the order of its ids; added tokens are appended in place.
        folder: The folder, for messages.
        options: Result of `translator_options`.
        config: Content of the model's `config.json`.

    Raises:
        ValueError: If an added token has another id in the vocabulary, or the sizes of tokenizer
            and model do not match.
    """
    try:
        listed = dict(options.get("added_tokens_decoder") or {})
        added = {int(i): token["content"] for i, token in listed.items()}
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"added_tokens_decoder in {folder / CONFIG} must map each id to a token with "
            f"a content: {error!r}"
        ) from error
    for i, content in sorted(added.items()):
        if i == len(pieces):
            pieces.append(content)
        elif i > len(pieces) or pieces[i] != content:
            piece = repr(pieces[i]) if i < len(pieces) else "nothing"
            raise ValueError(
                f"added_tokens_decoder in {folder / CONFIG} and the vocabulary differ: token {i} "
                f"is {content!r} in the former and {piece} in the latter"
            )
    check_size(len(pieces), folder, config)
    return pieces + [f"<unused_{i}>" for i in range(len(pieces), config["vocab_size"])]


def check_size(size: int, folder: Path, config: Mapping[str, Any]) -> None:
    """Check that the `vocab_size` of a config is the size of the tokenizer, or at most 127 more.

    Raises:
        ValueError: If it is not.
    """
    if not size <= config["vocab_size"] < size + 128:  # an embedding may have unused rows
        raise ValueError(
            f"the tokenizer in {folder} does not match its model: it has {size:,} pieces, the "
            f"model {config['vocab_size']:,}"
        )


def listed_languages(options: Mapping[str, Any]) -> list[str]:
    """Return NLLB's language codes in the order of the options; [] unless all are listed."""
    for name in LISTS:
        tokens = [str(text_of(token)) for token in options.get(name) or []]
        tokens = [x for x in tokens if re.fullmatch(r"[a-z]{3}_[A-Z][a-z]{3}", x)]
        if set(tokens) == set(NLLB200):  # with further languages, the order is not that of the ids
            return tokens
    return []
