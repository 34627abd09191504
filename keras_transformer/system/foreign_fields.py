"""Tables of the fields in JSON files of other programs: read, harmless, or refused.

A field that the reader ignores can make results wrong without an error. So the code that reads
such a file has a table of the fields that the other program knows.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keras_transformer.system.files import read_json


@dataclass(frozen=True)
class FieldTable:
    """A table of the fields in a JSON file of another program.

    Args:
        read: Fields that the reader uses, or checks itself.
        harmless: Fields that change no result, such as the version of the program.
        refused: Supported values of fields that change results, by name. Other values are refused;
            an absent field is accepted.
    """

    read: Collection[str]
    harmless: Collection[str] = ()
    refused: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def check(self, facts: Mapping[str, Any], path: str | os.PathLike) -> None:
        """Check the fields of a file; warn of unknown ones, except names that begin with "_".

        Args:
            facts: Content of the file.
            path: The file, for messages.

        Raises:
            ValueError: If a field of `refused` has a value that is not supported; the message
                names it.
        """
        for name, accepted in self.refused.items():
            value = facts.get(name, next(iter(accepted)))
            # `in` alone would take 1 for True and 0 for False.
            if not any(type(value) is type(x) and value == x for x in accepted):
                values = " or ".join(map(repr, accepted))
                raise ValueError(
                    f"{name} in {path} is {value!r:.200}, which is not supported; "
                    f"supported is {values}"
                )
        known = {*self.read, *self.harmless, *self.refused}
        if unknown := [name for name in facts if name not in known and not name.startswith("_")]:
            names = ", ".join(sorted(unknown)[:5])
            warnings.warn(f"{path} has fields that are not known: {names}", stacklevel=3)

    def read_from(self, path: str | os.PathLike) -> dict[str, Any]:
        """Return the checked content of a file; without the file, an empty dict.

        Raises:
            ValueError: If the file does not hold a JSON object, or as in `check`.
        """
        if not Path(path).is_file():
            return {}
        facts = read_json(path)
        if not isinstance(facts, dict):
            raise ValueError(f"{path} must hold an object, got {type(facts).__name__}")
        self.check(facts, path)
        return facts
