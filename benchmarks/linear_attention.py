"""Time and memory of linear attention against softmax, from 1,024 to 65,536 tokens.

    python -m benchmarks.linear_attention [--backend torch tensorflow jax] [--lengths 1024 ...]
        [--softmax 16384] [--save]

The small LLaMA of `benchmarks.long` on one row of random tokens, with the same tasks and figures.
`elu` and `performer` are those of `layers.linear_attention`; `softmax` is the default for long
inputs, up to `--softmax` positions. `training.language_model --attention` measures what they learn.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from benchmarks import contest, long

PATHS = ("softmax", "elu", "performer")
LENGTHS = [1024, 2048, 4096, 8192, 16_384, 32_768, 65_536]


def work(task: str, path: str, length: int) -> tuple[Callable, dict]:
    """Make a contestant: one training step, or one prompt and the tokens generated from it."""
    from keras_transformer.models import LLaMA, LLaMAConfig

    kernel = None if path == "softmax" else path
    sizes = long.SIZES | dict(max_length=2 * LENGTHS[-1])
    return long.contestant(task, LLaMA(LLaMAConfig(256, **sizes, kernel=kernel)), length)


def main() -> None:
    """Run one process after another and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    long.add_options(parser, LENGTHS)
    parser.add_argument("--softmax", type=int, default=65_536, help="longest input for softmax")
    arguments = parser.parse_args()
    longest = {"softmax": arguments.softmax}
    header, rows = long.measured(arguments, "benchmarks.linear_attention:work", PATHS, longest)
    sizes = ", ".join(f"{name} {x:,}" for name, x in long.SIZES.items() if name != "max_length")
    parts = [f"One row; {sizes}.", contest.table(header, rows)]
    title = "Linear attention: seconds, and memory above the libraries'"
    contest.report("linear-attention", title, parts, arguments.save)


if __name__ == "__main__":
    main()
