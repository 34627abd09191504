"""Options of a search, from the command line to the loop: declared, documented and checked here.

Everything that searches takes the options by these names and passes them on as one object. A new
option needs a field here and the code in `decoding` that implements it; the Python methods, the
commands and the server then have it too.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from keras_transformer.config import require
from keras_transformer.names import advice
from keras_transformer.signatures import check_options, number, option, whole
from keras_transformer.signatures import spelled_out as spelled_out

SCORINGS = ("wu", "transformers", "marian")


_at_least_0 = number(lambda x: x >= 0, "at least 0")
_above_0 = number(lambda x: x > 0, "above 0")


def _flag(name: str, value: Any) -> None:
    require(isinstance(value, bool), name, value, "True or False")


def _text(name: str, value: Any) -> None:
    require(isinstance(value, str) and bool(value.strip()), name, value, "a text that is not empty")


def _ids(name: str, value: Any) -> None:
    whole = isinstance(value, tuple) and all(type(x) is int and x >= 0 for x in value)
    require(whole, name, value, "a tuple of token ids")


@dataclass(frozen=True)
class SearchOptions:
    """Options of every search.

    In a declaration, `draws=True` marks an option of sampling, and `of_model=True` one that only a
    saved folder sets.

    Raises:
        ValueError: If a value is out of its range; names the option.
    """

    beam_size: int = option(4, whole(1), "Hypotheses kept per text; 1 is greedy search.")
    length_penalty: float = option(
        0.6, _at_least_0, "Alpha of Wu et al. 2016; higher values favour longer texts."
    )
    num_hypotheses: int | None = option(
        None, whole(1), "Hypotheses to return per text, best first.  [default: all]"
    )
    scoring: str = option(
        "wu",
        lambda name, value: require(value in SCORINGS, name, value, f"one of {SCORINGS}"),
        "wu; transformers or marian for the length penalty and stopping rule of that program.",
    )
    early_stopping: bool = option(
        False,
        _flag,
        "End as soon as beam_size hypotheses are finished, whatever unfinished ones may score.",
    )
    no_repeat_ngram_size: int = option(
        0, whole(0), "No sequence of this many tokens occurs twice in a text; 0: it may."
    )
    repetition_penalty: float = option(
        1.0, _above_0, "Penalty on tokens that have already occurred; above 1: less probable."
    )
    temperature: float | None = option(
        None,
        _at_least_0,
        "Sample at this temperature; below 1 favours probable tokens; 0: no sampling.  "
        "[default: no sampling]",
        draws=True,
    )
    top_k: int = option(
        0, whole(0), "Sample from this many most probable tokens; 0: no limit.", draws=True
    )
    top_p: float = option(
        1.0,
        number(lambda x: 0 < x <= 1, "in (0, 1]"),
        "Sample from the most probable tokens that together reach this probability.",
        draws=True,
    )
    min_p: float = option(
        0.0,
        number(lambda x: 0 <= x <= 1, "in [0, 1]"),
        "Sample from tokens with at least this share of the highest probability.",
        draws=True,
    )
    epsilon_cutoff: float = option(
        0.0,
        number(lambda x: 0 <= x < 1, "in [0, 1)"),
        "Sample from tokens with at least this probability, or the most probable one.",
        draws=True,
    )

    forced_eos: bool = option(
        False, _flag, "Whether a text at its maximum length must end with EOS.", of_model=True
    )
    suppress_tokens: tuple[int, ...] = option((), _ids, "Ids that no text has.", of_model=True)
    begin_suppress_tokens: tuple[int, ...] = option(
        (), _ids, "Ids that no text begins with.", of_model=True
    )

    # Options that only some subclasses declare, with the value for all others.
    min_length = 0  # minimum number of tokens before EOS
    diversity_rate = 0.0

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, list):  # from JSON
                object.__setattr__(self, field.name, tuple(value))
        check_options(self)
        if self.temperature == 0:
            object.__setattr__(self, "temperature", None)
        if self.num_hypotheses is not None:
            within = self.num_hypotheses <= self.beam_size
            accepted = f"at most beam_size={self.beam_size}"
            require(within, "num_hypotheses", self.num_hypotheses, accepted)

    @classmethod
    def names(cls, draws: bool | None = None) -> list[str]:
        """Return the options that callers may set, by name; unless None, `draws` selects some."""
        fields = [x for x in dataclasses.fields(cls) if not x.metadata.get("of_model")]
        return [x.name for x in fields if draws is None or x.metadata.get("draws", False) == draws]

    @classmethod
    def changed(cls, options: dict[str, Any]) -> dict[str, Any]:
        """Return the options without those that have their default value."""
        plain = {field.name: field.default for field in dataclasses.fields(cls)}
        return {x: value for x, value in options.items() if x not in plain or value != plain[x]}

    @classmethod
    def of(
        cls,
        given: Mapping[str, Any],
        accepted: Collection[str],
        defaults: Mapping[str, Any] | None = None,
        **others: Any,
    ) -> Self:
        """Return the options of a search, from a caller's and those of the model's folder.

        Args:
            given: Options of the caller, by name.
            accepted: Names that the caller may give.
            defaults: Options of the model's folder; None: no options. See `merged`.
            others: Further options, whose names need not be in `accepted`.

        Raises:
            TypeError: If a name is not accepted.
            ValueError: If a value is out of its range.
        """
        if unknown := [name for name in given if name not in accepted]:
            raise TypeError(f"{unknown[0]} is not an option here{advice(unknown, accepted)}")
        return cls(**merged(defaults or {}, {**others, **given}))

    @classmethod
    def saved(cls, config: Mapping[str, Any], path: Any) -> dict[str, Any]:
        """Return the options in "search" of a folder's `config.json`; {} if there is no "search".

        Args:
            config: The content of the file.
            path: Path of the file, for errors.

        Raises:
            ValueError: If it is not an object of such options, or a value is out of its range.
        """
        options = config.get("search", {})
        names = {field.name for field in dataclasses.fields(cls)}
        accepted = f"an object with options of {sorted(names)}"
        are_known = isinstance(options, Mapping) and options.keys() <= names
        require(are_known, f'"search" in {path}', options, accepted)
        try:
            search = cls(**options)
        except ValueError as error:
            raise ValueError(f'"search" in {path}: {error}') from error
        return {name: getattr(search, name) for name in options}


def without_protection(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a folder without `protect`, for an export; warn if it was set.

    Args:
        options: Options of the folder's `config.json`.
    """
    if options.get("protect"):
        warnings.warn("the export does not protect spans: protect is left out", stacklevel=2)
    return {name: value for name, value in options.items() if name != "protect"}


@dataclass(frozen=True)
class Search(SearchOptions):
    """Options of `Translator.translate`, `nbest` and `sample`."""

    max_extra_length: int = option(
        50, whole(1), "Maximum tokens beyond the length of the source, or of a longer prefix."
    )
    max_length: int | None = option(
        None,
        whole(1),
        "Maximum tokens of a translation, EOS included, whatever the length of the source.  "
        "[default: see max_extra_length]",
    )
    min_length: int = option(
        0, whole(0), "Minimum tokens before EOS; the maximum length takes precedence."
    )
    diversity_rate: float = option(
        0.0,
        _at_least_0,
        "Log-probability that each further extension of the same hypothesis loses, for beams that "
        "differ more (Li et al. 2016).",
    )
    shortlist: bool = option(
        False,
        _flag,
        "Choose only among the pieces that the folder's shortlist has for a source.",
    )
    protect: bool = option(
        False,
        _flag,
        "Copy URLs, addresses, numbers, tags, placeholders and emoji of a source unchanged.",
    )
    force_terms: bool = option(
        True,
        _flag,
        "Search again, with a constraint, if a translation lacks a term of the glossary; if not, a "
        "language model only reads the terms in its prompt.",
    )
    style: str | None = option(
        None, _text, "Style that a language model's prompt asks for, such as formal."
    )
    forced_eos: bool = option(
        True, _flag, "Whether a text at its maximum length must end with EOS.", of_model=True
    )
    max_length_factor: int | None = option(
        None,
        whole(1),
        "Maximum tokens of a translation as a multiple of its source's, instead of "
        "max_extra_length, as in Marian.",
        of_model=True,
    )
    forced_first: tuple[int, ...] | None = option(
        None,
        _ids,
        "First tokens of each translation; None: those of the tokenizer, such as a language.",
        of_model=True,
    )

    def limit(self, length: Any) -> Any:
        """Return the maximum tokens of a translation if `max_length` is None.

        Args:
            length: Tokens of its source, a number or a tensor.
        """
        if self.max_length_factor is None:
            return length + self.max_extra_length
        return length * self.max_length_factor

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.diversity_rate and self.beam_size == 1:
            raise ValueError("diversity_rate needs beam_size above 1, got beam_size=1")


@dataclass(frozen=True)
class Generation(SearchOptions):
    """Options of `CausalLM.generate`."""

    beam_size: int = option(
        1, whole(1), "Hypotheses kept per prompt; 1 is greedy search or sampling."
    )
    length_penalty: float = option(0.0, _at_least_0, "Alpha of Wu et al. 2016, for beam search.")
    max_new_tokens: int = option(
        100, whole(1), "Maximum tokens to add; fewer where the model's positions end."
    )
    max_length: int | None = option(
        None,
        whole(1),
        "Maximum tokens of a prompt and what is added to it.  [default: the model's positions]",
    )
    min_new_tokens: int = option(0, whole(0), "Minimum tokens before EOS.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.beam_size > 1 and self.temperature is not None:
            raise ValueError(f"temperature needs beam_size=1, got beam_size={self.beam_size}")

    @property
    def min_length(self) -> int:  # type: ignore[override]  # no field here
        """Minimum number of tokens before EOS."""
        return self.min_new_tokens


@dataclass(frozen=True)
class Transcription(SearchOptions):
    """Options of `Transcriber.transcribe`."""

    beam_size: int = option(1, whole(1), "Hypotheses kept per part; 1 is greedy search.")
    length_penalty: float = option(0.0, _at_least_0, "Alpha of Wu et al. 2016, for beam search.")
    max_new_tokens: int | None = option(
        None, whole(1), "Maximum tokens per part.  [default: the positions of the model]"
    )


# Options of a caller, with the options of the folder that each replaces.
_INSTEAD = {
    "max_extra_length": ("max_length", "max_length_factor"),
    "max_new_tokens": ("max_length",),
    "temperature": ("beam_size",),
    "beam_size": ("temperature",),
}


def merged(defaults: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a folder with those of a caller, which take precedence.

    An option of the caller also removes the folder's options that it replaces (`_INSTEAD`):
    `beam_size` only if above 1, the others only if neither None nor 0.
    """
    replacing = [x for x in _INSTEAD if given.get(x) and (x != "beam_size" or given[x] > 1)]
    gone = {y for x in replacing for y in _INSTEAD[x]}
    return {**{name: x for name, x in defaults.items() if name not in gone}, **given}


def _without(names: Iterable[str], *gone: str) -> tuple[str, ...]:
    return tuple(name for name in names if name not in gone)


# The options of each method and its command.
NBEST = tuple(Search.names(draws=False))
TRANSLATE = _without(NBEST, "num_hypotheses")
LIVE = _without(TRANSLATE, "protect")
_LENGTHS = ("max_extra_length", "max_length", "min_length")
SAMPLE = (*Search.names(draws=True), *_LENGTHS, "repetition_penalty")
GENERATE = _without(Generation.names(), "num_hypotheses")
STREAM = _without(GENERATE, "beam_size", "length_penalty", "scoring", "early_stopping")
TRANSCRIBE = _without(Transcription.names(draws=False), "num_hypotheses")
