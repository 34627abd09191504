"""Marian's commands in docs/migrating.md print what ours do, where its package is installed."""

import re
import subprocess
import sys

import pytest

from keras_transformer import export, load_pretrained
from tests.hub.marian.models import SOURCES, documented, facts, needs_marian

from .shell import ROOT

COMMAND = re.compile(r"^# marian-(decoder|scorer) (.*)$", re.MULTILINE)


@needs_marian
@pytest.mark.once("runs another program")
def test_they_print_what_ours_do(tmp_path):
    commands = COMMAND.findall((ROOT / "docs/migrating.md").read_text("utf-8"))
    assert len(commands) == 5
    documented(tmp_path / "marian")
    translator = load_pretrained(tmp_path / "marian", "en", "de")
    translator.save(tmp_path / "student")
    export.marian(tmp_path / "student", tmp_path / "served")
    texts = SOURCES[:20]
    best = [[y["text"].strip() for y in x] for x in facts("tied_all")[1][:20]]
    targets = [x[0] for x in best]
    for name, lines in (("english.txt", texts), ("test.en", texts), ("test.de", targets)):
        (tmp_path / name).write_text("".join(f"{x}\n" for x in lines), "utf-8")
    for program, options in commands:
        words = [
            sys.executable,
            "-m",
            "pymarian",
            {"decoder": "decode", "scorer": "score"}[program],
        ]
        words += [*options.split(), "--cpu-threads", "1", "--mini-batch", "1", "--quiet"]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
        rows = [line.split(" ||| ") for line in done.stdout.splitlines()]
        if program == "scorer":
            expected = translator.score(texts, targets)
            assert [float(x) for (x,) in rows] == pytest.approx(expected, abs=1e-3)
        elif "--n-best" in options:
            assert [row[1].strip() for row in rows] == [y for x in best for y in x]
        else:
            assert [row[0].strip() for row in rows] == targets
