"""Growth of time, memory and arithmetic with length, batch, beam, width and depth.

    python -m benchmarks.scaling [--backend torch tensorflow jax] [--rounds 5] [--save]
    python -m benchmarks.scaling --short

One size varies at a time; the others keep their values in `FULL` or `SHORT`. The exponent is the
slope of a straight line through the logarithms of the points, by least squares: 1 is linear growth,
2 quadratic. The exponent of the arithmetic (floating point operations of the matmuls) is fitted to
the same points. A smaller exponent of time or memory means that a part of the cost is constant; a
larger one would mean work that the algorithm does not need.

Each point is a separate process that first builds and runs a model of the smallest size. Memory is
the peak less what was resident after that. The points run in turn, and the fastest round of each
counts. Training is `fit`, as in `benchmarks.train`. Search is beam search with sources of `length`
tokens, where EOS is forbidden until the target is as long. --save needs the extra `bench`, for the
plot.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import contest, machine, train, trainers
from benchmarks.contest import Contestant
from keras_transformer.config import TransformerConfig
from keras_transformer.system.extras import missing

AXES = ("length", "rows", "beam_size", "d_model", "num_layers")
FULL = {
    "training": (
        dict(length=32, rows=16, d_model=256, num_layers=2, vocab_size=4_000),
        dict(
            length=(32, 64, 128, 256, 512),
            rows=(8, 16, 32, 64, 128),
            d_model=(64, 128, 256, 512),
            num_layers=(1, 2, 4, 8),
        ),
    ),
    "search": (
        dict(length=32, rows=16, beam_size=4, d_model=256, num_layers=2, vocab_size=4_000),
        dict(
            length=(16, 32, 64, 128, 256),
            rows=(4, 8, 16, 32, 64),
            beam_size=(2, 4, 8, 16),
            d_model=(64, 128, 256, 512),
            num_layers=(1, 2, 4, 8),
        ),
    ),
}
SHORT = {
    "training": (
        dict(length=16, rows=16, d_model=128, num_layers=1, vocab_size=1_000),
        dict(length=(16, 32, 64), rows=(16, 32, 64), d_model=(64, 128, 256)),
    ),
    "search": (
        dict(length=8, rows=8, beam_size=4, d_model=128, num_layers=1, vocab_size=1_000),
        dict(length=(8, 16, 32), rows=(8, 16, 32), beam_size=(2, 4, 8), d_model=(64, 128, 256)),
    ),
}
SMALLEST = dict(length=4, rows=2, d_model=64, num_layers=1, vocab_size=1_000)


def config_of(d_model: int, num_layers: int, vocab_size: int, **_: int) -> TransformerConfig:
    """Return a config with the paper's proportions."""
    return TransformerConfig(
        vocab_size,
        vocab_size,
        d_model=d_model,
        d_ff=4 * d_model,
        num_heads=d_model // 64,
        num_encoder_layers=num_layers,
        num_decoder_layers=num_layers,
    )


def search_flops(config: TransformerConfig, rows: int, length: int, beam_size: int) -> float:
    """Return the FLOPs of the matmuls of a search; each beam attends to its own past only."""
    width, inner = config.d_model, config.d_ff
    feed_forward, attended = 4 * width * inner, 4 * length * width
    encoder = config.num_encoder_layers * (8 * width**2 + attended + feed_forward)
    memory = config.num_decoder_layers * 4 * width**2
    decoder = 12 * width**2 + attended + attended / 2 + feed_forward
    token = config.num_decoder_layers * decoder + 2 * width * config.target_vocab_size
    tokens = 1 + beam_size * (length - 1)  # the first token has one beam
    return float(rows * (length * (encoder + memory) + tokens * token))


def flops(task: str, sizes: dict[str, int]) -> float:
    """Return the floating point operations of one training step or one search."""
    config, rows, length = config_of(**sizes), sizes["rows"], sizes["length"]
    if task == "training":
        return train.training_flops(config, rows, length)
    return search_flops(config, rows, length, sizes["beam_size"])


def training(repeats: int, **sizes: int) -> tuple[Callable, dict]:
    """A contestant: training steps of `fit`."""
    return _after_smallest(_fit, repeats, sizes)


def search(repeats: int, **sizes: int) -> tuple[Callable, dict]:
    """A contestant: beam searches."""
    return _after_smallest(_search, repeats, sizes)


def _after_smallest(make, repeats, sizes):
    # Libraries load many of their parts on first use.
    make(1, **sizes | SMALLEST)()
    facts = {"resident_bytes": contest.resident_bytes()}
    return make(repeats, **sizes), facts


def _fit(repeats, length, rows, **sizes):
    from keras_transformer import LabelSmoothedCrossentropy, Perplexity, Transformer, adam

    model = Transformer(config_of(**sizes))
    loss = LabelSmoothedCrossentropy(trainers.SMOOTHING)
    model.compile(adam(trainers.RATE), loss, metrics=[Perplexity()])
    run, _ = trainers.in_fit(model, trainers.batch(rows, length, sizes["vocab_size"]), repeats)
    return run


def _search(repeats, length, rows, beam_size, **sizes):
    from keras import ops

    from keras_transformer import Transformer
    from keras_transformer.backend import compiled
    from keras_transformer.running.search_functions import translation_function
    from keras_transformer.search import Search

    model = Transformer(config_of(**sizes))
    inputs, _ = trainers.batch(rows, length, sizes["vocab_size"])
    source_ids = ops.convert_to_tensor(inputs["source_ids"])
    max_lengths = ops.full((rows,), length, dtype="int32")
    options = Search(beam_size=beam_size, max_extra_length=1, min_length=length)
    function = compiled(translation_function(options, model), model)

    def run():
        for _ in range(repeats):
            ids, _ = function(source_ids, max_lengths)
            best = ops.convert_to_numpy(ids)[:, 0]
        if not (np.count_nonzero(best != model.config.pad_id, axis=1) == length).all():
            raise RuntimeError(f"translations must have {length} tokens, got {best[0]}")

    return run


def exponent(x: Any, y: Any) -> float:
    """Return the slope of log y over log x, by least squares."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def measure(
    backend: str, task: str, axis: str, values: Sequence[int], sizes: dict[str, int],
    rounds: int, repeats: int,
) -> dict[str, list[float]]:  # fmt: skip
    """Return the seconds, bytes and floating point operations of each point."""
    points = [{**sizes, axis: value} for value in values]
    contestants = [
        Contestant(
            f"{backend}, {task}, {axis} {point[axis]}", f"benchmarks.scaling:{task}",
            {"repeats": repeats, **point}, train.BACKENDS[backend],
        )
        for point in points
    ]  # fmt: skip
    contest.contest(contestants, rounds, lambda: None)
    return {
        "time": [
            min(x["seconds"] for x in contestant.results) / repeats for contestant in contestants
        ],
        "memory": [
            contestant.results[-1]["peak_bytes"] - contestant.facts["resident_bytes"]
            for contestant in contestants
        ],
        "arithmetic": [flops(task, point) for point in points],
    }


UNITS = {"time": 1e-3, "memory": 2**20, "arithmetic": 1e9}


def lines(results: dict[tuple, tuple]) -> list[list[str]]:
    """Return the rows of the table."""
    rows = []
    for (backend, task, axis), (values, measured) in results.items():
        cells = [", ".join(_short(y / UNITS[kind]) for y in measured[kind]) for kind in UNITS]
        slopes = [f"{exponent(values, measured[kind]):.2f}" for kind in UNITS]
        rows.append([backend, task, axis, ", ".join(map(str, values)), *cells, *slopes])
    return rows


def _short(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def pyplot() -> Any:
    """Return matplotlib's pyplot, set up to draw without a display."""
    try:
        import matplotlib
    except ImportError as error:
        raise missing("the plot", "plots") from error
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "scaling"  # the same numbers give the same file
    return importlib.import_module("matplotlib.pyplot")


def picture(results: dict[tuple, tuple], path: Path) -> None:
    """Plot the growth since the first point: one row per backend and task, one panel per size."""
    plt = pyplot()
    styles = {
        "arithmetic": dict(color="0.6", linewidth=6, solid_capstyle="round"),
        "time": dict(color="#0072b2", marker="o"),
        "memory": dict(color="#d55e00", marker="s", markersize=4),
    }
    rows = list(dict.fromkeys(key[:2] for key in results))
    size = (3 * len(AXES), 2.8 * len(rows))
    figure, panels = plt.subplots(len(rows), len(AXES), figsize=size, squeeze=False, sharey="row")
    for row, column in itertools.product(range(len(rows)), range(len(AXES))):
        panel, key = panels[row, column], (*rows[row], AXES[column])
        if key not in results:
            panel.set_axis_off()
            continue
        values, measured = results[key]
        for kind, style in styles.items():
            y = np.array(measured[kind])
            label = f"{kind}: {exponent(values, y):.2f}"
            panel.plot(values, y / y[0], label=label, **style)
        panel.set_xscale("log", base=2)
        panel.set_yscale("log", base=2)
        panel.set_xticks(values, values)
        panel.set_xlabel(AXES[column])
        panel.grid(color="0.9")
        panel.legend(fontsize=8, frameon=False)
        if column == 0:
            panel.set_ylabel(f"{', '.join(rows[row])}\ntimes the first point")
    figure.suptitle("Growth and its exponents", y=0.99)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Measure one size after another, print the table and draw the plot."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", nargs="+", choices=train.BACKENDS, default=["torch"])
    parser.add_argument("--rounds", type=int, default=5, help="rounds per point, at least 1")
    parser.add_argument("--repeats", type=int, default=2, help="steps or searches per round")
    parser.add_argument("--axes", nargs="+", choices=AXES, default=AXES, help="sizes to vary")
    parser.add_argument("--short", action="store_true", help="toy sizes, where overhead dominates")
    parser.add_argument(
        "--save", action="store_true", help="write the table and the plot to results/"
    )
    options = parser.parse_args()
    for name in ("rounds", "repeats"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be at least 1, got {getattr(options, name)}")
    if options.save:
        pyplot()  # raises here if matplotlib is missing, not after the work
    results = {}
    for backend, (task, (sizes, sweeps)) in itertools.product(
        options.backend, (SHORT if options.short else FULL).items()
    ):
        for axis in (axis for axis in AXES if axis in sweeps and axis in options.axes):
            measured = measure(
                backend, task, axis, sweeps[axis], sizes, options.rounds, options.repeats
            )
            results[backend, task, axis] = sweeps[axis], measured
    header = ["backend", "", "size", "values", "ms", "MiB", "GFLOP"]
    header += ["time exponent", "memory exponent", "arithmetic exponent"]
    worst = {
        kind: max(
            (exponent(values, measured[kind]) - exponent(values, measured["arithmetic"]), key)
            for key, (values, measured) in results.items()
        )
        for kind in ("time", "memory")
    }
    parts = [contest.table(header, lines(results))] + [
        f"Largest difference between the {kind} and the arithmetic exponent: {excess:+.2f} "
        f"({', '.join(key)})."
        for kind, (excess, key) in worst.items()
    ]
    name = "scaling-short" if options.short else "scaling"
    if options.save:
        picture(results, machine.results_folder() / f"{name}.svg")
        parts.append(f"![Growth of time, memory and arithmetic]({name}.svg)")
    contest.report(name, "Scaling", parts, options.save)


if __name__ == "__main__":
    main()
