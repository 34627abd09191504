"""Counts of the faults, at the end of a run."""

import sys

from tests.faults.faults import COUNTS

# Forks, limits of a process and /proc.
collect_ignore_glob = [] if sys.platform == "linux" else ["test_*.py"]


def pytest_terminal_summary(terminalreporter):
    if COUNTS:
        terminalreporter.section("faults")
        for kind in sorted({kind for kind, _ in COUNTS}):
            found = {outcome: n for (of, outcome), n in COUNTS.items() if of == kind}
            ends = ", ".join(f"{n} {outcome}" for outcome, n in sorted(found.items()))
            terminalreporter.write_line(f"{kind:40} {sum(found.values()):6}: {ends}")
        terminalreporter.write_line(f"{'in all':40} {COUNTS.total():6}")
