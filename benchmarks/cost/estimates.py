"""Estimates of time: formulas of `counting` on the numbers of `assumptions`."""

from __future__ import annotations

import math

from benchmarks.cost import assumptions as given
from benchmarks.cost import counting
from benchmarks.cost.counting import Size


def lengths(size: Size) -> tuple[int, int]:
    """Return the assumed tokens of a source and a target."""
    return (given.SENTENCE, given.SENTENCE) if size.encoder_layers else (0, given.TEXT)


def ring_rate(device: given.Accelerator, devices: int) -> float:
    """Return the bytes a second of a ring; beyond an island, rings share all of its ports."""
    ports = math.inf if devices <= device.island else device.island * device.network
    return given.LINK_USE * min(device.link, ports)


def port_rate(device: given.Accelerator, devices: int) -> float:
    """Return the bytes a second that a device sends by itself, beyond its island by its port."""
    return given.LINK_USE * (device.link if devices <= device.island else device.network)


def compute_seconds(size: Size, device: given.Accelerator, tokens: float) -> float:
    """Return the seconds of the matmuls of a training step on so many target tokens."""
    source, target = lengths(size)
    flops = counting.training_flops(size, source, target) / target * tokens
    return flops / (given.TRAINING_USE * device.flops)


def step_seconds(size: Size, device: given.Accelerator, devices: int, tokens: float) -> float:
    """Return the seconds of a data parallel step: the all-reduce overlaps the backward pass."""
    compute = compute_seconds(size, device, tokens)
    moved = counting.data_bytes(size, devices) / ring_rate(device, devices)
    return max(given.LEAST_STEP, compute / 3 + max(2 / 3 * compute, moved))


def sentences_per_second(size: Size, device: given.Accelerator, beam: int) -> float:
    """Return how many sentences a device translates: limited by arithmetic or by memory."""
    flops = counting.search_flops(size, given.SENTENCE, given.SENTENCE, beam)
    moved = counting.search_bytes(size, given.SENTENCE, given.SENTENCE, beam, given.ROWS)
    arithmetic = flops / (given.SEARCH_USE * device.flops)
    return 1 / max(arithmetic, moved / (given.MEMORY_USE * device.memory_rate))


def break_even(size: Size, device: given.Accelerator, bandwidth: float) -> float:
    """Return the tokens per device at which the all-reduce takes as long as the matmuls."""
    moved = counting.data_bytes(size, given.MANY) / bandwidth
    return moved / compute_seconds(size, device, 1)


def start_up(size: Size) -> float:
    """Return the seconds from the start of a process to its first translation."""
    weights = counting.FLOAT * counting.parameters(size)
    return given.PROCESS_SECONDS + weights * given.IMPORT_SECONDS + given.FIRST_SECONDS


def lost(between_failures: float) -> tuple[float, float, float]:
    """Return for LLaMA 7B the seconds to write a checkpoint, between them, and the share lost."""
    write = 3 * counting.FLOAT * counting.parameters(given.LLAMA_7B) / given.STORE
    interval = counting.best_interval(write, between_failures)
    return write, interval, counting.lost_share(interval, write, given.RESTART, between_failures)


def tensor_share(size: Size, device: given.Accelerator, devices: int) -> float:
    """Return the time of tensor parallel's all-reduces over that of the matmuls."""
    tokens = given.TOKENS * devices
    moved = counting.tensor_bytes(size, tokens, tokens, devices)
    return moved / ring_rate(device, devices) / compute_seconds(size, device, given.TOKENS)
