"""Signatures of functions that take declared options by name."""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable, Collection
from typing import Any


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
