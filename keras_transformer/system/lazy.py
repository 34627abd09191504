"""Names of a package that are imported on first access.

This module imports only the standard library.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def imported_on_access(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a function for `__getattr__` of a package, which imports a name on first access.

    The package should also import the names under `if TYPE_CHECKING:`, for type checkers, editors
    and the import contracts.

    Args:
        package: Name of the package.
        homes: Module of each name, relative to the package.
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{homes[name]}"), name)

    return find
