"""`Hearing`: the input format and the special tokens of a speech recognition model."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from keras_transformer.config import require, require_whole
from keras_transformer.hub.generation_config import checked_facts, suppressed
from keras_transformer.hub.preprocessor import read_preprocessor
from keras_transformer.models import SpeechConfig
from keras_transformer.system.foreign_fields import FieldTable
from keras_transformer.text.text_tokenizer import TextTokenizer

HOP, WINDOW = 0.01, 0.025  # seconds from the start of a frame to the next, and length of a frame
ENGLISH = 51_864  # pieces of a Whisper for English only; multilingual ones have more


@dataclass(frozen=True)
class Hearing:
    """The input that a speech model was trained on, and rules for the tokens of its output.

    Args:
        sample_rate: Sample rate in Hz.
        pads_clips: Whether each clip is padded with silence to the model's limit (Whisper).
        is_multilingual: Whether tokens of language and task follow BOS in the decoder's input.
        suppressed: Token ids that are never generated.
        suppressed_first: Token ids that are never generated first.
        alignment_heads: Pairs (layer, head) of the cross-attention that word times are computed
            from. Empty: all heads of the second half of the layers.
        language: Default language of the recordings, such as "en"; None: it is detected.
    """

    sample_rate: int = 16_000
    pads_clips: bool = True
    is_multilingual: bool = True
    suppressed: tuple[int, ...] = ()
    suppressed_first: tuple[int, ...] = ()
    alignment_heads: tuple[tuple[int, int], ...] = ()
    language: str | None = None

    def __post_init__(self):
        require_whole("sample_rate", self.sample_rate, 1)
        for name in ("pads_clips", "is_multilingual"):
            value = getattr(self, name)
            require(isinstance(value, bool), name, value, "true or false")
        for name in ("suppressed", "suppressed_first"):
            ids = getattr(self, name)
            whole = isinstance(ids, tuple) and all(type(x) is int for x in ids)
            require(whole, name, ids, "a tuple of token ids (whole numbers)")
        heads = self.alignment_heads
        whole = isinstance(heads, tuple) and all(_is_pair(x) for x in heads)
        require(whole, "alignment_heads", heads, "a tuple of pairs (layer, head)")
        text = self.language is None or isinstance(self.language, str)
        require(text, "language", self.language, "a language code or None")

    @classmethod
    def of(cls, facts: Any) -> Hearing:
        """Make a `Hearing` from the JSON values of its fields.

        `alignment_heads` and `language` may be missing, as in folders of older versions.

        Raises:
            ValueError: If a field is missing, unknown or out of range.
        """
        names = {field.name for field in fields(cls)}
        if isinstance(facts, Mapping):
            facts = {"alignment_heads": [], "language": None, **facts}
        whole = isinstance(facts, Mapping) and facts.keys() == names
        require(whole, "hearing", facts, f"an object with the fields {sorted(names)}")
        values: dict[str, Any] = {name: _as_tuples(x) for name, x in facts.items()}
        return cls(**values)


def _is_pair(x):
    return isinstance(x, tuple) and len(x) == 2 and all(type(i) is int and i >= 0 for i in x)


def _as_tuples(x):
    return tuple(map(_as_tuples, x)) if isinstance(x, list) else x


def time_ids(hearing: Hearing, tokenizer: TextTokenizer) -> set[int]:
    """Return the ids of Whisper's time tokens, such as `<|1.20|>`; none for other models."""
    pieces = tokenizer.pieces().items() if hearing.pads_clips else ()
    return {i for piece, i in pieces if re.fullmatch(r"<\|\d+\.\d+\|>", piece)}


def hearing_of(folder: str | os.PathLike, tokenizer: TextTokenizer, config: Any) -> Hearing:
    """Return the `Hearing` of a Whisper in Hugging Face's layout.

    Args:
        folder: Folder with `generation_config.json`; in older folders, `config.json` has its
            fields.
        tokenizer: Its tokenizer.
        config: The config of the model.

    Raises:
        ValueError: If a field has a value that is not accepted.
    """
    facts, path = checked_facts(folder)
    is_multilingual = facts["is_multilingual"]
    if is_multilingual is None:
        is_multilingual = tokenizer.id_of("<|transcribe|>") is not None
    first = facts["begin_suppress_tokens"] or ()
    return Hearing(
        is_multilingual=is_multilingual,
        suppressed=tuple(suppressed(facts, config.vocab_size, config.eos_ids)),
        suppressed_first=tuple(token_id for token_id in first if 0 <= token_id < config.vocab_size),
        alignment_heads=_as_tuples(facts["alignment_heads"] or []),
        language=_language(facts, tokenizer, path) if is_multilingual else None,
    )


def hearing_of_converted(
    facts: Mapping[str, Any], tokenizer: TextTokenizer, config: SpeechConfig
) -> Hearing:
    """Return the `Hearing` of a Whisper that CTranslate2 has converted.

    Args:
        facts: Content of its `config.json`.
        tokenizer: Its tokenizer.
        config: The config of the model.

    Raises:
        ValueError: If a field has a value that is not accepted.
    """
    names = dict(suppressed="suppress_ids", suppressed_first="suppress_ids_begin")
    values = {ours: _as_tuples(facts.get(theirs) or []) for ours, theirs in names.items()}
    heads = _as_tuples(facts.get("alignment_heads") or [])
    checked = Hearing(**values, alignment_heads=heads)
    return replace(
        checked,
        # The vocabulary of an English Whisper has the tokens of languages, too.
        is_multilingual=tokenizer.id_of("<|transcribe|>") is not None
        and config.vocab_size != ENGLISH,
        suppressed=tuple(i for i in checked.suppressed if 0 <= i < config.vocab_size),
        suppressed_first=tuple(i for i in checked.suppressed_first if 0 <= i < config.vocab_size),
    )


def _language(facts, tokenizer, path):
    """Return the language that the model's authors chose, such as "en"; None if they chose none.

    It is in the field `language`, or in older files in `forced_decoder_ids`.
    """
    pieces = {i: piece for piece, i in tokenizer.pieces().items()}
    forced = [pieces.get(i, i) for _, i in facts["forced_decoder_ids"] or () if i is not None]
    name, language = "language", facts["language"]
    if language is None and forced:
        accepted = (
            "null or ids of a language and of <|transcribe|>: pass another `task` to each call"
        )
        name = "forced_decoder_ids"
        can_transcribe = "<|translate|>" not in forced and all(isinstance(x, str) for x in forced)
        require(can_transcribe, f"{name} in {path}", facts[name], accepted)
        language = forced[0] if forced[0] not in ("<|transcribe|>", "<|notimestamps|>") else None
    if language is None:
        return None
    code = language.lower().removeprefix("<|").removesuffix("|>")
    is_known = tokenizer.id_of(f"<|{code}|>") is not None
    require(is_known, f"{name} in {path}", facts[name], 'the code of a language, such as "en"')
    return code


def check_feature_extractor(folder: str | os.PathLike, config: SpeechConfig) -> None:
    """Check that a Whisper folder asks for the same audio features as this package computes.

    Args:
        folder: Folder of the checkpoint. The features are in `preprocessor_config.json`, or in the
            part "feature_extractor" of `processor_config.json`. Without both, nothing is checked.
        config: Config of its model.

    Raises:
        ValueError: If the file is broken, or a field has a value that is not supported.
    """
    read_preprocessor(folder, "feature_extractor", feature_table(config))


def feature_table(config: SpeechConfig) -> FieldTable:
    """Return which fields of `WhisperFeatureExtractor` (`transformers` 5.23) are refused.

    A field that would change the features is accepted only with the value that this package uses.
    """
    rate, seconds = Hearing.sample_rate, config.max_frames * HOP
    return FieldTable(
        read=(),
        harmless=(
            *("feature_extractor_type", "processor_class", "auto_map", "return_attention_mask"),
            *("mel_filters", "n_samples", "nb_max_frames"),  # computed from other fields
            "do_normalize",  # `transformers` ignores this field of the file
        ),
        refused={
            "feature_size": (config.num_mels,),
            "sampling_rate": (rate,),
            "hop_length": (round(HOP * rate),),
            "n_fft": (round(WINDOW * rate),),
            "chunk_length": (int(seconds), seconds) if seconds % 1 == 0 else (seconds,),
            "padding_value": (0.0, 0),
            "padding_side": ("right",),
            "dither": (0.0, 0),
        },
    )
