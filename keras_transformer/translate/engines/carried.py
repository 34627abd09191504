"""Table of the search options that each engine accepts; it refuses the others by name.

`docs/deploy.md` has a table of it, which a test compares with the engines.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from keras_transformer.running.inputs import Request
from keras_transformer.search import Search, merged

# Arguments of a request that are options of a search, too.
OF_REQUEST = ("prefixes", "constraint", "strict")
_DEFAULTS = {x.name: x.default for kind in (Search, Request) for x in dataclasses.fields(kind)}


@dataclass(frozen=True)
class Carried:
    """The options that an engine carries.

    Args:
        kind: What the engine is, in messages.
        names: Names of options of `Search` and of `OF_REQUEST`.
        fixed: Whether the other options of `Search` were given values earlier: then their defaults
            are refused, too.
    """

    kind: str
    names: Collection[str]
    fixed: bool = False

    def check(self, given: Mapping[str, Any]) -> None:
        """Raise ValueError if one of these options, given by name, is not carried."""
        for name, value in given.items():
            is_default = value is _DEFAULTS[name] or value == _DEFAULTS[name]
            if name not in self.names and not (is_default and not self.fixed):
                raise ValueError(f"{name} must be left out for {self.kind}, got {value!r}")

    def check_request(self, request: Request) -> None:
        """Raise ValueError if a request has an option that is not carried."""
        given = {name: getattr(request, name) for name in OF_REQUEST}
        self.check({x: value for x, value in given.items() if value is not _DEFAULTS[x]})

    def options(
        self,
        given: Mapping[str, Any],
        accepted: Collection[str],
        defaults: Mapping[str, Any] | None = None,
        **others: Any,
    ) -> Search:
        """Return the search options that a caller gave, see `Search.of`.

        Raises:
            ValueError: If an option is not carried.
        """
        asked = {name: value for name, value in given.items() if name in accepted}
        self.check(merged(defaults or {}, asked))
        return Search.of(given, accepted, defaults, **others)


SAVED_MODEL = Carried(
    "a SavedModel, whose search was fixed at its export", ("num_hypotheses",), fixed=True
)
OF_ONNX = (
    *("beam_size", "length_penalty", "max_extra_length", "max_length", "scoring"),
    *("early_stopping", "forced_eos"),
)
ONNX = Carried("ONNX graphs", (*OF_ONNX, "num_hypotheses"))
CTRANSLATE2 = Carried(
    'engine="ctranslate2" (engine="keras" takes it)', (*ONNX.names, "prefixes", "strict")
)
