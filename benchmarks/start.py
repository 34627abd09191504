"""Time of a process that translates one sentence, with each backend and engine.

    python -m benchmarks.start FOLDER [--text "Where is the station?"] [--rounds 5] [--save]

FOLDER is a saved translator. A copy of it is exported to ONNX and as a SavedModel; then each row of
the table runs in turn, `--rounds` times after the first, always in a new process. In the first, the
caches are empty: CTranslate2's converted model, and the compilations of JAX. Of the later ones, the
table has the least processor and wall seconds. "ratio" is their processor time divided by that of
the import above, which is what the engine cannot do without.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import contest
from benchmarks.train import BACKENDS

COMMAND = (sys.executable, "-m", "keras_transformer.cli")


@dataclass
class Row:
    """A command that is measured in new processes.

    Args:
        name: Name in the table.
        command: The command line.
        environment: Environment variables to set, such as KERAS_BACKEND.
        base: Row of the import that the ratio is relative to; None: this row is such an import.
    """

    name: str
    command: tuple[str, ...]
    environment: dict[str, str]
    base: Row | None = None
    times: list[tuple[float, float]] = field(default_factory=list)

    def run(self, caches: str) -> str:
        """Run a process, add its processor and wall seconds to `times`, and return its stdout."""
        variables = {"PYTHONDONTWRITEBYTECODE": "", "XDG_CACHE_HOME": caches} | self.environment
        begin, before = time.perf_counter(), _processor_seconds()
        done = subprocess.run(
            self.command, env=os.environ | variables, capture_output=True, text=True
        )
        self.times.append((_processor_seconds() - before, time.perf_counter() - begin))
        if done.returncode:
            raise RuntimeError(f"{self.name} failed:\n{done.stderr[-4000:]}")
        return done.stdout

    @property
    def least(self) -> tuple[float, float]:
        """The least processor and wall seconds of all processes but the first."""
        processor, wall = zip(*self.times[1:], strict=True)
        return min(processor), min(wall)

    def cells(self) -> list[str]:
        """Return the row of the table."""
        ratio = f"{self.least[0] / self.base.least[0]:.2f}" if self.base else ""
        return [self.name, *(f"{x:.2f}" for x in (*self.times[0], *self.least)), ratio]


def _processor_seconds():
    """Return the processor seconds of all ended child processes."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def rows_of(room: Path, folder: Path, text: str) -> list[Row]:
    """Return the rows of the table, after exporting the translator into `room`."""
    exports = {"onnx": room / "onnx", "saved-model": room / "saved-model"}
    for kind, place in exports.items():
        command = [*COMMAND, "export", str(folder), str(place), "--format", kind]
        backend = BACKENDS["torch" if kind == "onnx" else "tensorflow"]
        subprocess.run(command, env={**os.environ, **backend}, check=True, stdout=sys.stderr)

    def translating(place: Path, *options: str) -> tuple[str, ...]:
        return (*COMMAND, "translate", str(place), text, *options)

    contestants = {x: ("keras", x, translating(folder)) for x in BACKENDS} | {
        "CTranslate2": ("ctranslate2", "torch", translating(folder, "--engine", "ctranslate2")),
        "ONNX": ("onnxruntime", "torch", translating(exports["onnx"])),
        "SavedModel": ("tensorflow", "tensorflow", translating(exports["saved-model"])),
    }
    rows = []
    for name, (package, backend, command) in contestants.items():
        of_backend = f", {backend}" if package == "keras" else ""
        importing = (sys.executable, "-c", f"import {package}")
        base = Row(f"`import {package}`{of_backend}", importing, BACKENDS[backend])
        rows += [base, Row(f"translate, {name}", command, BACKENDS[backend], base)]
    return rows


def main() -> None:
    """Measure all rows in turn and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="a saved translator")
    parser.add_argument("--text", default="Where is the station?", help="the sentence")
    parser.add_argument("--rounds", type=int, default=5, help="processes of a row after the first")
    parser.add_argument("--save", action="store_true", help="write the table to results/")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error(f"--rounds must be at least 1, got {options.rounds}")
    with tempfile.TemporaryDirectory() as name:
        room = Path(name)
        folder = room / "saved"
        shutil.copytree(options.folder, folder, ignore=shutil.ignore_patterns(".*", "checkpoints"))
        rows = rows_of(room, folder, options.text)
        texts = {}
        for number in range(options.rounds + 1):
            for row in rows:
                texts[row.name] = row.run(str(room / "caches"))
            print(f"round {number} of {options.rounds}", file=sys.stderr, flush=True)
    translations = {texts[row.name] for row in rows if row.base}
    if len(translations) > 1:
        raise RuntimeError(f"translations must be the same, got {texts}")
    header = ["", "first: processor s", "wall s", "later: processor s", "wall s", "ratio"]
    parts = [f"`{options.text}`", contest.table(header, [row.cells() for row in rows])]
    contest.report("start", "A process that translates one sentence", parts, options.save)


if __name__ == "__main__":
    main()
