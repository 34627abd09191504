"""Tables of what training costs: sizes, memory, bytes between devices, the paper's runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from benchmarks.contest import table
from benchmarks.cost import assumptions as given
from benchmarks.cost import counting
from benchmarks.cost.estimates import (
    break_even,
    compute_seconds,
    lengths,
    port_rate,
    ring_rate,
    step_seconds,
)
from benchmarks.cost.numbers import number, share

COUNTS = given.COUNTS
BY_PORT = ("pipeline", "context", "expert")  # axes on which a device sends to one or few others


def devices() -> str:
    """The data sheets."""
    header = ["", "TFLOP/s", "GB", "GB/s memory", "GB/s link", "devices so linked", "GB/s network"]
    rows = []
    for name, x in given.DEVICES.items():
        rates = [f"{rate / 1e9:,.4g}" for rate in (x.memory, x.memory_rate, x.link)]
        row = [name, f"{x.flops / 1e12:.0f}", *rates, x.island, f"{x.network / 1e9:.3g}", x.source]
        rows.append(row)
    return table([*header, "source"], rows)


def checks() -> str:
    """Table of measured values, ours and published ones, beside those of the formulas."""
    rows = []
    for name, hours in given.HOURS.items():
        per_pair = counting.training_flops(given.MODELS[name], given.SENTENCE, given.SENTENCE)
        flops = per_pair / given.SENTENCE * given.BATCH * given.STEPS[name]
        use = flops / (hours * 3600 * 8 * given.P100)
        rows.append([f"training {name}, 8 P100 (Vaswani et al. 2017)", share(use)])
    text, peak = given.LLAMA_TEXT, given.DEVICES["A100"].flops
    per_token = counting.training_flops(given.LLAMA_13B, 0, text) / text
    use = per_token * given.LLAMA_13B_TOKENS / (given.LLAMA_13B_HOURS * 3600 * peak)
    rows.append(["training LLaMA 13B, A100 (Touvron et al. 2023, Table 15)", share(use)])
    per_token = counting.training_flops(given.LLAMA_65B, 0, text) / text
    use = per_token * given.LLAMA_65B_RATE / peak
    rows.append(["training LLaMA 65B, 2,048 A100 (the same, section 2.4)", share(use)])
    rows += [[f"{name} (here)", share(use)] for name, use in given.MEASURED.items()]
    return table(["", "of peak FLOP/s"], rows)


def step_memory() -> str:
    """The memory of one measured step beside the formulas."""
    size = dataclasses.replace(given.BASE, vocab_size=given.STEP_VOCABULARY)
    width, length = counting.FLOAT, given.STEP_LENGTH
    state = counting.state_bytes(size) * 3 / 4  # the weights were there before
    blocks = counting.activation_bytes(size, length, length, width=width)
    kept = given.STEP_ROWS * (blocks + counting.logit_bytes(size, length, width))
    cells = [state, kept, state + kept, given.STEP_MEMORY]
    header = ["gradients and Adam", "activations and logits", "sum", "measured"]
    return table(header, [[f"{x / 2**20:,.0f} MiB" for x in cells]])


def models() -> str:
    """Parameters and FLOPs."""
    rows = []
    for name, size in given.MODELS.items():
        source, target = lengths(size)
        train = counting.training_flops(size, source, target) / target
        remat = counting.training_flops(size, source, target, remat=True) / target / train - 1
        row = [name, number(counting.parameters(size) / 1e6, 4), number(train / 1e9), share(remat)]
        search = ""
        if source:
            search = number(counting.search_flops(size, source, target, given.BEAM) / 1e9)
        rows.append([*row, search])
    header = ["", "million parameters", "GFLOP to train on a target token", "with remat more"]
    return table([*header, f"GFLOP to translate a sentence, beam {given.BEAM}"], rows)


def memory() -> str:
    """Bytes per device."""
    rows = []
    for name, size in given.MODELS.items():
        source, target = lengths(size)
        texts = given.TOKENS / target
        state = counting.state_bytes(size)
        cells = [state, *(state / n for n in COUNTS)]
        for remat in (False, True):
            cells.append(texts * counting.activation_bytes(size, source, target, remat))
        cells.append(texts * counting.logit_bytes(size, target))
        rows.append([name, *(number(x / 1e9) for x in cells)])
    header = ["GB", "weights, gradients, Adam", *(f"split over {n}" for n in COUNTS)]
    return table([*header, "activations", "with remat", "logits"], rows)


def axes() -> str:
    """Bytes a step of each axis."""
    size, device = given.NLLB_3300M, given.DEVICES["H100"]
    tokens, layers = given.TOKENS, size.encoder_layers + size.decoder_layers
    compute = compute_seconds(size, device, tokens)
    forms: dict[str, Callable[[int], float]] = {
        "data": lambda n: counting.data_bytes(size, n),
        "data, `shard_weights` (FSDP)": lambda n: counting.sharded_bytes(size, n),
        "`model` (tensor)": lambda n: counting.tensor_bytes(size, tokens * n, tokens * n, n),
        "pipeline": lambda n: counting.pipeline_bytes(size, 2 * tokens * n),
        "context (ring)": lambda n: counting.context_bytes(size, layers, tokens * n, n),
        "expert": lambda n: counting.expert_bytes(
            size, layers // given.EXPERT_EVERY, tokens, given.EXPERTS, n
        ),
    }
    rows = []
    for name, sent in forms.items():
        row = [name]
        for n in COUNTS:
            speed = (port_rate if name.startswith(BY_PORT) else ring_rate)(device, n)
            seconds = sent(n) / speed
            row += [number(sent(n) / 1e9), number(seconds * 1e3, 2), number(seconds / compute, 2)]
        rows.append(row)
    header = ["axis"]
    for n in COUNTS:
        header += [f"GB sent, {n} devices", "ms", "of the matmuls' time"]
    return table(header, rows) + f"\n\nThe matmuls take {number(compute * 1e3)} ms."


def breaks() -> str:
    """Smallest batches of data parallel."""
    rows = []
    for name, device in given.DEVICES.items():
        places = {"one island": given.LINK_USE * device.link}
        if device.island == given.HOST:
            places["many hosts, a port per device"] = ring_rate(device, given.MANY)
            places["many hosts, 100 Gb/s per host"] = given.LINK_USE * given.ETHERNET
        for place, bandwidth in places.items():
            even = [break_even(x, device, bandwidth) for x in (given.BASE, given.NLLB_3300M)]
            row = [name, place, *(number(x, 2) for x in even), number(given.BATCH / even[0], 2)]
            rows.append(row)
    header = ["", "gradients cross", "tokens per device: base", "NLLB 3.3B"]
    return table([*header, "devices for the paper's batch"], rows)


def wmt14() -> str:
    """The paper's training."""
    rows = []
    for name, steps in given.STEPS.items():
        size, tokens = given.MODELS[name], given.BATCH * steps
        per_token = counting.training_flops(size, given.SENTENCE, given.SENTENCE) / given.SENTENCE
        counted = per_token * tokens
        row = [name, f"{steps:,}", number(tokens / 1e9), number(counted)]
        row += [number(given.PUBLISHED_FLOPS[name], 2), number(given.HOURS[name], 2)]
        rows.append(row)
    header = ["", "steps", "billion target tokens", "FLOPs, counted", "FLOPs, Table 2"]
    return table([*header, "hours on 8 P100, section 5.2"], rows)


def wmt14_hours() -> str:
    """The paper's training on other devices."""
    rows = []
    for name, steps in given.STEPS.items():
        size = given.MODELS[name]
        for n, larger in ((COUNTS[0], 1), (COUNTS[1], 1), (COUNTS[1], given.LARGER)):
            tokens = given.BATCH * larger / n
            row = [name, n, f"{given.BATCH * larger:,}", f"{tokens:,.0f}"]
            for device in given.DEVICES.values():
                seconds = step_seconds(size, device, n, tokens)
                idle = max(0.0, 1 - compute_seconds(size, device, tokens) / seconds)
                row.append(f"{number(seconds * steps / larger / 3600, 2)} h, {share(idle)}")
            rows.append(row)
    return table(["", "devices", "batch", "tokens per device", *given.DEVICES], rows)
