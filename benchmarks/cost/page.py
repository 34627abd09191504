"""The tables by name, and the page that has them."""

from __future__ import annotations

import re

from benchmarks.cost import limits, training

_MAKERS = (
    training.devices,
    training.checks,
    training.step_memory,
    training.models,
    training.memory,
    training.axes,
    training.breaks,
    training.wmt14,
    training.wmt14_hours,
    limits.billion,
    limits.shards,
    limits.failures,
    limits.training_limits,
    limits.corpus_limits,
)
TABLES = {make.__name__: make for make in _MAKERS}


def filled(page: str) -> str:
    """Return the page with each table after its mark made anew.

    Raises:
        ValueError: If a table has no mark, or a mark no table.
    """
    mark = re.compile(r"(<!-- table: (\w+) -->\n\n).*?(<!-- end -->)", re.DOTALL)
    names = [name for _, name, _ in mark.findall(page)]
    if sorted(names) != sorted(TABLES):
        raise ValueError(f"marks must be {sorted(TABLES)}, got {sorted(names)}")
    return mark.sub(lambda found: found[1] + TABLES[found[2]]() + "\n\n" + found[3], page)
