"""The options of a search, from the command line to the loop: declared, documented, checked here.

Everything that searches takes them by these names and hands them on as one object. A new option is
a field here and the line of `decoding` that obeys it; the Python methods, the commands and the
server then have it, too.
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
    """An option, with its check of a value that is not None, and whether it is of sampling."""
    return dataclasses.field(default=default, metadata=dict(check=check, help=text, draws=draws))


@dataclass(frozen=True)
class SearchOptions:
    """Options of every search.

    Raises:
        ValueError: if a value is out of its range; names it.
    """

    beam_size: int = _option(4, _whole(1), "Hypotheses kept of each text; 1 is greedy search.")
    length_penalty: float = _option(
        0.6, _at_least_0, "Alpha of Wu et al. 2016; more favours longer texts."
    )
    num_hypotheses: int | None = _option(
        None, _whole(1), "How many of the hypotheses are wanted, best first; by default all."
    )
    scoring: str = _option(
        "wu",
        lambda name, value: require(value in SCORINGS, name, value, f"one of {SCORINGS}"),
        "wu; or transformers, for the length penalty and the stop rule of that library.",
    )
    temperature: float | None = _option(
        None, _above_0, "Draws tokens instead; below 1 the likely become likelier.", draws=True
    )
    top_k: int = _option(
        0, _whole(0), "Draws from so many most probable tokens; 0: no limit.", draws=True
    )
    top_p: float = _option(
        1.0,
        _number(lambda x: 0 < x <= 1, "in (0, 1]"),
        "Draws from the most probable tokens that together reach this probability.",
        draws=True,
    )
    min_p: float = _option(
        0.0,
        _number(lambda x: 0 <= x <= 1, "in [0, 1]"),
        "Draws from tokens of at least this share of the best one's probability.",
        draws=True,
    )

    min_length = 0  # fewest tokens before the end; an option of some

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
        """Return the names of all options, or of those that are of sampling, or that are not."""
        fields = dataclasses.fields(cls)
        return [x.name for x in fields if draws is None or x.metadata["draws"] == draws]

    @classmethod
    def of(cls, given: dict[str, Any], accepted: Collection[str], **others: Any) -> Self:
        """Return the options that a caller gave by name.

        Args:
            given: what was given.
            accepted: the names that may be.
            others: options that the caller has no say in.

        Raises:
            TypeError: for another name.
            ValueError: for a value out of its range.
        """
        for name in given:
            if name not in accepted:
                raise TypeError(f"{name} is no option here: it must be one of {sorted(accepted)}")
        return cls(**others, **given)


@dataclass(frozen=True)
class Search(SearchOptions):
    """Options of `Translator.translate`, `nbest` and `sample`."""

    max_extra_length: int = _option(
        50, _whole(1), "Most tokens of a translation beyond those of its source, or of its prefix."
    )
    min_length: int = _option(
        0, _whole(0), "Fewest tokens before the end, as far as the longest allows."
    )


@dataclass(frozen=True)
class Generation(SearchOptions):
    """Options of `CausalLM.generate`."""

    beam_size: int = _option(1, _whole(1), "Hypotheses kept; 1 is greedy search, or sampling.")
    length_penalty: float = _option(0.0, _at_least_0, "Alpha of Wu et al. 2016, of a beam's score.")
    max_new_tokens: int = _option(
        100, _whole(1), "Most tokens that are added; fewer where the model's positions end."
    )
    min_new_tokens: int = _option(0, _whole(0), "Fewest tokens before the end.")
    repetition_penalty: float = _option(
        1.0, _above_0, "Above 1: tokens that were there before are less likely."
    )

    def __post_init__(self):
        super().__post_init__()
        for name, plain in dict(temperature=None, repetition_penalty=1.0).items():
            if self.beam_size > 1 and getattr(self, name) != plain:
                raise ValueError(f"{name} goes with beam_size=1, got beam_size={self.beam_size}")

    @property
    def min_length(self) -> int:  # type: ignore[override]
        """Fewest tokens before the end."""
        return self.min_new_tokens


@dataclass(frozen=True)
class Transcription(SearchOptions):
    """Options of `Transcriber.transcribe`."""

    beam_size: int = _option(1, _whole(1), "Hypotheses kept; 1 is greedy search.")
    length_penalty: float = _option(0.0, _at_least_0, "Alpha of Wu et al. 2016, of a beam's score.")
    max_new_tokens: int | None = _option(
        None, _whole(1), "Most tokens of a part's text; by default as many as there are positions."
    )


def _all_but_count(names):
    return tuple(name for name in names if name != "num_hypotheses")


# Which options each method takes, and its command.
NBEST = tuple(Search.names(draws=False))
TRANSLATE = _all_but_count(NBEST)
SAMPLE = (*Search.names(draws=True), "max_extra_length", "min_length")
GENERATE = _all_but_count(Generation.names())
STREAM = (*Generation.names(draws=True), "repetition_penalty", "max_new_tokens")
TRANSCRIBE = _all_but_count(Transcription.names(draws=False))


def spelled_out(
    options: type[SearchOptions],
    names: Collection[str],
    spell: Callable[[dataclasses.Field, Any], Any] | None = None,
    **defaults: Any,
) -> Callable[[Callable], Callable]:
    """Decorate a function that takes `**options`: its signature then names each of them.

    Args:
        options: their class.
        names: those that the function takes.
        spell: makes the annotation of an option from its field and type; None: the type.
        defaults: where they are others than those of the class.
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
