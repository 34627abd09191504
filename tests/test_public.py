"""Nothing that users rely on is lost: it is there, or `renamed.json` has its present name.

`public.json` lists the names, `renamed.json` what some of them are called now: "" if they are gone.
"""

import json
from pathlib import Path

import pytest

from tests.public import public

pytestmark = pytest.mark.once("names")


TESTS = Path(__file__).parent
RENAMED = json.loads((TESTS / "renamed.json").read_text("utf-8"))


def now(name):
    """The present name; "" if it is gone. Names below a renamed one follow it."""
    for old in sorted(RENAMED, key=len, reverse=True):
        if name == old or name.startswith((f"{old}.", f"{old} ")):
            return RENAMED[old] and RENAMED[old] + name.removeprefix(old)
    return name


def test_all_that_was_public_is():
    before, after = json.loads((TESTS / "public.json").read_text("utf-8")), public()
    assert set(before["environment"]) <= set(after["environment"])
    lost = []
    for kind in ("python", "commands", "routes"):
        for name, parts in before[kind].items():
            if not (new := now(name)):
                continue
            if new not in after[kind]:
                lost.append(new)
                continue
            parts = (now(f"{name} {part}").rpartition(" ")[2] for part in parts)
            lost += [f"{new} {part}" for part in parts if part and part not in after[kind][new]]
    assert not lost, "\n".join(lost)
