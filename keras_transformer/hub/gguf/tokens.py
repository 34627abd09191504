"""The tokenizer of a GGUF file as a `tokenizer.json` and a `tokenizer_config.json`.

Two kinds are read: byte-level byte pairs ("gpt2"), whose file names a rule that splits texts, and
SentencePiece's byte pairs ("llama"), whose merges follow from the scores of the pieces.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keras_transformer.config import is_number, require
from keras_transformer.hub.gguf.container import GGUFFile
from keras_transformer.system.foreign_fields import FieldTable

PREFIX = "tokenizer.ggml."
SPACE = "▁"
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)  # GGUF's types of tokens
_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN2 = _LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_ENDING = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_GPT4O = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_ENDING}"
    rf"|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_ENDING}"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_TEKKEN = _GPT4O.replace(_ENDING, "").replace(r"\p{N}{1,3}", r"\p{N}")
_BYTES = dict(type="ByteLevel", add_prefix_space=False, trim_offsets=True, use_regex=True)


def _split(pattern):
    """Return the steps that split texts by a regular expression, and then encode bytes."""
    split = dict(type="Split", pattern={"Regex": pattern}, behavior="Isolated", invert=False)
    return [split, _BYTES | dict(use_regex=False)]


@dataclass(frozen=True)
class SplitRule:
    """A rule by which byte-level tokenizers split texts, as their authors published it.

    Args:
        steps: Steps of the `pre_tokenizer` of the `tokenizer.json`.
        whole: Whether a word that is a piece becomes this piece, without merges.
        add_bos: Whether texts begin with BOS if a GGUF file does not say.
        normalizer: The `normalizer` of the `tokenizer.json`; None: it has none.
    """

    steps: Sequence[Mapping[str, Any]]
    whole: bool = False
    add_bos: bool = False
    normalizer: Mapping[str, Any] | None = None


_DIGITS = dict(type="Digits", individual_digits=True)
_LLAMA3_RULE = SplitRule(_split(_LLAMA3), whole=True, add_bos=True)
_QWEN2_RULE = SplitRule(_split(_QWEN2), normalizer={"type": "NFC"})
RULES = {  # by `tokenizer.ggml.pre`
    "gpt-2": SplitRule([_BYTES]),
    "smollm": SplitRule([_DIGITS, _BYTES]),
    "refact": SplitRule([_DIGITS, _BYTES]),  # of Granite
    "dbrx": SplitRule(_split(_LLAMA3)),  # of OLMo 2
    "llama-bpe": _LLAMA3_RULE,
    "llama3": _LLAMA3_RULE,
    "llama-v3": _LLAMA3_RULE,
    "qwen2": _QWEN2_RULE,
    "deepseek-r1-qwen": _QWEN2_RULE,
    "gpt-4o": SplitRule(_split(_GPT4O)),
    "tekken": SplitRule(_split(_TEKKEN), whole=True, add_bos=True),
}
_NAMED = {
    "bos_token": "bos_token_id",
    "eos_token": "eos_token_id",
    "unk_token": "unknown_token_id",
    "pad_token": "padding_token_id",
}
TABLE = FieldTable(
    read=(
        "tokenizer.chat_template",
        *(f"{PREFIX}{x}" for x in (
            "model", "pre", "tokens", "token_type", "scores", "merges", "add_bos_token",
            "add_eos_token", "add_space_prefix", "eot_token_id", "eom_token_id", *_NAMED.values(),
        )),
    ),
    harmless=(
        "tokenizer.chat_templates",  # names of further templates
        "tokenizer.huggingface.json",  # the same tokenizer once more
        *(f"{PREFIX}{x}_token_id" for x in (
            "seperator", "mask", "cls", "prefix", "suffix", "middle",
            *(f"fim_{x}" for x in ("pre", "suf", "mid", "pad", "rep", "sep")),
        )),
        f"{PREFIX}token_type_count",
    ),
    refused={
        f"{PREFIX}add_sep_token": (False,),
        f"{PREFIX}precompiled_charsmap": (None,),
        f"{PREFIX}remove_extra_whitespaces": (False,),
        "tokenizer.rwkv.world": (None,),
    },
)  # fmt: skip


def tokenizer_of(file: GGUFFile) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the `tokenizer.json` and the `tokenizer_config.json` of a file.

    Raises:
        ValueError: If the kind of tokenizer, its splitting of texts or a value is not supported.
    """
    facts = {
        name: value
        for name, value in file.facts.items()
        if name.startswith("tokenizer.") and not name.startswith("tokenizer.chat_template.")
    }
    TABLE.check(facts, file.path)
    facts = {name.removeprefix(PREFIX): value for name, value in facts.items()}
    tokens = _tokens_of(facts, file.path)
    kind: Any = facts.get("model")
    require(kind in _KINDS, f"{PREFIX}model in {file.path}", kind, f"one of {[*_KINDS]}")
    types = facts.get("token_type") or [NORMAL] * len(tokens)
    require(
        len(types) == len(tokens), f"{PREFIX}token_type in {file.path}", len(types), "one a token"
    )
    special = _special(facts, tokens, types)
    is_phi3 = file.facts["general.architecture"] == "phi3" and kind == "llama"
    added = [
        _added(i, tokens[i], is_special, is_phi3 and tokens[i] not in _PHI3_PLAIN)
        for i in range(len(tokens))
        if (is_special := i in special or types[i] in (UNKNOWN, CONTROL))
        or types[i] == USER_DEFINED
    ]
    parts, add_bos = _KINDS[kind](file, facts, tokens, types)
    frame: tuple[list[tuple[str, Any]], ...] = ([], [])
    for place, name, usual in ((0, "bos", add_bos), (1, "eos", False)):
        if facts.get(f"add_{name}_token", usual):
            i = facts.get(f"{name}_token_id")
            require(i is not None, f"{PREFIX}{name}_token_id in {file.path}", None, "a token id")
            frame[place].append((tokens[i], i))
    whole = dict(version="1.0", truncation=None, padding=None, added_tokens=added)
    content = whole | parts | dict(post_processor=_framing(*frame))
    options = dict(tokenizer_class="PreTrainedTokenizerFast")
    options |= {x: tokens[facts[y]] for x, y in _NAMED.items() if facts.get(y) in special}
    if (template := facts.get("tokenizer.chat_template")) is not None:
        options["chat_template"] = template
    return content, options


_ALWAYS = ("bos", "eos", "eot", "eom")
_SPECIAL = (*_ALWAYS, "unknown", "padding")
# All other special tokens of a Phi-3 remove the spaces after them, as in llama.cpp.
_PHI3_PLAIN = ("<unk>", "<s>", "<|endoftext|>")


def _tokens_of(facts, path):
    """Return the texts of the tokens after checking them and the ids of special tokens."""
    tokens = facts.get("tokens")
    are_texts = isinstance(tokens, list) and tokens and isinstance(tokens[0], str)
    require(are_texts, f"{PREFIX}tokens in {path}", type(tokens).__name__, "a list of texts")
    if len({*tokens}) < len(tokens):
        twice = collections.Counter(tokens).most_common(1)[0][0]
        raise ValueError(f"{PREFIX}tokens in {path} has {twice!r:.100} twice")
    for name, value in facts.items():
        if name.endswith("_token_id"):
            in_range = value is None or (type(value) is int and 0 <= value < len(tokens))
            accepted = f"an id below {len(tokens)}"
            require(in_range, f"{PREFIX}{name} in {path}", value, accepted)
    return tokens


def _special(facts, tokens, types):
    """Return the ids of tokens that the metadata name as special.

    A pad token or an unknown token that is an ordinary piece, such as "!", is left out.
    """
    ids = {x: facts[f"{x}_token_id"] for x in _SPECIAL if facts.get(f"{x}_token_id") is not None}
    return {i for x, i in ids.items() if x in _ALWAYS or types[i] != NORMAL}


def _added(i, token, special, strips):
    """Return an entry of `added_tokens`; with `strips`, a special one removes spaces after it."""
    return dict(
        id=i,
        content=token,
        single_word=False,
        lstrip=False,
        rstrip=strips and special,
        normalized=False,
        special=special,
    )


def _framing(before, after):
    """Return the `post_processor` that adds BOS and EOS to each text; None if there is neither."""
    if not before and not after:
        return None

    def named(tokens):
        return [{"SpecialToken": dict(id=token, type_id=0)} for token, _ in tokens]

    def text(name):
        return [*named(before), {"Sequence": dict(id=name, type_id=0)}, *named(after)]

    tokens = {token: dict(id=token, ids=[i], tokens=[token]) for token, i in (*before, *after)}
    single, pair = text("A"), [*text("A"), *text("B")]
    return dict(type="TemplateProcessing", single=single, pair=pair, special_tokens=tokens)


def _model(tokens, merges, **options):
    """Return the `model` of a `tokenizer.json` with byte pairs."""
    empty = dict.fromkeys(
        ("dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix")
    )
    flags = dict.fromkeys(("fuse_unk", "byte_fallback", "ignore_merges"), False)
    vocabulary = {token: i for i, token in enumerate(tokens)}
    return dict(type="BPE", **{**empty, **flags, **options}, vocab=vocabulary, merges=merges)


def _byte_level(file, facts, tokens, types):
    """Return the parts of a byte-level tokenizer, and whether its texts begin with BOS."""
    name = facts.get("pre", "default")
    if name == "default" and file.facts["general.architecture"] == "gpt2":
        name = "gpt-2"
    require(name in RULES, f"{PREFIX}pre in {file.path}", name, f"one of {[*RULES]}")
    rule = RULES[name]
    merges = [x.split(" ") for x in facts.get("merges") or ()]
    wrong = next((pair for pair in merges if len(pair) != 2), None)
    require(wrong is None, f"{PREFIX}merges in {file.path}", wrong, "pairs of pieces")
    steps = [dict(step) for step in rule.steps]
    before = steps[0] if len(steps) == 1 else dict(type="Sequence", pretokenizers=steps)
    return dict(
        normalizer=rule.normalizer,
        pre_tokenizer=before,
        decoder=_BYTES | dict(add_prefix_space=True),
        model=_model(tokens, merges, ignore_merges=rule.whole),
    ), rule.add_bos


def _sentence_pieces(file, facts, tokens, types):
    """Return the parts of a SentencePiece tokenizer, and True, because its texts begin with BOS.

    Unless `add_space_prefix` is false, each text, and each part of it between special tokens,
    begins with a space, as in llama.cpp.
    """
    scores = facts.get("scores") or []
    are_numbers = len(scores) == len(tokens) and all(map(is_number, scores))
    require(are_numbers, f"{PREFIX}scores in {file.path}", len(scores), "one number a token")
    if len({score for score, kind in zip(scores, types, strict=True) if kind == NORMAL}) < 2:
        raise ValueError(
            f"{PREFIX}scores in {file.path} are all equal: they must tell which pieces are merged "
            "first; convert the model again, with its SentencePiece model beside it"
        )
    spaced = facts.get("add_space_prefix", True)
    unknown = facts.get("unknown_token_id", 0)
    steps: list[dict[str, Any]] = [dict(type="Prepend", prepend=SPACE)] if spaced else []
    steps.append(dict(type="Replace", pattern={"String": " "}, content=SPACE))
    decoders = [
        dict(type="Replace", pattern={"String": SPACE}, content=" "),
        dict(type="ByteFallback"),
        dict(type="Fuse"),
    ]
    if spaced:
        decoders.append(dict(type="Strip", content=" ", start=1, stop=0))
    return dict(
        normalizer=dict(type="Sequence", normalizers=steps),
        pre_tokenizer=None,
        decoder=dict(type="Sequence", decoders=decoders),
        model=_model(
            tokens,
            [*_merges(tokens, types, scores)],
            unk_token=tokens[unknown],
            fuse_unk=True,
            byte_fallback=BYTE in types,
        ),
    ), True


def _merges(
    tokens: Sequence[str], types: Sequence[int], scores: Sequence[float]
) -> Iterator[list[str]]:
    """Yield the pairs of pieces that are merged, in the order of their priority.

    SentencePiece merges the pair whose result has the highest score, so each division of a piece
    into two other pieces is a merge.
    """
    ids = {token: i for i, token in enumerate(tokens)}
    normal = [i for i in range(len(tokens)) if types[i] == NORMAL and len(tokens[i]) > 1]
    for i in sorted(normal, key=lambda i: (-scores[i], i)):
        token = tokens[i]
        pairs = ((token[:place], token[place:]) for place in range(1, len(token)))
        known = [pair for pair in pairs if pair[0] in ids and pair[1] in ids]
        yield from map(list, sorted(known, key=lambda pair: (ids[pair[0]], ids[pair[1]])))


_KINDS = {"gpt2": _byte_level, "llama": _sentence_pieces}
