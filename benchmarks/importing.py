"""Cost of importing a checkpoint: peak memory relative to its size, and time beside reading it.

    python -m benchmarks.importing [--layers 6] [--save]

Writes a model with random weights in Marian's layout: 0.95 GB with 6 + 6 layers, 1,024 wide, and
60,000 pieces. Each backend imports it in a separate process. "s to read" is the time to copy all
tensors of the file to memory. The peak is resident memory less that of the libraries; it includes
the pages of the file that were read.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import contest
from benchmarks.contest import Contestant
from benchmarks.train import BACKENDS

SIZES = dict(
    d_model=1024, d_ff=4096, num_heads=16, activation="silu", positions="sinusoidal_halves",
    output_bias=True, epsilon=1e-5, pad_id=59_999, bos_id=59_999, eos_id=0,
    source_vocab_size=60_000, target_vocab_size=60_000, max_length=512,
)  # fmt: skip


def written(folder: str, layers: int) -> tuple[Callable, dict]:
    """A contestant that writes the checkpoint."""
    from keras_transformer import Transformer, TransformerConfig
    from keras_transformer.hub.hugging_face_checkpoint import write_model

    config = TransformerConfig(**SIZES, num_encoder_layers=layers, num_decoder_layers=layers)

    def run():
        write_model(folder, Transformer(config), "marian")

    return run, {}


def imported(folder: str) -> tuple[Callable, dict]:
    """A contestant that reads the checkpoint's bytes, then imports it."""
    from safetensors import safe_open

    from keras_transformer.hub.hugging_face_checkpoint import read_model

    path = Path(folder, "model.safetensors")

    def read():
        with safe_open(path, framework="numpy") as file:
            for name in file.keys():  # noqa: SIM118 - not a dict
                file.get_tensor(name).copy()

    read()  # loads the file into the system's page cache
    begin = time.perf_counter()
    read()
    reading = time.perf_counter() - begin
    before = contest.resident_bytes()
    begin = time.perf_counter()
    model = read_model(folder)
    seconds = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    facts = dict(
        parameters=model.count_params(), size=path.stat().st_size, reading=reading,
        seconds=seconds, peak=peak,
    )  # fmt: skip
    return (lambda: None), facts


def main() -> None:
    """Write the checkpoint, import it with each backend and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=6, help="layers per stack")
    parser.add_argument("--save", action="store_true", help="write the table to results/")
    options = parser.parse_args()
    if options.layers < 1:
        parser.error(f"--layers must be at least 1, got {options.layers}")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        task = dict(folder=folder, layers=options.layers)
        contest.alone(Contestant("write", "benchmarks.importing:written", task, BACKENDS["torch"]))
        for backend, environment in BACKENDS.items():
            task = dict(folder=folder)
            entry = Contestant(backend, "benchmarks.importing:imported", task, environment)
            contest.alone(entry)
            facts = entry.facts
            rows.append(
                [
                    backend,
                    f"{facts['parameters'] / 1e6:.0f}",
                    f"{facts['size'] / 1e9:.2f}",
                    f"{facts['reading']:.1f}",
                    f"{facts['seconds']:.1f}",
                    f"{facts['peak'] / facts['size']:.2f}",
                ]
            )
    header = ["", "million weights", "GB", "s to read", "s to import", "peak / size"]
    parts = [contest.table(header, rows)]
    contest.report("importing", "Importing a checkpoint", parts, options.save)


if __name__ == "__main__":
    main()
