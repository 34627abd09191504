"""Conversion of `generation_config.json`, the default search of a checkpoint, to our options."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from keras_transformer.config import is_number, require
from keras_transformer.hub.families.family import token_ids
from keras_transformer.hub.families.fields import Field, count, positive, size
from keras_transformer.search import Generation, Search, SearchOptions, Transcription
from keras_transformer.system.files import read_json
from keras_transformer.system.foreign_fields import FieldTable

CONFIG, GENERATION = "config.json", "generation_config.json"
OF_TOKENS = ("eos_token_id", "bos_token_id", "decoder_start_token_id")
# In a Marian or a multilingual model, a maximum length of this or more, such as 512 of OPUS-MT and
# 200 of NLLB, only guards against endless translations. It is replaced by `max_extra_length`, which
# does the same with less memory and computation.
GUARD = 128
# Options that change probabilities step by step. With one of them and beams, `renormalize_logits`
# is refused, because here it only changes the output bias, once, when a model is imported.
_CHANGING = ("no_repeat_ngram_size", "repetition_penalty", "min_length", "min_new_tokens")


def _is_id(x):
    return type(x) is int


def _is_ids(x):
    return isinstance(x, list) and all(map(_is_id, x))


def _is_forced(x):
    return isinstance(x, list) and len(x) == 2 and _is_id(x[0]) and (x[1] is None or _is_id(x[1]))


_IDS = Field("a list of token ids or null", _is_ids, None)


def _share(default):
    return Field("a number in [0, 1]", lambda x: is_number(x) and 0 <= x <= 1, default, null=True)


# Fields that are read, with the defaults of `generate()` in `transformers` (5.23), except that the
# maximum length has none.
_READ = {
    "num_beams": size(1, null=True),
    "length_penalty": Field("at least 0", lambda x: is_number(x) and x >= 0, 1.0, null=True),
    "early_stopping": Field("true, false or null", lambda x: isinstance(x, bool), None),
    "no_repeat_ngram_size": count(None),
    "repetition_penalty": positive(1.0, null=True),
    "max_length": Field("at least 2", lambda x: type(x) is int and x >= 2, None),
    "max_new_tokens": size(None),
    "min_length": count(None),
    "min_new_tokens": count(None),
    "do_sample": Field("true, false or null", lambda x: isinstance(x, bool), None),
    "temperature": positive(1.0, null=True),
    "top_k": Field("at least 0", lambda x: type(x) is int and x >= 0, 50, null=True),
    "top_p": _share(1.0),
    "min_p": _share(None),
    "epsilon_cutoff": Field("in [0, 1)", lambda x: is_number(x) and 0 <= x < 1, 0.0, null=True),
    "forced_bos_token_id": Field("a token id or null", _is_id, None),
    "forced_eos_token_id": Field(
        "a token id, a list of them, or null",
        lambda x: _is_id(x) or (_is_ids(x) and len(x) > 0),
        None,
    ),
    "suppress_tokens": _IDS,
    "begin_suppress_tokens": _IDS,
    "bad_words_ids": Field(
        "a list of lists of one token id each",
        lambda x: isinstance(x, list) and all(_is_ids(y) and len(y) == 1 for y in x),
        None,
    ),
    "renormalize_logits": Field("true, false or null", lambda x: isinstance(x, bool), None),
    "language": Field("a text or null", lambda x: isinstance(x, str), None),
    "forced_decoder_ids": Field(
        "a list of pairs of a position and a token id or null",
        lambda x: isinstance(x, list) and all(_is_forced(y) for y in x),
        None,
    ),
    "is_multilingual": Field("true, false or null", lambda x: isinstance(x, bool), None),
    "alignment_heads": Field("a list of pairs or null", lambda x: isinstance(x, list), None),
}
_SAMPLING = {  # fields without effect unless do_sample is true
    "typical_p": (None, 1.0, 1),
    "top_h": (None,),
    "eta_cutoff": (None, 0.0, 0),
}
FIELDS = FieldTable(
    read=(*_READ, *OF_TOKENS, "pad_token_id"),
    harmless=(
        # Fields that change only how results are computed, or what is returned beside them.
        *("use_cache", "cache_implementation", "cache_config", "max_cache_len", "compile_config"),
        *("disable_compile", "continuous_batching_config", "prefill_chunk_size", "low_memory"),
        *("num_return_sequences", "output_attentions", "output_hidden_states", "output_scores"),
        *("output_logits", "return_dict_in_generate", "remove_invalid_values"),
        # Fields of drafted tokens: the model verifies each, so results are the same.
        *("is_assistant", "num_assistant_tokens", "num_assistant_tokens_schedule", "use_mtp"),
        *("assistant_confidence_threshold", "prompt_lookup_num_tokens", "speculation_type"),
        *("max_matching_ngram_size", "assistant_early_exit", "assistant_lookbehind"),
        *("target_lookbehind", "assistant_ensemble_weight"),
        # Whisper only: names of its tokens, and options for outputs other than text.
        *("lang_to_id", "task_to_id", "no_timestamps_token_id", "prev_sot_token_id"),
        *("max_initial_timestamp_index", "median_filter_width", "return_token_timestamps"),
        *("transformers_version", "trust_remote_code"),
    ),
    refused={
        **_SAMPLING,
        "encoder_repetition_penalty": (None, 1.0, 1),
        "encoder_no_repeat_ngram_size": (None, 0),
        "exponential_decay_length_penalty": (None,),
        "sequence_bias": (None,),
        "guidance_scale": (None, 1.0, 1),
        "watermarking_config": (None,),
        "penalty_alpha": (None, 0.0, 0),
        "dola_layers": (None,),
        "diversity_penalty": (None, 0.0, 0),
        "num_beam_groups": (None, 1),
        "constraints": (None,),
        "force_words_ids": (None,),
        "max_time": (None,),
        "stop_strings": (None,),
        "token_healing": (None, False),
        # Fields of Whisper only.
        "return_timestamps": (None, False),
        "task": (None, "transcribe"),
        "condition_on_prev_tokens": (None, False),
        "compression_ratio_threshold": (None,),
        "logprob_threshold": (None,),
        "no_speech_threshold": (None,),
        "prompt_condition_type": (None, "first-segment"),
    },
)
NAMES = {*FIELDS.read, *FIELDS.harmless, *FIELDS.refused}


def generation_facts(folder: str | os.PathLike) -> tuple[dict[str, Any], Path]:
    """Return a folder's fields on generation, and the file that they come from.

    The file is `generation_config.json`. Older folders have these fields in `config.json`. Without
    either file there are no fields.

    Raises:
        ValueError: If a file does not hold an object.
    """
    path = Path(folder, GENERATION)
    is_own = path.is_file()
    path = path if is_own else Path(folder, CONFIG)
    facts = read_json(path) if path.is_file() else {}
    if not isinstance(facts, dict):
        raise ValueError(f"{path} must hold an object, got {type(facts).__name__}")
    if is_own:
        return facts, path
    fields = {name: x for name, x in facts.items() if name in NAMES and x is not None}
    fields.pop("language", None)
    fields.pop("task", None)
    if facts.get("force_bos_token_to_be_generated"):
        fields["forced_bos_token_id"] = fields.get("bos_token_id")
    return fields, path


def checked_facts(folder: str | os.PathLike) -> tuple[dict[str, Any], Path]:
    """Return a folder's checked fields on generation with defaults filled in, and their file.

    Raises:
        ValueError: If a field has a value that is not supported; names file and field.
    """
    facts, path = generation_facts(folder)
    samples = facts.get("do_sample") is True
    checked = {name: x for name, x in facts.items() if samples or name not in _SAMPLING}
    FIELDS.check(checked, path)
    try:
        values = {name: field.read(name, facts) for name, field in _READ.items()}
    except ValueError as error:
        raise ValueError(f"{path} does not fit: {error}") from error
    defaults = {name: field.default for name, field in _READ.items() if field.null}
    return {x: defaults.get(x) if value is None else value for x, value in values.items()}, path


def suppressed(facts: Mapping[str, Any], vocab_size: int, ends: Iterable[int]) -> list[int]:
    """Return the ids of tokens that are never generated.

    Args:
        facts: Fields from `checked_facts`.
        vocab_size: Size of the vocabulary; larger ids are left out.
        ends: Ids of EOS, which `bad_words_ids` does not exclude.
    """
    bad = [token for (token,) in facts["bad_words_ids"] or () if token not in ends]
    ids = {*bad, *(facts["suppress_tokens"] or ())}
    return sorted(token for token in ids if 0 <= token < vocab_size)


def left_out(folder: str | os.PathLike, config: Mapping[str, Any]) -> list[int]:
    """Return the ids of tokens that are excluded before probabilities are computed.

    These are the `suppressed` tokens if the folder has `renormalize_logits`, else none.

    Args:
        folder: Folder in Hugging Face's layout.
        config: Its checked `config.json`.
    """
    facts, _ = checked_facts(folder)
    if not facts["renormalize_logits"]:
        return []
    return suppressed(facts, config["vocab_size"], token_ids(config, "eos_token_id"))


def _sampling(facts):
    options = {name: facts[name] for name in Generation.names(draws=True)}
    return options | {"top_p": max(options["top_p"], 1e-9)}  # our `top_p` is above 0


def search_of(
    folder: str | os.PathLike,
    kind: type[SearchOptions],
    config: Mapping[str, Any],
    first: Iterable[int] = (),
    languages: Iterable[int] = (),
) -> dict[str, Any]:
    """Return the options with which our search equals `generate()` with this folder.

    Without a maximum length in the folder, `generate()` ends after 20 tokens, and our search at its
    own default; a maximum length that is only a guard (`GUARD`) is ignored, too. Options with our
    default value are left out, except `beam_size` and `length_penalty`.

    Args:
        folder: Folder in Hugging Face's layout.
        kind: `Search`, `Generation` or `Transcription`.
        config: Its checked `config.json`, with the token ids of `generation_config.json`.
        first: Ids of the tokens with which our tokenizer begins each target.
        languages: Ids of the language tokens, one of which begins each target.

    Raises:
        ValueError: If a field has a value that is not supported; names file and field.
    """
    facts, path = checked_facts(folder)
    ends, vocab_size = token_ids(config, "eos_token_id"), config["vocab_size"]

    def only(name, accepted, is_accepted):
        require(is_accepted, f"{name} in {path}", facts[name], accepted)

    samples, beams = bool(facts["do_sample"]), facts["num_beams"]
    forced = facts["forced_eos_token_id"]
    forced = {*forced} if isinstance(forced, list) else {forced} - {None}
    only("forced_eos_token_id", f"among {ends}, or null", forced <= {*ends})
    never = suppressed(facts, vocab_size, ends)
    if facts["renormalize_logits"] and beams > 1:
        others = (*(facts[x] for x in _CHANGING), facts["begin_suppress_tokens"])
        same = kind is Search and all(x in (None, 0, 1.0, []) for x in others)
        reason = f" and one of {_CHANGING}" if kind is Search else ""
        only("renormalize_logits", f"null with beams{reason}", same)
    only("suppress_tokens", "a list without EOS", not {*never} & {*ends})
    options = dict(
        beam_size=beams,
        length_penalty=float(facts["length_penalty"]),
        scoring="transformers",
        early_stopping=bool(facts["early_stopping"]),
        no_repeat_ngram_size=facts["no_repeat_ngram_size"] or 0,
        repetition_penalty=float(facts["repetition_penalty"]),
        forced_eos=bool(forced),
    )
    most, least = facts["max_new_tokens"], facts["min_new_tokens"]
    if kind is Transcription:  # its suppressed tokens are in `speech.hearing.Hearing`
        for name in ("min_length", "min_new_tokens"):
            only(name, "0 or null", not facts[name])
        # Whisper's `generate` adds the tokens of language and task to the maximum length.
        options |= dict(max_new_tokens=most or facts["max_length"])
    else:
        first_never = {*(facts["begin_suppress_tokens"] or ())}
        options |= dict(
            suppress_tokens=tuple(never),
            begin_suppress_tokens=tuple(sorted(x for x in first_never if 0 <= x < vocab_size)),
        )
    if kind is Generation:
        only("min_length", "0 or null: use min_new_tokens", not facts["min_length"])
        only("num_beams", "1 with do_sample", not samples or beams == 1)
        if most is None and facts["max_length"]:
            most, options["max_length"] = facts["max_length"], facts["max_length"]
        options |= dict(max_new_tokens=most, min_new_tokens=least)
        options |= _sampling(facts) if samples else {}
    else:
        only("do_sample", "false or null", not samples)
    if kind is Search:
        options |= _of_translator(facts, config, never, only, first, languages)
    else:
        only("forced_bos_token_id", "null", facts["forced_bos_token_id"] is None)
    changed = kind.changed({name: x for name, x in options.items() if x is not None})
    changed |= {name: options[name] for name in ("beam_size", "length_penalty")}
    return {name: x for name, x in options.items() if name in changed}


def _of_translator(facts, config, never, only, first, languages):
    """Return the search options that only translators have, from a folder's fields."""
    most, least = facts["max_new_tokens"], facts["min_new_tokens"]
    if least is None:  # `generate` counts the token that the decoder begins with
        least = max((facts["min_length"] or 0) - 1, 0)
    if most is None and facts["max_length"]:
        most = facts["max_length"] - 1
        is_guard = most >= GUARD - 1 and (languages or config.get("model_type") == "marian")
        most = None if is_guard else most
    # Padding and the decoder's first token are never generated anyway.
    usual = {config.get("pad_token_id"), config.get("decoder_start_token_id")}
    others = tuple(token for token in never if token not in usual)
    forced = () if facts["forced_bos_token_id"] is None else (facts["forced_bos_token_id"],)
    only("suppress_tokens", "a list without forced tokens", not {*never} & {*forced})
    options = dict(suppress_tokens=others, max_length=most, min_length=least)
    if languages:
        only("forced_bos_token_id", "the token of a language", {*forced} <= {*languages})
    elif forced != tuple(first):
        options |= dict(forced_first=forced)
    return options


def usual_languages(folder: Path, tokenizer: Any) -> tuple[str | None, str | None]:
    """Return the source and target language that the folder names.

    A language that it does not name, or that the tokenizer lacks, is None; but a single target
    language is always chosen. A target begins with the token of its language, which may be in
    `generation_config.json`.
    """
    forced = generation_facts(folder)[0].get("forced_bos_token_id")
    codes = getattr(tokenizer, "languages", {})
    code = next((code for code, i in codes.items() if i == forced), None)
    path = folder / "tokenizer_config.json"
    options = read_json(path) if path.is_file() else {}
    options = options if isinstance(options, dict) else {}
    source = options.get("source_lang") or options.get("src_lang")
    target = code or options.get("target_lang") or options.get("tgt_lang")
    sources, targets = tokenizer.source_languages, tokenizer.target_languages
    return (
        source if not sources or source in sources else None,
        target if not targets or target in targets else targets[0] if len(targets) == 1 else None,
    )
