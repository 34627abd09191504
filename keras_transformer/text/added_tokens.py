"""Tokens that `tokenizer_config.json` and similar files add to a `tokenizer.json` or name in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_transformer.config import require
from keras_transformer.text.encodings import made
from keras_transformer.text.text_tokenizer_training import library
from keras_transformer.text.tokenizer_options import NAMED, extra_tokens, text_of

MASKS = ("[MASK]", "<mask>")
_FLAGS = ("lstrip", "normalized", "rstrip", "single_word", "special")


def with_added_tokens(
    content: bytes, options: Mapping[str, Any], path: Path, override: bool = False
) -> bytes:
    """Return the content of a `tokenizer.json` with the tokens that the folder's options add.

    As in `transformers`, entries of `added_tokens_decoder` replace the same tokens of the
    `tokenizer.json`. Named tokens, such as `pad_token`, are skipped if the vocabulary lacks them;
    the tokens of `extra_tokens` are added to it.

    Args:
        content: Contents of the `tokenizer.json`.
        options: Result of `options_of`.
        path: The file of the options, for messages.
        override: Whether flags that `options` gives a named token, such as `lstrip`, replace those
            in `content`.

    Raises:
        ValueError: If a token has another id than in `added_tokens_decoder`, or is malformed.
    """
    tokenizer = library().Tokenizer.from_buffer(content)
    for i, token in _numbered(options, path):
        tokenizer.add_tokens([token])
        token_id = tokenizer.token_to_id(token.content)
        name = f"the id of {token.content!r} in added_tokens_decoder of {path}"
        require(token_id == i, name, i, f"{token_id}, as in the vocabulary")
    added = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
    for name in NAMED:
        value, text = options.get(name), text_of(options.get(name))
        require(value is None or text is not None, f"{name} in {path}", value, "a token or null")
        if text is None or tokenizer.token_to_id(text) is None:
            continue
        if text not in added or (override and isinstance(value, dict)):
            tokenizer.add_special_tokens([_token(value)])
    for value in extra_tokens(options):
        if text_of(value) not in added:
            tokenizer.add_special_tokens([_token(value)])
    return tokenizer.to_str().encode()


def _numbered(options, path):
    """Return pairs of an id and a token from `added_tokens_decoder`, sorted by id."""
    listed = options.get("added_tokens_decoder") or {}
    try:
        tokens = [(int(i), _token(token, special=False)) for i, token in listed.items()]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"added_tokens_decoder in {path} must map each id to a token with a content: {error!r}"
        ) from error
    return sorted(tokens, key=lambda item: item[0])


def _token(value, special=True):
    if isinstance(value, str):
        return library().AddedToken(value, special=special)
    flags = {name: value[name] for name in _FLAGS if name in value}
    token = library().AddedToken(value["content"], **flags)
    # Set last: the constructor would take `not special` as the default of `normalized`.
    token.special = token.special or special
    return token


def check_named_tokens(
    content: bytes, options: Mapping[str, Any], ends: tuple[str, str] | None, path: Path
) -> None:
    """Check that the named tokens, such as `cls_token`, agree with the `tokenizer.json`.

    Args:
        content: Contents of the `tokenizer.json`.
        options: Result of `options_of`.
        ends: Names of the two tokens that begin and end each text, such as "cls_token"; None:
            nothing is checked.
        path: The file of the options, for messages.

    Raises:
        ValueError: If texts begin or end with another token, the unknown token differs, or the
            mask token is not in `MASKS`.
    """
    tokenizer = made(content)
    frame = tokenizer.encode("").ids
    for name, i in zip(ends or (), (0, -1), strict=False):
        text = text_of(options.get(name))
        if text is not None and frame and tokenizer.token_to_id(text) != frame[i]:
            place = "end" if i else "begin"
            raise ValueError(
                f"{name} in {path} is {text!r}, but texts {place} with "
                f"{tokenizer.id_to_token(frame[i])!r} in the tokenizer's other files"
            )
    mask = text_of(options.get("mask_token"))
    if ends and mask is not None and tokenizer.token_to_id(mask) is not None:
        require(mask in MASKS, f"mask_token in {path}", mask, f"one of {MASKS}")
    unknown, named = _unknown(json.loads(content)["model"]), text_of(options.get("unk_token"))
    if ends and unknown is not None and named is not None:
        accepted = f"{unknown!r}, as in the vocabulary"
        require(named == unknown, f"unk_token in {path}", named, accepted)


def _unknown(model):
    if model.get("unk_id") is not None:
        return model["vocab"][model["unk_id"]][0]
    return model.get("unk_token")
