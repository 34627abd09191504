"""Nothing that users rely on is lost: it is there, or the changelog names what it is called now."""

import json
import re
from pathlib import Path

import pytest

from tests.public import public

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.once("names")


def renamed():
    """What the changelog's table of renames says, by the old name."""
    rows = re.findall(r"^\| `(.+?)` \| (?:`(.+?)`|gone: .+?) \|$", CHANGELOG, re.MULTILINE)
    return dict(rows)


CHANGELOG = (ROOT / "CHANGELOG.md").read_text("utf-8")
RENAMED = renamed()


def now(name):
    """The present name; "" if it is gone. Names below a renamed one follow it."""
    for old in sorted(RENAMED, key=len, reverse=True):
        if name == old or name.startswith((f"{old}.", f"{old} ")):
            return RENAMED[old] and RENAMED[old] + name.removeprefix(old)
    return name


def test_all_that_was_public_is():
    before, after = json.loads((ROOT / "tests" / "public.json").read_text("utf-8")), public()
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
