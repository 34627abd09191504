"""Estimate what training and translating cost on many devices: the tables of docs/scale.md.

    python -m benchmarks.cost [--page docs/scale.md]

Arithmetic only: nothing is run, no backend is loaded. Rates are in units a second, memory in bytes,
bandwidths in bytes a second in one direction. A multiplication and an addition are two FLOPs; only
matmuls are counted, without padding.
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.contest import table
from benchmarks.machine import PEAKS


@dataclass(frozen=True)
class Size:
    """Sizes of a model: encoder-decoder, or decoder-only if it has no encoder layers."""

    vocab_size: int
    d_model: int
    d_ff: int
    decoder_layers: int
    encoder_layers: int = 0
    gated: bool = False
    bias: bool = True
    final_norms: bool = False
    tied: bool = True


@dataclass(frozen=True)
class Accelerator:
    """A device and its connections to others.

    Args:
        flops: Peak FLOP/s in bfloat16.
        memory, memory_rate: Size of the memory, and its bandwidth.
        link: Bandwidth of a device to others of its island: a host with NVLink, or a TPU pod.
        island: Number of devices of an island.
        network: Bandwidth of a device to other islands.
    """

    flops: float
    memory: float
    memory_rate: float
    link: float
    island: int
    network: float


MODELS = {
    # Vaswani et al. 2017, Table 3 and section 5.1 (37,000 tokens).
    "base": Size(37_000, 512, 2048, 6, 6),
    "big": Size(37_000, 1024, 4096, 6, 6),
    # `config.json` of facebook/nllb-200-distilled-600M, nllb-200-1.3B and nllb-200-3.3B.
    "NLLB 600M": Size(256_206, 1024, 4096, 12, 12, final_norms=True),
    "NLLB 1.3B": Size(256_206, 1024, 8192, 24, 24, final_norms=True),
    "NLLB 3.3B": Size(256_206, 2048, 8192, 24, 24, final_norms=True),
    # Touvron et al. 2023, Table 2.
    "LLaMA 7B": Size(32_000, 4096, 11_008, 32, 0, True, False, True, False),
}
DEVICES = {
    # Data sheets: NVIDIA H100 SXM and DGX H100, Google Cloud's TPU v5e.
    "H100": Accelerator(PEAKS["H100"], 80e9, 3.35e12, 450e9, 8, 50e9),
    "TPU v5e": Accelerator(197e12, 16e9, 819e9, 200e9, 256, 3.125e9),
}
COUNTS = (8, 256)  # devices of the tables
FLOAT, HALF = 4, 2  # bytes of float32 and bfloat16

# Assumptions.
TRAINING_USE, SEARCH_USE = 0.4, 0.2  # shares of peak FLOP/s
MEMORY_USE, LINK_USE = 0.6, 0.7  # shares of bandwidths
LEAST_STEP = 5e-3  # seconds: a thousand kernels one after another, however short
SENTENCE, TEXT = 30, 1024  # tokens of a sentence (on each side), and of a language model's text
ROWS, BEAM = 128, 4  # sentences of a batch in a search, and its beam size

# Vaswani et al. 2017, section 5: tokens of each side a step, and steps.
BATCH, STEPS = 25_000, {"base": 100_000, "big": 300_000}
LARGER = 16  # factor by which Ott et al. 2018 enlarged the batch


def parameters(size: Size) -> int:
    """Return the number of trained parameters."""
    norm = size.d_model * (1 + size.bias)
    attention = 4 * size.d_model * (size.d_model + size.bias)
    feed_forward = (2 + size.gated) * size.d_model * size.d_ff
    feed_forward += size.bias * ((1 + size.gated) * size.d_ff + size.d_model)
    encoder = size.encoder_layers * (attention + feed_forward + 2 * norm)
    attentions, stacks = (2, 2) if size.encoder_layers else (1, 1)
    decoder = size.decoder_layers * (attentions * (attention + norm) + feed_forward + norm)
    tables = (2 - size.tied) * size.vocab_size * size.d_model
    return encoder + decoder + stacks * size.final_norms * norm + tables


def block_flops(size: Size, source: int, target: int) -> int:
    """Return the FLOPs of all blocks' forward pass on one pair; causal attention in full."""
    dense = 8 * size.d_model**2 + 2 * (2 + size.gated) * size.d_model * size.d_ff
    flops = size.encoder_layers * source * (dense + 4 * size.d_model * source)
    flops += size.decoder_layers * target * (dense + 4 * size.d_model * target)
    if size.encoder_layers:
        queries = 4 * size.d_model**2 + 4 * size.d_model * source
        flops += size.decoder_layers * (target * queries + source * 4 * size.d_model**2)
    return flops


def training_flops(size: Size, source: int, target: int) -> int:
    """Return the FLOPs of a training step on one pair: forward, and twice as many backward."""
    return 3 * (block_flops(size, source, target) + 2 * target * size.d_model * size.vocab_size)


def search_flops(size: Size, source: int, target: int, beam: int) -> int:
    """Return the FLOPs of a beam search: each token attends to the source and to its own past."""
    dense = 12 * size.d_model**2 + 2 * (2 + size.gated) * size.d_model * size.d_ff
    scores = 4 * size.d_model * source + 2 * size.d_model * target  # half the past
    step = size.decoder_layers * (dense + scores) + 2 * size.d_model * size.vocab_size
    return block_flops(size, source, 0) + target * beam * step


def search_memory(size: Size, beam: int) -> int:
    """Return the bytes of a search: weights, caches of keys and values, logits in float32."""
    cached = 2 * size.d_model * size.decoder_layers * SENTENCE * (1 + beam)
    return HALF * (parameters(size) + ROWS * cached) + FLOAT * ROWS * beam * size.vocab_size


def gradient_bytes(size: Size, devices: int) -> float:
    """Return what each device sends in a step: a ring's all-reduce of float32 gradients."""
    return 2 * FLOAT * parameters(size) * (devices - 1) / devices


def compute_seconds(size: Size, device: Accelerator, tokens: float) -> float:
    """Return the seconds of the matmuls of a training step on so many target tokens."""
    source, target = (SENTENCE, SENTENCE) if size.encoder_layers else (0, TEXT)
    per_token = training_flops(size, source, target) / target
    return per_token * tokens / (TRAINING_USE * device.flops)


def ring_rate(device: Accelerator, devices: int) -> float:
    """Return the bytes a second of a ring; beyond an island, rings share all of its ports."""
    ports = math.inf if devices <= device.island else device.island * device.network
    return LINK_USE * min(device.link, ports)


def step_seconds(size: Size, device: Accelerator, devices: int, tokens: float) -> float:
    """Return the seconds of a data parallel step: the all-reduce overlaps the backward pass."""
    compute = compute_seconds(size, device, tokens)
    moved = gradient_bytes(size, devices) / ring_rate(device, devices)
    return max(LEAST_STEP, compute / 3 + max(2 / 3 * compute, moved))


def sentences_per_second(size: Size, device: Accelerator, beam: int) -> float:
    """Return how many sentences a device translates: limited by arithmetic or by memory."""
    weights = 8 * size.d_model**2 + (2 + size.gated) * size.d_model * size.d_ff
    weights = size.decoder_layers * weights + size.vocab_size * size.d_model
    cached = 2 * size.d_model * size.decoder_layers * (SENTENCE + beam * SENTENCE // 2)
    moved = HALF * SENTENCE * (weights // ROWS + cached)
    arithmetic = search_flops(size, SENTENCE, SENTENCE, beam) / (SEARCH_USE * device.flops)
    return 1 / max(arithmetic, moved / (MEMORY_USE * device.memory_rate))


def number(value: float, digits: int = 3) -> str:
    """Return a number rounded to so many significant digits."""
    rounded = float(f"{value:.{digits - 1}e}")
    places = digits - 1 - math.floor(math.log10(abs(rounded))) if rounded else 0
    return f"{rounded:,.{max(0, places)}f}"


def share(value: float) -> str:
    """Return a percentage."""
    return f"{number(100 * round(value, 4), 2)} %"


def models() -> str:
    """Return parameters, FLOPs and memory."""
    rows = []
    for name, size in MODELS.items():
        source, target = (SENTENCE, SENTENCE) if size.encoder_layers else (0, TEXT)
        search = number(search_flops(size, source, target, BEAM) / 1e9) if source else ""
        train = number(training_flops(size, source, target) / target / 1e9)
        state = number(4 * FLOAT * parameters(size) / 1e9)
        rows.append([name, number(parameters(size) / 1e6, 4), train, search, state])
    header = ["", "million parameters", "GFLOP to train on a target token"]
    header += [f"GFLOP to translate a sentence, beam {BEAM}", "GB of weights, gradients, Adam"]
    return table(header, rows)


def wmt14() -> str:
    """Return the hours of the paper's training on other devices."""
    rows = []
    for name, steps in STEPS.items():
        for count, larger in ((COUNTS[0], 1), (COUNTS[1], 1), (COUNTS[1], LARGER)):
            tokens = BATCH * larger / count
            row = [name, count, f"{BATCH * larger:,}", f"{tokens:,.0f}"]
            for device in DEVICES.values():
                seconds = step_seconds(MODELS[name], device, count, tokens)
                idle = max(0.0, 1 - compute_seconds(MODELS[name], device, tokens) / seconds)
                row.append(f"{number(seconds * steps / larger / 3600, 2)} h, {share(idle)}")
            rows.append(row)
    return table(["", "devices", "batch", "tokens per device", *DEVICES], rows)


def billion() -> str:
    """Return the time of a billion sentences."""
    rows = []
    for name in ("NLLB 600M", "NLLB 1.3B", "NLLB 3.3B"):
        row = [name, number(search_memory(MODELS[name], BEAM) / 1e9, 2)]
        for device in DEVICES.values():
            speed = sentences_per_second(MODELS[name], device, BEAM)
            row.append(" / ".join(number(1e9 / speed / n / 3600, 2) for n in COUNTS))
        rows.append(row)
    return table(["", "GB", *DEVICES], rows)


TABLES: dict[str, Callable[[], str]] = {make.__name__: make for make in (models, wmt14, billion)}


def filled(page: str) -> str:
    """Return the page with a new table after each mark."""
    mark = re.compile(r"(<!-- table: (\w+) -->\n\n).*?(\n\n<!-- end -->)", re.DOTALL)
    return mark.sub(lambda match: match[1] + TABLES[match[2]]() + match[3], page)


def main() -> None:
    """Print the tables, or write them into the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--page", type=Path, help="write the tables into this page")
    page = parser.parse_args().page
    if page:
        page.write_text(filled(page.read_text("utf-8")), "utf-8")
    else:
        print("\n\n".join(f"## {name}\n\n{make()}" for name, make in TABLES.items()))


if __name__ == "__main__":
    main()
