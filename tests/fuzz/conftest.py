"""Counts of fuzz examples at the end of a run, also of those in other processes."""

from __future__ import annotations

import pytest

from tests.fuzz.outcome import COUNTS


def pytest_sessionfinish(session):
    if (output := getattr(session.config, "workeroutput", None)) is not None:
        output["fuzz"] = [[*key, count] for key, count in COUNTS.items()]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    for kind, result, count in getattr(node, "workeroutput", {}).get("fuzz", ()):
        COUNTS[kind, result] += count


def pytest_terminal_summary(terminalreporter):
    if not COUNTS:
        return
    terminalreporter.section("fuzz examples")
    for kind in sorted({kind for kind, _ in COUNTS}):
        read, refused = COUNTS[kind, "read"], COUNTS[kind, "refused"]
        terminalreporter.line(f"{kind:32}{read + refused:8,} {read:8,} read {refused:8,} refused")


@pytest.fixture(scope="session")
def room(tmp_path_factory):
    """A folder for the file of an example: all examples of a test share it."""
    return tmp_path_factory.mktemp("fuzz")
