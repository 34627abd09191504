"""Size, memory and time of translators on LiteRT, ONNX Runtime and CTranslate2, one by one.

    python -m benchmarks.small_computers FOLDER --source SENTENCES [--calibration TEXTS]
        [--from en --to de] [--sentences 200] [--beam-size 1] [--threads 1 2] [--rounds 3] [--save]
        [--only litert-float32 ctranslate2-int8 ...]

FOLDER is a saved translator, SENTENCES a text file. The translator is exported once; then each row
is measured `--rounds` times in turn, always in a new process, which imports no Keras. "first ms" is
the time to load the model and to translate the first sentence, after the imports: the least of the
processes. "ms a sentence" is the mean of the other sentences: the median of the processes. Memory
is the peak of a process, with Python and NumPy. The length penalty is 0. "same" counts the
translations that equal those of the Keras model. CTranslate2 quantizes its float32 file
when it loads it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import contest
from benchmarks.train import BACKENDS

LITERT = ("float32", "float16", "int8", "int8-weights", "int8-weights-calibrated")
ROWS = (*(f"litert-{x}" for x in LITERT), "onnx-float32", "ctranslate2-float32", "ctranslate2-int8")

PROGRAM = (
    "import json, sys; from benchmarks.small_computers import measured; "
    "print(json.dumps(measured(json.load(sys.stdin))))"
)


def measured(task: dict[str, Any]) -> dict[str, Any]:
    """Translate sentences one by one; return times, peak memory and translations.

    Args:
        task: Arguments of `Translator.load` as "load", options of the search as "search", and the
            sentences as "lines".
    """
    from keras_transformer.translate.translator import Translator

    begin = time.perf_counter()
    translator = Translator.load(**task["load"])
    translations = translator.translate(task["lines"][:1], **task["search"])
    first = time.perf_counter() - begin
    begin = time.perf_counter()
    for line in task["lines"][1:]:
        translations += translator.translate([line], **task["search"])
    rest = (time.perf_counter() - begin) / (len(task["lines"]) - 1)
    peak = contest.peak_bytes() / 2**20
    return dict(first_ms=1e3 * first, ms=1e3 * rest, peak=peak, translations=translations)


def run(task: dict[str, Any], threads: int) -> dict[str, Any]:
    """Return `measured(task)` of a new process on as many cores as threads."""
    cores = sorted(os.sched_getaffinity(0))[:threads]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps(task),
        env=os.environ | BACKENDS["torch"] | {"OMP_NUM_THREADS": str(threads)},
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def loaded_from(name: str, options: argparse.Namespace, room: Path) -> tuple[dict, Path]:
    """Return the arguments of `Translator.load` for a row, and the folder of its model's files."""
    from keras_transformer import Translator, export

    form, _, precision = name.partition("-")
    pair = dict(source_language=options.source_language, target_language=options.target_language)
    if form == "ctranslate2":
        load = dict(folder=str(options.folder), engine=form, precision=precision, **pair)
        Translator.load(**load)  # converts the model
        return load, options.folder / ".ctranslate2"
    out = room / name
    more: dict[str, Any] = {}
    if form == "litert":
        more["quantization"] = precision.removesuffix("-calibrated")
        if precision.endswith("-calibrated"):
            more["calibration"] = options.calibration
    getattr(export, form)(options.folder, out, **pair, **more)
    return dict(folder=str(out)), out


def megabytes(folder: Path) -> float:
    """Return the size of a folder's model files in MB."""
    files = [x for end in ("tflite", "onnx", "onnx.data", "bin") for x in folder.glob(f"*.{end}")]
    return sum(x.stat().st_size for x in files) / 1e6


def main() -> None:
    """Measure all rows in turn and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="a saved translator")
    parser.add_argument("--source", type=Path, required=True, help="text file of sentences")
    parser.add_argument("--calibration", type=Path, help="text file for int8-weights-calibrated")
    parser.add_argument("--from", dest="source_language", help="source language")
    parser.add_argument("--to", dest="target_language", help="target language")
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--beam-size", type=int, default=1)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=ROWS, default=ROWS)
    parser.add_argument("--save", action="store_true", help="write the table to results/")
    options = parser.parse_args()
    names = [x for x in options.only if options.calibration or not x.endswith("-calibrated")]
    lines = options.source.read_text("utf-8").splitlines()[: options.sentences]
    search = dict(beam_size=options.beam_size, length_penalty=0.0)
    results: dict[tuple[str, int], list[dict]] = {}
    with tempfile.TemporaryDirectory() as room:
        places = {name: loaded_from(name, options, Path(room)) for name in names}
        pair = dict(
            source_language=options.source_language, target_language=options.target_language
        )
        plain = search | dict(protect=False)
        reference = dict(load=dict(folder=str(options.folder), precision="float32", **pair))
        expected = run(reference | dict(search=plain, lines=lines), max(options.threads))
        for _ in range(options.rounds):
            for name, threads in itertools.product(names, options.threads):
                row_search = plain if name.startswith("ctranslate2") else search
                task = dict(load=places[name][0], search=row_search, lines=lines)
                results.setdefault((name, threads), []).append(run(task, threads))
        sizes = {name: megabytes(place) for name, (_, place) in places.items()}
    table = []
    for (name, threads), runs in results.items():
        translations = zip(runs[0]["translations"], expected["translations"], strict=True)
        table.append(
            [
                name,
                f"{threads}",
                f"{sizes[name]:.1f}",
                f"{statistics.median(x['ms'] for x in runs):.1f}",
                f"{min(x['first_ms'] for x in runs):.0f}",
                f"{max(x['peak'] for x in runs):.0f}",
                f"{sum(x == y for x, y in translations)}",
            ]
        )
    header = ["", "threads", "MB", "ms a sentence", "first ms", "peak MiB", "same"]
    title = f"Small computers: {len(lines)} sentences one by one, beam {options.beam_size}"
    parts = [contest.table(header, table)]
    name = f"small-computers-{options.folder.name}-beam{options.beam_size}"
    contest.report(name, title, parts, options.save)


if __name__ == "__main__":
    main()
