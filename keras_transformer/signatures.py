"""Options that are declared as fields of a dataclass, and functions that take them by name."""

from __future__ import annotations

import dataclasses
import inspect
import math
import numbers
import typing
from collections.abc import Callable, Collection
from typing import Any

from keras_transformer.config import require, require_whole

Check = Callable[[str, Any], None]


def option(default: Any, check: Check, help: str, **kind: Any) -> Any:
    """Declare an option, a field of a dataclass.

    Args:
        default: Default value.
        check: Function of the option's name and value that raises ValueError if the value is out
            of range. It is not called for None if None is the default.
        help: Description, for commands and schemas.
        kind: Further metadata, such as `draws=True`.
    """
    return dataclasses.field(default=default, metadata=dict(check=check, help=help, **kind))


def check_options(options: Any) -> None:
    """Check each option of a dataclass; None is accepted where it is the default."""
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        if value is not None or field.default is not None:
            field.metadata["check"](field.name, value)


def whole(least: int) -> Check:
    """Return a check for whole numbers of at least `least`."""
    return lambda name, value: require_whole(name, value, least)


def number(is_valid: Callable[[Any], bool], accepted: str) -> Check:
    """Return a check for finite numbers for which `is_valid` is true; errors say `accepted`."""

    def check(name: str, value: Any) -> None:
        is_real = isinstance(value, numbers.Real) and not isinstance(value, bool)
        require(is_real and math.isfinite(value) and is_valid(value), name, value, accepted)

    return check


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

    def decorate(function: Callable) -> Callable:
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
        made = signature.replace(parameters=parameters)
        function.__signature__ = made  # type: ignore[attr-defined]  # `inspect` reads it
        return function

    return decorate
