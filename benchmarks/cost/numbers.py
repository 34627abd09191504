"""Numbers as people read them."""

from __future__ import annotations

import math


def number(value: float, digits: int = 3) -> str:
    """Return a number rounded to so many significant digits."""
    if value == 0:
        return "0"
    rounded = float(f"{value:.{digits - 1}e}")
    if abs(rounded) >= 1e9:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    return f"{rounded:,.{max(0, digits - 1 - math.floor(math.log10(abs(rounded))))}f}"


def share(value: float) -> str:
    """Return a percentage."""
    return f"{number(100 * round(value, 4), 2)} %"
