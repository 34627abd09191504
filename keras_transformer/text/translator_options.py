"""Options of the tokenizer of a foreign encoder-decoder: read, harmless or refused."""

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
SMALL100 = "SMALL100Tokenizer"  # the target's language is in the source; not in `transformers`
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
        ("num_madeup_words", "tokenizer_file", "spm_file"),  # the count of spare rows
    ),
    "marian": _MARIAN_TABLE,
    "mbart": table(_LANGUAGES, _SIDE),
    "mt5": _T5_TABLE,
    "pegasus": _MARIAN_TABLE,
    "t5": _T5_TABLE,
    "umt5": _T5_TABLE,
}


def translator_options(folder: Path, model: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Return the checked content of `tokenizer_config.json`; see `options_of`.

    Args:
        folder: The folder.
        model: Content of the model's `config.json`.
        kind: Its `model_type`.

    Raises:
        ValueError: If the class of the tokenizer is not known, or an option is not supported.
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
    """Check that the named tokens of a folder are those that its texts get.

    Args:
        options: Result of `translator_options`.
        pieces: The vocabulary in the order of its ids.
        ids: The ids in use by name, such as "eos_token".
        folder: The folder, for messages.

    Raises:
        ValueError: If a token is another one; names the field.
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
    """Return the vocabulary, then the added tokens, then placeholders up to `vocab_size`.

    Raises:
        ValueError: If the ids of the added tokens are others, or the model has another size.
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
            found = repr(pieces[i]) if i < len(pieces) else "nothing"
            raise ValueError(
                f"added_tokens_decoder in {folder / CONFIG} and the vocabulary differ: token {i} "
                f"is {content!r} in the former and {found} in the latter"
            )
    check_size(len(pieces), folder, config)
    return pieces + [f"<unused_{i}>" for i in range(len(pieces), config["vocab_size"])]


def check_size(size: int, folder: Path, config: Mapping[str, Any]) -> None:
    """Check that a model with a `config.json` has as many rows as there are pieces, or few more."""
    if not size <= config["vocab_size"] < size + 128:  # an embedding may have spare rows
        raise ValueError(
            f"the tokenizer in {folder} does not match its model: it has {size:,} pieces, the "
            f"model {config['vocab_size']:,}"
        )


def listed_languages(options: Mapping[str, Any]) -> list[str]:
    """Return NLLB's languages as the folder lists them; an empty list if it does not."""
    for name in LISTS:
        tokens = [str(text_of(token)) for token in options.get(name) or []]
        tokens = [x for x in tokens if re.fullmatch(r"[a-z]{3}_[A-Z][a-z]{3}", x)]
        if set(tokens) == set(NLLB200):  # in any order; additional ones have ids elsewhere
            return tokens
    return []
