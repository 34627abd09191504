"""The options of a search, from the command line to the loop: declared, documented, checked here.

Everything that searches takes the options by these names and passes them on as one object. A new
option needs a field here and the code in `decoding` that implements it; the Python methods, the
commands and the server then have it too.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import numbers
import typing
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Self

from keras_transformer.config import require, require_whole

SCORINGS = ("wu", "transformers")


def _whole(least):
    return lambda name, value: require_whole(name, value, least)


def _number(fits, accepted):
    def check(name, value):
        is_real = isinstance(value, numbers.Real) and not isinstance(value, bool)
        require(is_real and fits(value), name, value, accepted)

    return check


_at_least_0 = _number(lambda x: 0 <= x < math.inf, "at least 0")
_above_0 = _number(lambda x: 0 < x < math.inf, "above 0")


def _option(default, check, text, draws=False):
    """Declare an option: `check` tests values other than None; `draws` marks sampling options."""
    return dataclasses.field(default=default, metadata=dict(check=check, help=text, draws=draws))


@dataclass(frozen=True)
class SearchOptions:
    """Options of every search.

    Raises:
        ValueError: If a value is out of its range; names the option.
    """

    beam_size: int = _option(4, _whole(1), "Hypotheses kept per text; 1 is greedy search.")
    length_penalty: float = _option(
        0.6, _at_least_0, "Alpha of Wu et al. 2016; higher values favour longer texts."
    )
    num_hypotheses: int | None = _option(
        None, _whole(1), "Hypotheses to return per text, best first.  [default: all]"
    )
    scoring: str = _option(
        "wu",
        lambda name, value: require(value in SCORINGS, name, value, f"one of {SCORINGS}"),
        "wu, or transformers for the length penalty and the stopping rule of that library.",
    )
    temperature: float | None = _option(
        None,
        _above_0,
        "Sample at this temperature; below 1 favours probable tokens.  [default: no sampling]",
        draws=True,
    )
    top_k: int = _option(
        0, _whole(0), "Sample from this many most probable tokens; 0: no limit.", draws=True
    )
    top_p: float = _option(
        1.0,
        _number(lambda x: 0 < x <= 1, "in (0, 1]"),
        "Sample from the most probable tokens that together reach this probability.",
        draws=True,
    )
    min_p: float = _option(
        0.0,
        _number(lambda x: 0 <= x <= 1, "in [0, 1]"),
        "Sample from tokens with at least this share of the highest probability.",
        draws=True,
    )

    # Options in some subclasses.
    min_length = 0  # minimum number of tokens before EOS
    no_repeat_ngram_size = 0
    diversity_rate = 0.0
    repetition_penalty = 1.0

    def __post_init__(self):
        for field in dataclasses.fields(self):
            if (value := getattr(self, field.name)) is not None or field.default is not None:
                field.metadata["check"](field.name, value)
        if self.num_hypotheses is not None:
            within = self.num_hypotheses <= self.beam_size
            accepted = f"at most beam_size={self.beam_size}"
            require(within, "num_hypotheses", self.num_hypotheses, accepted)

    @classmethod
    def names(cls, draws: bool | None = None) -> list[str]:
        """Return the names of the options: all, or only those with this value of `draws`."""
        fields = dataclasses.fields(cls)
        return [x.name for x in fields if draws is None or x.metadata["draws"] == draws]

    @classmethod
    def changed(cls, options: dict[str, Any]) -> dict[str, Any]:
        """Return the options without those that have their default value."""
        plain = {field.name: field.default for field in dataclasses.fields(cls)}
        return {x: value for x, value in options.items() if x not in plain or value != plain[x]}

    @classmethod
    def of(cls, given: dict[str, Any], accepted: Collection[str], **others: Any) -> Self:
        """Return the options that a caller gave by name.

        Args:
            given: Values by name.
            accepted: Names that the caller may give.
            others: Further options, which the caller cannot set.

        Raises:
            TypeError: If a name is not accepted.
            ValueError: If a value is out of its range.
        """
        for name in given:
            if name not in accepted:
                raise TypeError(f"{name} is not an option here; accepted are {sorted(accepted)}")
        return cls(**others, **given)


@dataclass(frozen=True)
class Search(SearchOptions):
    """Options of `Translator.translate`, `nbest` and `sample`."""

    max_extra_length: int = _option(
        50, _whole(1), "Maximum tokens beyond the length of the source, or of a longer prefix."
    )
    min_length: int = _option(
        0, _whole(0), "Minimum tokens before EOS; the maximum length takes precedence."
    )
    no_repeat_ngram_size: int = _option(
        0, _whole(0), "No sequence of this many tokens occurs twice in a translation; 0: it may."
    )
    diversity_rate: float = _option(
        0.0,
        _at_least_0,
        "Log-probability by which each further extension of a hypothesis falls behind, for beams "
        "that differ more (Li et al. 2016).",
    )
    repetition_penalty: float = _option(
        1.0, _above_0, "Penalty on tokens that the translation already has; above 1: less probable."
    )
    shortlist: bool = _option(
        False,
        lambda name, value: require(isinstance(value, bool), name, value, "True or False"),
        "Choose only among the pieces that the folder's shortlist has for a source.",
    )

    def __post_init__(self):
        super().__post_init__()
        if self.diversity_rate and self.beam_size == 1:
            raise ValueError("diversity_rate needs beam_size above 1, got beam_size=1")


@dataclass(frozen=True)
class Generation(SearchOptions):
    """Options of `CausalLM.generate`."""

    beam_size: int = _option(
        1, _whole(1), "Hypotheses kept per prompt; 1 is greedy search or sampling."
    )
    length_penalty: float = _option(0.0, _at_least_0, "Alpha of Wu et al. 2016, for beam search.")
    max_new_tokens: int = _option(
        100, _whole(1), "Maximum tokens to add; fewer where the model's positions end."
    )
    min_new_tokens: int = _option(0, _whole(0), "Minimum tokens before EOS.")
    repetition_penalty: float = _option(
        1.0, _above_0, "Penalty on tokens that have already occurred; above 1: less probable."
    )

    def __post_init__(self):
        super().__post_init__()
        if self.beam_size > 1 and self.temperature is not None:
            raise ValueError(f"temperature needs beam_size=1, got beam_size={self.beam_size}")

    @property
    def min_length(self) -> int:  # type: ignore[override]
        """Minimum number of tokens before EOS."""
        return self.min_new_tokens


@dataclass(frozen=True)
class Transcription(SearchOptions):
    """Options of `Transcriber.transcribe`."""

    beam_size: int = _option(1, _whole(1), "Hypotheses kept per part; 1 is greedy search.")
    length_penalty: float = _option(0.0, _at_least_0, "Alpha of Wu et al. 2016, for beam search.")
    max_new_tokens: int | None = _option(
        None, _whole(1), "Maximum tokens per part.  [default: the positions of the model]"
    )


def _all_but_count(names):
    return tuple(name for name in names if name != "num_hypotheses")


# The options of each method and its command.
NBEST = tuple(Search.names(draws=False))
TRANSLATE = _all_but_count(NBEST)
SAMPLE = (*Search.names(draws=True), "max_extra_length", "min_length", "repetition_penalty")
GENERATE = _all_but_count(Generation.names())
STREAM = (*Generation.names(draws=True), "repetition_penalty", "max_new_tokens")
TRANSCRIBE = _all_but_count(Transcription.names(draws=False))


def spelled_out(
    options: type[Any],
    names: Collection[str],
    spell: Callable[[dataclasses.Field, Any], Any] | None = None,
    **defaults: Any,
) -> Callable[[Callable], Callable]:
    """Return a decorator that names each option in the signature of a function with `**options`.

    Args:
        options: Class of the options, a dataclass.
        names: Names of the options that the function takes.
        spell: Makes the annotation of an option from its field and type; None: the type itself.
        defaults: Default values that differ from those of the class.
    """
    hints = typing.get_type_hints(options)
    fields = {field.name: field for field in dataclasses.fields(options)}

    def decorate(function):
        signature = inspect.signature(function, eval_str=spell is not None)
        parameters = [x for x in signature.parameters.values() if x.kind is not x.VAR_KEYWORD]
        for name in names:
            if name not in signature.parameters:
                field = fields[name]
                parameters.append(
                    inspect.Parameter(
                        name,
                        inspect.Parameter.KEYWORD_ONLY,
                        default=defaults.get(name, field.default),
                        annotation=spell(field, hints[name]) if spell else hints[name],
                    )
                )
        function.__signature__ = signature.replace(parameters=parameters)
        return function

    return decorate
