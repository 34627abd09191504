"""A training run that is killed several times, and resumes on fewer devices.

    python -m benchmarks.resume [--devices 4 4 4 2 2 1] [--float64] [--seed 0] [--save]
        [-- --set option=value]

The recipe "grammar" is trained in processes of one device each. In each part of the run but the
last, one process, drawn at random, gets SIGKILL at a random step; the next part resumes from
the last checkpoint, with its own number of processes. Then the same run is trained in one part with
the first number of processes. Printed are the largest difference of the final weights, and whether
every step of both runs had the same rows, by the SHA-256 of each batch without rows of padding.

With other devices, sums of gradients are rounded differently, and Adam with the paper's epsilon of
1e-9 makes full steps even of gradients that are only rounding errors. `--float64` trains in that
precision: a difference that remains is not rounding.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks import contest

SETTINGS = ("train_size=6000", "epochs=2", "warmup_steps=50", "num_buckets=2")
SETTINGS += ("checkpoint_every=10",)
# The gradient of a key's bias is only rounding error, but Adam turns it into full steps.
KEYS = re.compile(r".*(query_)?key_value/bias").fullmatch
LOG = "KERAS_TRANSFORMER_BENCHMARK_LOG"  # environment variable: folder of the logs of batches


def train(arguments: list[str]) -> None:
    """Train as `keras-transformer train` does, and log the rows of each batch."""
    from keras_transformer.cli import main
    from keras_transformer.data.pair_batches import TokenBatches
    from keras_transformer.training import recipe, translation

    recipe._CHOICES["precision"] += ("float64",)  # not offered to users
    translation._measure = lambda *arguments: None  # the weights are compared, not translations
    make = TokenBatches.batch
    path = Path(os.environ[LOG], f"{os.getpid()}.jsonl")

    def logged(self, step, part=(0, 1)):
        inputs, labels = make(self, step, part)
        if self.shuffle:  # not the validation set
            rows = [row.tobytes().hex() for row in labels if row.any()]
            with path.open("a") as log:
                print(json.dumps([step, part[0], rows]), file=log)
        return inputs, labels

    TokenBatches.batch = logged
    sys.argv = ["keras-transformer", "train", *arguments]
    main()


def batches(logs: Path) -> dict[int, set[str]]:
    """Return the hashes of each step's rows: one hash if all runs of the step had the same rows."""
    parts: dict[int, dict[str, dict[int, list]]] = {}
    for path in logs.glob("*/*.jsonl"):
        for line in path.read_text().splitlines():
            step, part, rows = json.loads(line)
            parts.setdefault(step, {}).setdefault(path.parent.name, {})[part] = rows
    hashes: dict[int, set[str]] = {}
    for step, runs in parts.items():
        for name, rows_of in runs.items():
            if len(rows_of) == int(name.split("-")[1]):  # all processes made their part
                rows = [row for part in sorted(rows_of) for row in rows_of[part]]
                digest = hashlib.sha256("".join(rows).encode()).hexdigest()
                hashes.setdefault(step, set()).add(digest)
    return hashes


def start(
    devices: int, output: Path, logs: Path, number: int, float64: bool, options: list[str]
) -> subprocess.Popen:
    """Start a part of a run in `devices` processes."""
    folder = logs / f"{number}-{devices}"
    folder.mkdir(parents=True)
    chosen = (*SETTINGS, *(("precision=float64",) if float64 else ()))
    settings = [x for setting in chosen for x in ("--set", setting)]
    command = ["-m", "benchmarks.resume", "--child", "--output", str(output), *settings, *options]
    launch = ["-m", "keras_transformer.cli", "launch", "--processes", str(devices), "--"]
    return subprocess.Popen(
        [sys.executable, *launch, "python", *command],
        env={**os.environ, LOG: str(folder), "JAX_ENABLE_X64": str(int(float64))},
        stdout=subprocess.DEVNULL,
        stderr=(logs / f"{number}.log").open("w"),
    )


def logged_steps(logs: Path) -> int:
    """Return how many batches the processes of a part have made."""
    return sum(len(path.read_text().splitlines()) for path in logs.glob("*.jsonl"))


def kill_one(launched, logs: Path, generator: random.Random) -> str:
    """Kill one of the processes of a part at a random step; return which, and when."""
    while not logged_steps(logs):
        time.sleep(0.1)
    wanted = generator.randint(20, 60) * len(list(logs.glob("*.jsonl")))
    while logged_steps(logs) < wanted:
        time.sleep(0.02)
    process = generator.choice(sorted(logs.glob("*.jsonl")))
    os.kill(int(process.stem), 9)
    status = launched.wait()
    return f"after about {wanted // len(list(logs.glob('*.jsonl')))} batches, status {status}"


def weights(output: Path) -> dict[str, np.ndarray]:
    """Return the weights of the last checkpoint."""
    from keras_transformer.weights import read_weights

    return read_weights(sorted(output.glob("checkpoints/epoch-*"))[-1])


def main() -> None:
    """Train both runs, and compare them."""
    if "--child" in sys.argv:
        train(sys.argv[sys.argv.index("--child") + 1 :])
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", type=int, nargs="+", default=[4, 4, 4, 2, 2, 1])
    parser.add_argument("--float64", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", action="store_true")
    parser.add_argument("options", nargs="*")
    arguments = parser.parse_args()
    generator = random.Random(arguments.seed)
    folder = Path(tempfile.mkdtemp(prefix="resume-"))
    rows = []
    logs, killed = folder / "logs", folder / "killed"
    for number, devices in enumerate(arguments.devices, 1):
        launched = start(devices, killed, logs, number, arguments.float64, arguments.options)
        if number < len(arguments.devices):
            end = kill_one(launched, logs / f"{number}-{devices}", generator)
            end = f"one process killed {end}"
        else:
            end = f"finished, status {launched.wait()}"
        rows.append((number, devices, end))
        print(*rows[-1], flush=True)
    whole = start(
        arguments.devices[0], folder / "whole", logs, 0, arguments.float64, arguments.options
    ).wait()
    rows.append(("never killed", arguments.devices[0], f"finished, status {whole}"))
    steps = batches(logs)
    killed_weights, whole_weights = weights(killed), weights(folder / "whole")
    largest = {
        name: float(np.abs(killed_weights[name] - whole_weights[name]).max())
        for name in killed_weights
    }
    worst = max(largest, key=largest.get)
    same = sum(len(hashes) == 1 for hashes in steps.values())
    parts = [
        contest.table(("part", "devices", "end"), rows),
        f"Steps whose batch had one hash in all parts and both runs: {same} of {len(steps)}.\n\n"
        f"Largest difference of a final weight: {largest[worst]:.2g} ({worst}); without the biases "
        f"of attention's input: {max(x for name, x in largest.items() if not KEYS(name)):.2g}.",
    ]
    contest.report(
        "resume-float64" if arguments.float64 else "resume",
        "A run that is killed, and goes on",
        parts,
        arguments.save,
    )


if __name__ == "__main__":
    main()
