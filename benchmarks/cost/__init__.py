"""Estimate what training and translating cost on many devices: the tables of docs/scale.md.

    python -m benchmarks.cost [--tables wmt14 ...] [--page docs/scale.md]

Arithmetic only: nothing is run, no backend is loaded. The formulas are in `counting`, the numbers
in `assumptions`. With `--page` the tables are written into the page, each after its mark
`<!-- table: NAME -->`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.cost.page import TABLES, filled


def main() -> None:
    """Print the tables, or write them into the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--page", type=Path, help="write all tables into this page")
    options = parser.parse_args()
    if options.page:
        options.page.write_text(filled(options.page.read_text("utf-8")), "utf-8")
        return
    for name in options.tables:
        print(f"## {name}\n\n{TABLES[name]()}\n")
