"""Collectives of one block on several devices, counted in the compiled program, beside the ideal.

    python -m benchmarks.collectives [--save]

Needs JAX alone: 8 virtual devices of one CPU show which collectives a step has, never its speed.
The ideal is Megatron's for the model axis (Shoeybi et al. 2019, section 3): one all-reduce per
sub-layer in the forward pass and one in the backward pass. For the data axis it is one all-reduce
of all gradients. For split weights it is, per matrix, one all-gather in the forward pass, and one
all-gather and one reduce-scatter in the backward pass (FSDP; Zhao et al. 2023).
"""

from __future__ import annotations

import argparse
import os
import re
from collections import Counter
from typing import Any

os.environ["KERAS_BACKEND"] = "jax"
os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
)

import jax
import keras
import numpy as np

from benchmarks import contest
from keras_transformer.distribution import distribute
from keras_transformer.layers import DecoderBlock, EncoderBlock

KINDS = ("all-reduce", "all-gather", "reduce-scatter", "collective-permute", "all-to-all")
LAYOUTS = {
    "data 8": dict(data=8),
    "model 2": dict(data=1, model=2),
    "model 4": dict(data=1, model=4),
    "data 4 x model 2": dict(data=4, model=2),
    "data 8, split weights": dict(data=8, shard_weights=True),
}
BLOCKS = {  # class, options, sub-layers
    "encoder": (EncoderBlock, dict(), 2),
    "encoder, grouped heads": (EncoderBlock, dict(num_kv_heads=4), 2),
    "decoder-only, grouped heads": (DecoderBlock, dict(cross_attention=False, num_kv_heads=4), 2),
    "decoder": (DecoderBlock, dict(), 3),
}
ROWS, LENGTH, WIDTH = 16, 12, 32
NOTES = (
    "XLA joins collectives that are ready at once: all gradients over the data axis, and one of "
    "the two that cross-attention has backward.",
    "On a CPU, XLA has no pass that makes a reduce-scatter of an all-reduce and a slice: gradients "
    "of split weights take one all-reduce. It keeps gathered weights for the backward pass.",
)


def count(program: str) -> Counter[str]:
    """Return the number of collectives of each kind in a compiled program (HLO text)."""
    return Counter(re.findall(rf" ({'|'.join(KINDS)})(?:-start)?\(", program))


def measure(layout: dict[str, Any], block: str) -> tuple[Counter[str], Counter[str]]:
    """Return the collectives of one block: of its forward pass, and of forward and backward.

    Args:
        layout: Arguments of `distribute`.
        block: One of `BLOCKS`.
    """
    keras.distribution.set_distribution(None)
    distribute(**layout)
    kind, options, _ = BLOCKS[block]
    layer = kind(8, 4 * WIDTH, dropout=0.0, name="block_0", **options)
    x = np.random.default_rng(0).standard_normal((ROWS, LENGTH, WIDTH)).astype("float32")
    data = keras.distribution.distribution().get_data_layout(x.shape).backend_layout
    inputs = {"x": jax.device_put(x, data)}
    if options.get("cross_attention", kind is DecoderBlock):
        inputs["memory"] = inputs["x"]
    layer.build(*[x.shape] * len(inputs))
    weights = layer.trainable_variables
    values = [weight.value for weight in weights]

    def forward(values, inputs):
        with keras.StatelessScope(state_mapping=list(zip(weights, values, strict=True))):
            return keras.tree.flatten(layer(**inputs))[0]

    def forward_and_backward(values, inputs, gradient):
        output, backward = jax.vjp(forward, values, inputs)
        return output, *backward(gradient)

    # Each gradient has the layout of its weight or input.
    laid_out = data, [value.sharding for value in values], dict.fromkeys(inputs, data)
    programs = [
        jax.jit(forward, out_shardings=data).lower(values, inputs),
        jax.jit(forward_and_backward, out_shardings=laid_out).lower(values, inputs, inputs["x"]),
    ]
    first, second = (count(program.compile().as_text()) for program in programs)
    return first, second


def ideal(layout: dict[str, Any], block: str) -> tuple[Counter[str], Counter[str]]:
    """Return the collectives that the papers' methods need, in the form of `measure`."""
    parts = BLOCKS[block][2]
    tensor = parts if layout.get("model", 1) > 1 else 0
    is_split, is_parallel = layout.get("shard_weights", False), layout["data"] > 1
    # Two matrices per sub-layer. Cross-attention has one more, because its query is separate.
    matrices = 2 * parts + (parts == 3) if is_split else 0
    forward = {"all-reduce": tensor, "all-gather": matrices}
    # In the backward pass, cross-attention has one for its queries and one for the memory.
    reduces = 2 * tensor + (tensor == 3) + is_parallel
    backward = {"all-reduce": reduces, "all-gather": matrices, "reduce-scatter": matrices}
    return Counter(forward), Counter(backward)


def main() -> None:
    """Compile each block in each layout and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--save", action="store_true", help="write the table to results/")
    options = parser.parse_args()
    rows = []
    for axis, layout in LAYOUTS.items():
        for block in BLOCKS:
            counted, best = measure(layout, block), ideal(layout, block)
            for step, actual, least in zip(("forward", "and backward"), counted, best, strict=True):
                cells = [f"{actual[kind]} ({least[kind]})" for kind in KINDS]
                rows.append([axis, block, step, *cells])
    header = ["axis", "block", "step", *KINDS]
    parts = [contest.table(header, rows), *NOTES]
    contest.report("collectives", "Collectives of one block: counted (ideal)", parts, options.save)


if __name__ == "__main__":
    main()
