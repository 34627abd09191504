"""A corpus of made-up words, and the training command on it."""

import os
import random
import subprocess
import sys
from pathlib import Path

from keras_transformer.training.translation import train

WORDS = "ba be bi bo bu da de di do du ga ge gi go gu la le li lo lu".split()


def write_corpus(folder):
    """Writes sentences of made-up words, "translated" into the other case and the reverse order."""
    generator = random.Random(0)
    for name, count in (("train", 1500), ("validation", 50), ("test", 50)):
        sentences = [generator.choices(WORDS, k=generator.randint(2, 7)) for _ in range(count)]
        lines = [f"{' '.join(s)}\t{' '.join(reversed(s)).upper()}\n" for s in sentences]
        (folder / f"{name}.tsv").write_text("".join(lines), "utf-8")


SETTINGS = [
    "corpus=files",
    "vocab_size=320",
    "tokens_per_batch=320",
    "num_buckets=2",
    "epochs=3",
    "warmup_steps=60",
    "peak_learning_rate=0.01",
    "subword_sampling=0.1",
    "average_last=2",
    "model.d_model=32",
    "model.d_ff=64",
    "model.num_heads=2",
    "model.num_encoder_layers=1",
    "model.num_decoder_layers=1",
    "model.dropout=0.1",
    "model.max_length=64",
]


def start(files, output, *further, processes=1, tensorboard=False):
    """The training command in a process of its own, or in several."""
    command = ["-m", "training.translation", "--output", str(output)]
    if processes > 1:
        launch = ["-m", "keras_transformer.cli", "launch", "--processes", str(processes)]
        command = [*launch, "--", "python", *command]
    command = [sys.executable, *command]
    for name in ("train", "validation", "test"):
        command += [f"--{name}", str(files / f"{name}.tsv")]
    for setting in (*SETTINGS, *further):
        command += ["--set", setting]
    command += ["--tensorboard"] * tensorboard
    root = Path(__file__).parents[2]
    return subprocess.Popen(
        command,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def train_here(files, output, *further):
    """The same training in this process."""
    own = {f"{name}_files": [files / f"{name}.tsv"] for name in ("train", "validation", "test")}
    train(output=output, changes=[*SETTINGS, *further], **own)
