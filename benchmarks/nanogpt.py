"""Tiny Shakespeare with nanoGPT's setting for a GPU: validation loss and seconds of training.

    python -m benchmarks.nanogpt --text tinyshakespeare/input.txt.gz [--backends jax torch]
        [--output saved_models/nanogpt] [--short] [--save]

The setting is that of nanoGPT's `config/train_shakespeare_char.py`: 6 layers of 6 heads, 384 wide,
256 characters of context, 64 windows a step, dropout 0.2, 5,000 steps, beta2 0.99, a peak learning
rate of 1e-3; its README gives the best validation loss as 1.4697. Three things differ: our rate
falls linearly to 0, that of nanoGPT along a cosine to 1e-4; our layers have biases; and our loss is
over the whole last tenth of the text, that of nanoGPT over random windows of it. The same command
resumes. --short is a toy.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
from pathlib import Path

from benchmarks import contest
from benchmarks.train import BACKENDS

SETTING = dict(num_layers=6, num_heads=6, d_model=384, length=256, rows=64, dropout=0.2)
SETTING |= dict(steps=5000, steps_per_epoch=250, warmup_steps=100, peak_learning_rate=1e-3)
SETTING |= dict(weight_decay=0.1, precision="mixed_bfloat16")
SHORT = dict(num_layers=1, num_heads=2, d_model=16, length=16, rows=4, steps=4, steps_per_epoch=2)
SHORT |= dict(warmup_steps=1, precision="float32")
PUBLISHED = ["nanoGPT, published", "1.4697", "", "", ""]


def train(backend: str, text: Path, output: Path, setting: dict) -> list[str]:
    """Train on a backend; return the row of the table."""
    command = [sys.executable, "-m", "training.language_model", "--text", text, "--output", output]
    for name, value in setting.items():
        command += [f"--{name.replace('_', '-')}", str(value)]
    subprocess.run(command, env={**os.environ, **BACKENDS[backend]}, check=True)
    with open(output / "log.csv", encoding="utf-8") as file:
        losses = {float(x["val_loss"]): int(x["epoch"]) for x in csv.DictReader(file)}
    best = min(losses)
    metrics = json.loads((output / "metrics.json").read_text("utf-8"))["validation"]
    step = losses[best] * setting["steps_per_epoch"]
    values = [f"{best:.4f}", f"{step:,}", f"{metrics['loss']:.4f}", f"{metrics['seconds']:.0f}"]
    return [f"ours-{backend}", *values]


def main() -> None:
    """Train on each backend and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=Path, required=True, help="the plays, may be a .gz")
    parser.add_argument("--backends", nargs="+", choices=BACKENDS, default=["jax", "torch"])
    parser.add_argument("--output", type=Path, default=Path("saved_models/nanogpt"))
    parser.add_argument("--short", action="store_true", help="4 steps of a toy model")
    parser.add_argument("--save", action="store_true", help="write the table to results/")
    options = parser.parse_args()
    setting = SETTING | (SHORT if options.short else {})
    rows = [train(x, options.text, options.output / x, setting) for x in options.backends]
    header = ["", "best validation loss", "at step", "last validation loss", "seconds"]
    title = f"nanoGPT's Shakespeare: {setting['steps']:,} steps, {setting['precision']}"
    name = "-".join(["nanogpt", *options.backends])
    contest.report(name, title, [contest.table(header, [*rows, PUBLISHED])], options.save)


if __name__ == "__main__":
    main()
