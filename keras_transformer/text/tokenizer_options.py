"""The files beside a foreign `tokenizer.json` or vocabulary: what they say of the tokenizer."""

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
LISTS = ("extra_special_tokens", "additional_special_tokens")  # the first that is there counts
# Paths and programs; sides and lengths of batches, which we choose ourselves; what only decoding of
# `transformers` or other tokenizers read; prompts of Whisper, which the transcriber writes.
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
    # Of other classes, unless a table has them:
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
    """Return the table of a kind of tokenizer: the fields of all kinds, and its own."""
    refused = {"sp_model_kwargs": (None, {}), **(refused or {})}
    common = (name for name in HARMLESS if name not in refused and name not in read)
    return FieldTable((*READ, *read), (*common, *harmless), refused)


def json_object(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file; without the file, an empty one.

    Raises:
        ValueError: If it holds something else.
    """
    found = read_json(path) if path.is_file() else {}
    require(isinstance(found, dict), f"the content of {path}", found, "an object")
    return found


def text_of(token: Any) -> str | None:
    """Return the text of a token of these files: a text, or an object with a `content`."""
    content = token.get("content") if isinstance(token, dict) else token
    return content if isinstance(content, str) else None


def options_of(folder: Path) -> dict[str, Any]:
    """Return the content of `tokenizer_config.json`, with what the other files add to it.

    As in `transformers`, the special tokens of `special_tokens_map.json` come first, unless
    `tokenizer_config.json` has `added_tokens_decoder`; then neither this file nor
    `added_tokens.json` counts.

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
    # Whisper's lists of special tokens leave out its times, "<|0.00|>".
    special: set[str | None] = {token for token in added if re.fullmatch(r"<\|.*\|>", token)}
    special |= {text_of(x) for x in (options | tokens).values()}
    special |= {text_of(x) for name in LISTS for x in _listed(options | tokens, name)}
    decoder = {
        str(i): dict(content=token, special=token in special, normalized=token not in special)
        for token, i in added.items()
    }
    # There, unlike in `tokenizer_config.json`, a token is special before its other flags are set.
    tokens = {
        name: value | {"special": True} if isinstance(value, dict) and name in NAMED else value
        for name, value in tokens.items()
    }
    return options | tokens | ({"added_tokens_decoder": decoder} if added else {})


def without_own_tokens(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options without tokens of other names than the usual ones, such as `image_token`."""
    return {
        name: value
        for name, value in options.items()
        if name in NAMED or not name.endswith("_token") or text_of(value) is None
    }


def extra_tokens(options: Mapping[str, Any]) -> list[Any]:
    """Return the special tokens that have other names than the usual ones, or none."""
    own = without_own_tokens(options)
    found = [token for name, token in options.items() if name not in own]
    lists = [_listed(options, name) for name in LISTS]
    return [*found, *(lists[0] or lists[1])]


def _listed(options, name):
    tokens = options.get(name) or []
    tokens = [*tokens.values()] if isinstance(tokens, dict) else tokens
    fits = isinstance(tokens, list) and all(text_of(token) is not None for token in tokens)
    require(fits, name, tokens, "a list of tokens")
    return tokens
