"""Speed of training: our model and its peers in turn, and the machine's matmul peak.

    python -m benchmarks.train [--size base] [--rows 64] [--length 32] [--precision float32]
        [--only ours-torch marian ...] [--rounds 5] [--save]

The peers need `pip install -c constraints.txt -e ".[all,bench]"`. All contestants start from the
same random weights and must give the same loss on the same batch before any is timed, except for
Marian 1.12 (`pymarian`, float32), which has the same sizes. Dropout, label smoothing and Adam are
the same on all sides. On a known GPU, the table has the model FLOPs utilisation: FLOPs of the
matmuls per second, divided by the peak of the data sheet.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import contest, machine
from benchmarks.contest import Contestant
from benchmarks.trainers import KERAS_PRECISION, SIZES
from keras_transformer.config import TransformerConfig


def training_flops(config: TransformerConfig, rows: int, length: int) -> float:
    """Return the FLOPs of the matmuls of one step; the backward pass costs twice the forward."""
    width, inner = config.d_model, config.d_ff
    attention = 8 * width**2 + 4 * length * width
    encoder = config.num_encoder_layers * (attention + 4 * width * inner)
    decoder = config.num_decoder_layers * (2 * attention + 4 * width * inner)
    return 3.0 * rows * length * (encoder + decoder + 2 * width * config.target_vocab_size)


BACKENDS = {  # by default JAX preallocates most of a GPU's memory
    "torch": {"KERAS_BACKEND": "torch"},
    "tensorflow": {"KERAS_BACKEND": "tensorflow"},
    "jax": {"KERAS_BACKEND": "jax", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
}
CONTESTANTS = {
    **{f"ours-{b}": ("ours", {}, environment) for b, environment in BACKENDS.items()},
    **{f"ours-{b}-remat": ("ours", {"remat": True}, BACKENDS[b]) for b in BACKENDS},
    "marian": ("marian", {}, {}),
    "marian-eager-attention": ("marian", {"attention": "eager"}, {}),
    "marian-compiled": ("marian", {"compiled": True}, {}),
    "pymarian": ("pymarian", {}, {}),
    "torch.nn": ("torch_transformer", {}, {}),
    **{f"keras-hub-{b}": ("keras_hub", {}, environment) for b, environment in BACKENDS.items()},
}


def contestants(
    room: str, names: Sequence[str], size: str, rows: int, length: int, precision: str, steps: int
) -> dict[str, Contestant]:
    """Return the named contestants in the table's order; write their weights into `room`."""
    weights = str(Path(room, "weights.safetensors"))
    write_weights(size, weights)
    options = dict(size=size, weights=weights, rows=rows, length=length)
    options |= dict(precision=precision, steps=steps)
    return {
        name: Contestant(name, f"benchmarks.trainers:{function}", options | more, environment)
        for name, (function, more, environment) in CONTESTANTS.items()
        if name in names
    }


def check_same_loss(entries: dict[str, Contestant], precision: str) -> None:
    """Raise a RuntimeError if the contestants that are ready do not compute the same loss."""
    losses = {name: entry.facts["loss"] for name, entry in entries.items() if "loss" in entry.facts}
    tolerance = 2e-3 if precision == "float32" else 0.02
    if max(losses.values()) - min(losses.values()) > tolerance:
        raise RuntimeError(f"the contestants do not compute the same loss: {losses}")


def peak_for(precision: str) -> float | None:
    """Return the data sheet's peak of this machine's GPU, by which model FLOPs are divided."""
    return machine.peak() if precision == "bfloat16" else None


def compete(
    size: str,
    rows: int,
    length: int,
    precision: str,
    names: Sequence[str],
    rounds: int,
    steps: int,
) -> tuple[list[list], float]:
    """Return the rows of the table, one per contestant, and the machine's peak in FLOP/s."""
    with tempfile.TemporaryDirectory() as room:
        entries = contestants(room, names, size, rows, length, precision, steps)
        matmul = Contestant("matmul", "benchmarks.contest:matmul_peak", {"precision": precision})
        contest.contest(
            [matmul, *entries.values()], rounds, lambda: check_same_loss(entries, precision)
        )
    flops = training_flops(SIZES[size](), rows, length)
    known = peak_for(precision)
    rate = sorted(result["flops"] for result in matmul.results)[rounds // 2]
    lines = []
    for name, entry in entries.items():
        seconds = entry.seconds / steps
        ratios = {
            ours: contest.ratio(entry, entries[ours]) for ours in entries if ours.startswith("ours")
        }
        lines.append(
            [name, f"{seconds * 1e3:,.0f}", f"{rows * length / seconds:,.0f}"]
            + [f"{flops / seconds / x:.0%}" for x in (rate, known) if x]
            + [f"{entry.results[-1]['peak_bytes'] / 2**30:.2f}"]
            + [f"{entry.facts['loss']:.4f}" if "loss" in entry.facts else ""]
            + [f"{value:.2f}" for value in ratios.values()]
        )
    return lines, rate


def write_weights(size: str, path: str) -> None:
    """Write initial weights plus normal noise (0.02).

    A separate process does this, so that this one does not import Keras.
    """
    import os
    import subprocess
    import sys

    program = (
        "import sys, numpy as np\n"
        "from benchmarks.trainers import SIZES\n"
        "from keras_transformer import Transformer\n"
        "from keras_transformer.weights.weight_files import save_weights, weights_of\n"
        "rng = np.random.default_rng(0)\n"
        "weights = weights_of(Transformer(SIZES[sys.argv[1]]()))\n"
        "noise = lambda x: (x + rng.normal(0, 0.02, x.shape)).astype('float32')\n"
        "save_weights(sys.argv[2], {name: noise(x) for name, x in weights.items()})\n"
    )
    environment = {**os.environ, "KERAS_BACKEND": "torch"}
    subprocess.run([sys.executable, "-c", program, size, path], env=environment, check=True)


def main() -> None:
    """Run the contest and print its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="base")
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--length", type=int, default=32)
    parser.add_argument("--precision", choices=KERAS_PRECISION, default="float32")
    parser.add_argument("--rounds", type=int, default=5, help="rounds that count, at least 1")
    parser.add_argument("--steps", type=int, default=2, help="steps per round")
    rare = ("marian-compiled", "pymarian")
    default = [x for x in CONTESTANTS if x not in rare and not x.endswith("-remat")]
    parser.add_argument("--only", nargs="+", choices=CONTESTANTS, default=default)
    parser.add_argument("--save", action="store_true", help="write the table to results/")
    parser.add_argument(
        "--part",
        default="",
        help="suffix of the table's name, to measure in parts where memory is short",
    )
    options = parser.parse_args()
    for name in ("rows", "length", "rounds", "steps"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be at least 1, got {getattr(options, name)}")
    lines, rate = compete(
        options.size, options.rows, options.length, options.precision, options.only,
        options.rounds, options.steps,
    )  # fmt: skip
    header = ["", "ms per step", "target tokens/s", "of matmul peak"]
    header += ["model FLOPs utilisation"] if peak_for(options.precision) else []
    header += ["peak GiB", "first loss"]
    ours = [name for name in CONTESTANTS if name in options.only and name.startswith("ours")]
    header += [f"{name} is faster by" for name in ours]
    name = f"train-{options.size}-{options.rows}x{options.length}-{options.precision}"
    name += f"-{options.part}" if options.part else ""
    peak = f"{options.precision} matmul (2048 x 2048, PyTorch): {rate / 1e12:.2f} TFLOP/s; "
    flops = training_flops(SIZES[options.size](), options.rows, options.length)
    contest.report(
        name,
        f"Training, {options.size}: {options.rows} pairs of {options.length} tokens, "
        f"{options.precision}",
        [f"{peak}arithmetic per step: {flops / 1e12:.3f} TFLOP.", contest.table(header, lines)],
        options.save,
    )


if __name__ == "__main__":
    main()
