"""Changes of a `tokenizer.json` by `tokenizer_config.json`, as in `transformers`.

A folder's `tokenizer.json` is complete by itself. If `tokenizer_config.json` contradicts it,
`transformers` follows the latter: each tokenizer class has options with defaults, and sets parts of
the tokenizer to their values. The functions here change the content of a `tokenizer.json` in the
same way.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_transformer.config import require
from keras_transformer.text.added_tokens import check_named_tokens, with_added_tokens
from keras_transformer.text.tokenizer_options import (
    table,
    without_own_tokens,
)

GENERIC = ("PreTrainedTokenizer", "PreTrainedTokenizerFast", "TokenizersBackend")
WORDS = ("BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer", "MPNetTokenizer")
PAIRS = ("BartTokenizer", "RobertaTokenizer")  # byte-pair encoding; <s> and </s> around each text
BYTES = (*PAIRS, "GPT2Tokenizer", "Qwen2Tokenizer", "WhisperTokenizer")
SPACES = ("CamembertTokenizer", "XLMRobertaTokenizer")
ENCODERS = {  # tokenizer class by model type, if no config file names a class
    "albert": "AlbertTokenizer", "bart": "BartTokenizer", "bert": "BertTokenizer",
    "camembert": "CamembertTokenizer", "data2vec-text": "RobertaTokenizer",
    "deberta-v2": "DebertaV2Tokenizer", "distilbert": "DistilBertTokenizer",
    "electra": "ElectraTokenizer", "ernie": "BertTokenizer", "esm": "EsmTokenizer",
    "mpnet": "MPNetTokenizer", "roberta": "RobertaTokenizer", "xlm-roberta": "XLMRobertaTokenizer",
}  # fmt: skip
USUAL = ENCODERS | {
    "gemma": "GemmaTokenizer", "gemma2": "GemmaTokenizer", "gemma3": "GemmaTokenizer",
    "gemma3_text": "GemmaTokenizer", "gpt2": "GPT2Tokenizer", "qwen2": "Qwen2Tokenizer",
    "qwen3": "Qwen2Tokenizer", "t5gemma": "GemmaTokenizer", "whisper": "WhisperTokenizer",
}  # fmt: skip
ENDS = (
    {name: ("cls_token", "sep_token") for name in (*WORDS, *PAIRS, "DebertaV2Tokenizer")}
    | {name: ("bos_token", "eos_token") for name in SPACES}
    | {"AlbertTokenizer": ("cls_token", "sep_token"), "EsmTokenizer": ("cls_token", "eos_token")}
)
AS_IT_IS = ("mistral", "phi3")  # model types whose tokenizer.json `transformers` does not change

_WORDS = ("do_lower_case", "strip_accents", "tokenize_chinese_chars")
_FLAG = (True, False, None)
_WORDS_TABLE = table(_WORDS)
_SPACED_TABLE = table(("add_prefix_space",))
_ALBERT_TABLE = table(("add_prefix_space", "do_lower_case", "keep_accents"))
_DEBERTA_TABLE = table(("add_prefix_space", "do_lower_case"), {"split_by_punct": (False, None)})
_LLAMA_TABLE = table(("add_prefix_space", "legacy"))
_T5_TABLE = table(harmless=("extra_ids", "legacy", "add_prefix_space"))
# For classes with this table, tokenizer_config.json sets only special tokens, as in `transformers`.
_PLAIN_TABLE = table()


def class_of(
    options: Mapping[str, Any], model: Mapping[str, Any], path: Path, kind: str | None
) -> str | None:
    """Return the class of a folder's tokenizer in `transformers`, without "Fast".

    None means that only tokens are added to `tokenizer.json`.

    Args:
        options: Result of `options_of`.
        model: Content of the model's `config.json`.
        path: The file that names the class, for messages.
        kind: The `model_type` of the model.

    Raises:
        ValueError: If the class is not supported; the message lists the supported ones. Also if
            the tokenizer of an encoder truncates texts on the left.
    """
    name = options.get("tokenizer_class") or model.get("tokenizer_class")
    short = name.removesuffix("Fast") if isinstance(name, str) else name
    known = {*CLASSES, *(x.removesuffix("Fast") for x in GENERIC)}
    accepted = f"one of {sorted({*CLASSES, *GENERIC})}, or none"
    require(short is None or short in known, f"tokenizer_class in {path}", name, accepted)
    if kind in ENCODERS:  # only encoders cut texts
        side = options.get("truncation_side")
        require(side in ("right", None), f"truncation_side in {path}", side, "'right' or null")
    if kind == "qwen2":  # many checkpoints of this type name a wrong class
        return USUAL[kind]
    if kind in AS_IT_IS or (name is not None and short not in CLASSES):
        return None
    return short or USUAL.get(kind or "")


def tokenizer_of(
    content: bytes, name: str | None, options: Mapping[str, Any], path: Path, override: bool
) -> bytes:
    """Return the content of a `tokenizer.json`, changed by the other files of the folder.

    Args:
        content: Contents of the `tokenizer.json`.
        name: The class of the tokenizer, see `class_of`; None: only tokens are added.
        options: Result of `options_of`.
        path: The file of the options, for messages.
        override: See `with_added_tokens`.

    Raises:
        ValueError: If an option is not supported, or contradicts the file.
    """
    content = with_added_tokens(adapted(content, name, options, path), options, path, override)
    check_named_tokens(content, options, ENDS.get(name or ""), path)
    return content


def adapted(content: bytes, name: str | None, options: Mapping[str, Any], path: Path) -> bytes:
    """Return the content of a `tokenizer.json`, changed as by a class of `transformers`.

    Args:
        content: Contents of the `tokenizer.json`.
        name: The class of the tokenizer; None: no change.
        options: Result of `options_of`.
        path: The file of the options, for messages.

    Raises:
        ValueError: If an option is not supported, or sets a part that the file does not have.
    """
    spec = json.loads(content)
    change, fields = CLASSES[name] if name else (None, _PLAIN_TABLE)
    fields.check(without_own_tokens(options), path)
    if change is not None:
        change(spec, {**options}, path)
    return json.dumps(spec, ensure_ascii=False).encode()


def _nodes(part, kind):
    """Yield the components of type `kind` in a part of a `tokenizer.json`.

    The part is a component, a sequence of components or None.
    """
    if isinstance(part, dict):
        if part.get("type") == kind:
            yield part
        for name in ("normalizers", "pretokenizers", "decoders", "processors"):
            for inner in part.get(name) or ():
                yield from _nodes(inner, kind)


def _flag(options, name, path, usual):
    value = options.get(name)
    require(value in _FLAG, f"{name} in {path}", value, "true, false or null")
    return usual if value is None else value


def _require_part(part, options, names, path):
    """Raise ValueError if one of the options is given, but the part that it sets is missing."""
    keys = [name for name in names if options.get(name) is not None]
    if keys and not part:
        raise ValueError(
            f"{keys[0]} in {path} is {options[keys[0]]!r}, but tokenizer.json has no part that "
            "the option sets; remove the option if tokenizer.json is right"
        )


def _words(spec, options, path):
    """Set the options of a BERT's normalizer: case, accents, Chinese characters."""
    parts = [*_nodes(spec.get("normalizer"), "BertNormalizer")]
    _require_part(bool(parts), options, _WORDS, path)
    accents = options.get("strip_accents")
    require(accents in _FLAG, f"strip_accents in {path}", accents, "true, false or null")
    for part in parts:
        part["lowercase"] = _flag(options, "do_lower_case", path, True)
        part["strip_accents"] = accents
        part["handle_chinese_chars"] = _flag(options, "tokenize_chinese_chars", path, True)


def _bytes(spec, options, path):
    parts = [*_nodes(spec.get("pre_tokenizer"), "ByteLevel")]
    spaced = _flag(options, "add_prefix_space", path, False)
    _require_part(bool(parts) or not spaced, options, ("add_prefix_space",), path)
    for part in (*parts, *_nodes(spec.get("post_processor"), "RobertaProcessing")):
        part["add_prefix_space"] = spaced


def _spaces(otherwise="never"):
    """Return a function that applies `add_prefix_space` to a tokenizer with "Metaspace" parts.

    A "Metaspace" part marks the spaces before words with "▁". `otherwise` is its `prepend_scheme`
    if the option is false.
    """

    def change(spec, options, path):
        spaced = _flag(options, "add_prefix_space", path, True)
        parts = [x for y in ("pre_tokenizer", "decoder") for x in _nodes(spec.get(y), "Metaspace")]
        _require_part(bool(parts) or spaced, options, ("add_prefix_space",), path)
        for part in parts:
            part.pop("add_prefix_space", None)
            part["prepend_scheme"] = "always" if spaced else otherwise

    return change


def _albert(spec, options, path):
    lowercase = _flag(options, "do_lower_case", path, True)
    accents = _flag(options, "keep_accents", path, False)
    _normalized(spec, "Lowercase", lowercase, 2)
    for kind in ("StripAccents", "NFKD"):
        _normalized(spec, kind, not accents, 2)
    _spaces()(spec, options, path)


def _deberta(spec, options, path):
    _normalized(spec, "Lowercase", _flag(options, "do_lower_case", path, False), 0)
    _spaces("first")(spec, options, path)


def _normalized(spec, kind, wanted, place):
    """Add a step of the type `kind` to the normalizer, at the index `place`, or remove it."""
    part = spec.get("normalizer")
    steps = part["normalizers"] if part and part["type"] == "Sequence" else [part] if part else []
    if wanted != any(_nodes(part, kind)):
        steps = [step for step in steps if step["type"] != kind]
        if wanted:
            steps.insert(place, {"type": kind})
        spec["normalizer"] = {"type": "Sequence", "normalizers": steps} if steps else None


def _llama(spec, options, path):
    """Set the parts of a LLaMA's tokenizer with SentencePiece's pieces.

    With `add_prefix_space`, which is the default, "▁" is put before the text; with `legacy`, before
    each part of it between special tokens. Byte-level tokenizers are not changed, as in
    `transformers`.
    """
    normalizer, before = spec.get("normalizer"), spec.get("pre_tokenizer")
    spaced = _flag(options, "add_prefix_space", path, True)
    legacy = _flag(options, "legacy", path, False)
    steps = (normalizer or {}).get("normalizers") or [normalizer or {"type": "Prepend"}]
    known = {step["type"] for step in steps} <= {"Prepend", "Replace"}
    if not known or (before or {"type": "Metaspace"})["type"] != "Metaspace":
        return  # a byte-level tokenizer
    scheme = ("always" if legacy else "first") if spaced else "never"
    spec["normalizer"] = None
    spec["pre_tokenizer"] = dict(
        type="Metaspace", replacement="▁", prepend_scheme=scheme, split=False
    )
    decoders = [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ]
    if spaced:
        decoders.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    spec["decoder"] = {"type": "Sequence", "decoders": decoders}


CLASSES = (
    {name: (_words, _WORDS_TABLE) for name in WORDS}
    | {name: (_bytes, _SPACED_TABLE) for name in BYTES}
    | {name: (_spaces(), _SPACED_TABLE) for name in SPACES}
    | {
        "AlbertTokenizer": (_albert, _ALBERT_TABLE),
        "DebertaV2Tokenizer": (_deberta, _DEBERTA_TABLE),
        "EsmTokenizer": (None, _PLAIN_TABLE),
        "GemmaTokenizer": (None, _PLAIN_TABLE),
        "LlamaTokenizer": (_llama, _LLAMA_TABLE),
        "T5Tokenizer": (None, _T5_TABLE),
    }
)
