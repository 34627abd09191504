"""Options of a tokenizer in Hugging Face's layout: `tokenizer_config.json` and similar files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_transformer.config import require
from keras_transformer.system.files import read_json
from keras_transformer.system.foreign_fields import FieldTable

CONFIG, TOKENS, ADDED = "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"
NAMED = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
LISTS = ("extra_special_tokens", "additional_special_tokens")  # the first non-empty list counts
# Fields that every tokenizer accepts. Most are ignored: paths and programs; sides and lengths of
# padding and truncation, which are set elsewhere; fields that only the decoding of `transformers`
# reads; prompts of Whisper, which the transcriber writes. Encoders and translators check
# `truncation_side`; translators also read `clean_up_tokenization_spaces`.
HARMLESS = (
    "add_bos_token", "add_eos_token", "auto_map", "backend", "chat_control_tokens",
    "clean_up_tokenization_spaces",
    "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output", "device_map",
    "do_basic_tokenize", "errors", "files_loaded", "from_slow", "init_inputs", "is_local",
    "language", "local_files_only", "max_len", "max_length", "model_input_names",
    "model_max_length", "name_or_path", "never_split", "normalizer_file", "pad_to_multiple_of",
    "pad_token_type_id", "padding_side", "predict_timestamps", "processor_class",
    "response_schema", "response_template", "return_token_type_ids", "slow_tokenizer_class",
    "spaces_between_special_tokens", "special_tokens_map_file", "split_special_tokens", "stride",
    "task", "tokenizer_file", "trim_offsets", "truncation_side", "truncation_strategy", "unk_id",
    "use_fast", "use_default_system_prompt", "verbose", "vocab_file", "vocab_type", "merges_file",
    # Fields that the tables of some classes list as read; other classes ignore them:
    "add_prefix_space", "do_lower_case", "keep_accents", "legacy", "split_by_punct",
    "strip_accents", "tokenize_chinese_chars",
)  # fmt: skip
READ = (
    *NAMED, *LISTS, "added_tokens_decoder", "add_special_tokens", "chat_template",
    "tokenizer_class",
)  # fmt: skip
_TOKENS_TABLE = FieldTable(read=(*NAMED, *LISTS))


def table(
    read: tuple[str, ...] = (),
    refused: Mapping[str, tuple[Any, ...]] | None = None,
    harmless: tuple[str, ...] = (),
) -> FieldTable:
    """Return the table of fields for a kind of tokenizer: fields of all kinds, and its own.

    Args:
        read: Its own fields that are read.
        refused: Its own fields that are refused, except with one of these values.
        harmless: Its own fields that are ignored.
    """
    refused = {"sp_model_kwargs": (None, {}), **(refused or {})}
    common = (name for name in HARMLESS if name not in refused and name not in read)
    return FieldTable((*READ, *read), (*common, *harmless), refused)


def json_object(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file; {} if the file does not exist.

    Raises:
        ValueError: If the file holds something else than an object.
    """
    content = read_json(path) if path.is_file() else {}
    require(isinstance(content, dict), f"the content of {path}", content, "an object")
    return content


def text_of(token: Any) -> str | None:
    """Return the text of a token in these files, which is a text or an object with a `content`.

    Return None for anything else.
    """
    content = token.get("content") if isinstance(token, dict) else token
    return content if isinstance(content, str) else None


def options_of(folder: Path) -> dict[str, Any]:
    """Return the content of `tokenizer_config.json`, combined with the other files.

    As in `transformers`, special tokens in `special_tokens_map.json` override those in
    `tokenizer_config.json`. But if the latter has `added_tokens_decoder`, neither
    `special_tokens_map.json` nor `added_tokens.json` is read.

    Raises:
        ValueError: If a file is broken.
    """
    options = json_object(folder / CONFIG)
    if options.get("added_tokens_decoder") is not None:
        return options
    tokens = json_object(folder / TOKENS)
    _TOKENS_TABLE.check(without_own_tokens(tokens), folder / TOKENS)
    added = json_object(folder / ADDED)
    numbers = all(type(i) is int and i >= 0 for i in added.values())
    require(numbers, f"the content of {folder / ADDED}", added, "ids by token")
    # Whisper's lists of special tokens lack its time tokens, such as "<|0.00|>".
    special: set[str | None] = {token for token in added if re.fullmatch(r"<\|.*\|>", token)}
    special |= {text_of(x) for x in (options | tokens).values()}
    special |= {text_of(x) for name in LISTS for x in _listed(options | tokens, name)}
    decoder = {
        str(i): dict(content=token, special=token in special, normalized=token not in special)
        for token, i in added.items()
    }
    # In `special_tokens_map.json`, unlike in `tokenizer_config.json`, each token is special; this
    # also sets the defaults of its other flags.
    tokens = {
        name: value | {"special": True} if isinstance(value, dict) and name in NAMED else value
        for name, value in tokens.items()
    }
    return options | tokens | ({"added_tokens_decoder": decoder} if added else {})


def without_own_tokens(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options without tokens whose names are not in `NAMED`, such as `image_token`."""
    return {
        name: value
        for name, value in options.items()
        if name in NAMED or not name.endswith("_token") or text_of(value) is None
    }


def extra_tokens(options: Mapping[str, Any]) -> list[Any]:
    """Return the special tokens whose names are not in `NAMED`, and the first list of `LISTS`."""
    usual = without_own_tokens(options)
    extra = [token for name, token in options.items() if name not in usual]
    lists = [_listed(options, name) for name in LISTS]
    return [*extra, *(lists[0] or lists[1])]


def _listed(options, name):
    tokens = options.get(name) or []
    tokens = [*tokens.values()] if isinstance(tokens, dict) else tokens
    are_tokens = isinstance(tokens, list) and all(text_of(token) is not None for token in tokens)
    require(are_tokens, name, tokens, "a list of tokens")
    return tokens
