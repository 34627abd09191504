"""The search options that each engine accepts; other options raise an error that names them.

`docs/deploy.md` shows them as a table, which a test compares with the engines.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from keras_transformer.running.inputs import Request
from keras_transformer.search import Search, merged

# Fields of `Request` that count as search options here.
OF_REQUEST = ("prefixes", "constraint", "strict")
_DEFAULTS = {x.name: x.default for kind in (Search, Request) for x in dataclasses.fields(kind)}


@dataclass(frozen=True)
class Carried:
    """The search options that an engine accepts.

    Args:
        kind: Description of the engine in error messages.
        names: Names of the accepted options: fields of `Search`, and names in `OF_REQUEST`.
        fixed: Whether the values of all other options were fixed at export. If so, these options
            are refused even with their default values.
    """

    kind: str
    names: Collection[str]
    fixed: bool = False

    def check(self, given: Mapping[str, Any]) -> None:
        """Raise ValueError if an option is not accepted; default values are, unless `fixed` is set.

        Args:
            given: Values of options by name.
        """
        for name, value in given.items():
            is_default = value is _DEFAULTS[name] or value == _DEFAULTS[name]
            if name not in self.names and not (is_default and not self.fixed):
                raise ValueError(f"{name} must be left out for {self.kind}, got {value!r}")

    def check_request(self, request: Request) -> None:
        """Raise ValueError if a request sets an option that is not accepted."""
        values = {name: getattr(request, name) for name in OF_REQUEST}
        self.check({x: value for x, value in values.items() if value is not _DEFAULTS[x]})

    def options(
        self,
        given: Mapping[str, Any],
        accepted: Collection[str],
        defaults: Mapping[str, Any] | None = None,
        **others: Any,
    ) -> Search:
        """Return the search options of a call, after a check; see `Search.of`.

        Raises:
            ValueError: If an option is not accepted by the engine.
        """
        asked = {name: value for name, value in given.items() if name in accepted}
        self.check(merged(defaults or {}, asked))
        return Search.of(given, accepted, defaults, **others)


SAVED_MODEL = Carried(
    "a SavedModel, whose search was fixed at its export", ("num_hypotheses",), fixed=True
)
OF_GRAPHS = (
    *("beam_size", "length_penalty", "max_extra_length", "max_length", "scoring"),
    *("early_stopping", "forced_eos", "max_length_factor"),
)
ONNX = Carried("ONNX graphs", (*OF_GRAPHS, "num_hypotheses"))
LITERT = Carried("LiteRT graphs", ONNX.names)
WEB = Carried("a page that translates", ONNX.names)
OF_SAVED = (*ONNX.names, "prefixes", "strict", "protect")
LITERT_ENGINE = Carried(
    'engine="litert" (engine="keras" takes it)', (*OF_SAVED, "suppress_tokens", "forced_first")
)
CTRANSLATE2 = Carried('engine="ctranslate2" (engine="keras" takes it)', OF_SAVED)
