"""The metadata of a GGUF file for a byte-level tokenizer."""

from __future__ import annotations

import json
from typing import Any

from keras_transformer.config import require
from keras_transformer.hub.gguf.tokens import (
    CONTROL,
    NORMAL,
    PREFIX,
    RULES,
    UNUSED,
    USER_DEFINED,
    SplitRule,
)
from keras_transformer.text.text_tokenizer import TextTokenizer


def token_facts(tokenizer: TextTokenizer, config: Any) -> dict[str, Any]:
    """Return the metadata of a tokenizer and of the special tokens of a model.

    Args:
        tokenizer: The tokenizer.
        config: The model's config; ids without a piece become unused tokens.

    Raises:
        ValueError: If the tokenizer is not byte-level, splits texts by another rule than those in
            `tokens.RULES`, or adds other special tokens than BOS and EOS; or there are more than
            three EOS ids.
    """
    spec = json.loads(tokenizer.content)
    name = _rule_of(spec)
    tokens = [f"[PAD{i}]" for i in range(config.vocab_size)]
    types = [UNUSED] * config.vocab_size
    for piece, i in tokenizer.pieces().items():
        tokens[i], types[i] = piece, NORMAL
    for added in spec.get("added_tokens") or ():
        types[added["id"]] = CONTROL if added.get("special") else USER_DEFINED
    merges = (x if isinstance(x, str) else " ".join(x) for x in spec["model"]["merges"])
    facts: dict[str, Any] = dict(model="gpt2", pre=name, tokens=tokens, token_type=types)
    facts |= dict(merges=[*merges]) | _frame(tokenizer, config)
    accepted = "at most three tokens in a GGUF file"
    require(len(config.eos_ids) <= 3, "eos_id", config.eos_ids, accepted)
    facts |= dict(
        zip((f"{x}_token_id" for x in ("eos", "eot", "eom")), config.eos_ids, strict=False)
    )
    facts |= dict(bos_token_id=config.bos_id, padding_token_id=config.pad_id)
    return {f"{PREFIX}{key}": value for key, value in facts.items() if value != []}


def _rule_of(spec):
    """Return the name in `RULES` of the rule by which a byte-level tokenizer splits texts."""
    before, model = spec.get("pre_tokenizer") or {}, spec["model"]
    steps = before.get("pretokenizers") or [before]
    is_byte_level = model.get("type") == "BPE" and steps[-1].get("type") == "ByteLevel"
    accepted = "one of a byte-level tokenizer (kind='bytes') for a GGUF file"
    require(is_byte_level, "the model of the tokenizer", model.get("type"), accepted)
    rule = SplitRule(steps, bool(model.get("ignore_merges")), normalizer=spec.get("normalizer"))
    name = next((x for x, known in RULES.items() if _form(known) == _form(rule)), None)
    require(name is not None, "the rule that splits texts", steps, f"one of {[*RULES]} for GGUF")
    return name


def _form(rule):
    """Return the parts of a rule that change results, as plain values to compare."""
    steps = [{x: y for x, y in step.items() if x != "trim_offsets"} for step in rule.steps]
    return steps, rule.whole, rule.normalizer


def _frame(tokenizer, config):
    """Return the keys that say whether texts begin with BOS and end with EOS."""
    (ids,) = tokenizer.encode([""])
    frames = {
        (): (False, False),
        (config.eos_ids[0],): (False, True),
        (config.bos_id,): (True, False),  # also if BOS and EOS are one token
        (config.bos_id, config.eos_ids[0]): (True, True),
    }
    accepted = f"one of {[*frames]}, with BOS and EOS, in a GGUF file"
    require(tuple(ids) in frames, "the special tokens of each text", ids, accepted)
    return dict(zip(("add_bos_token", "add_eos_token"), frames[tuple(ids)], strict=True))
