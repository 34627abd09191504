"""The machine that a benchmark runs on, and the folder of its tables."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
# Peak FLOP/s in bfloat16, without sparsity, by a part of the GPU's name: NVIDIA's data sheets.
PEAKS = {
    "H200": 989e12, "H100 PCIe": 756e12, "H100": 989e12, "A100": 312e12, "L40S": 362e12,
    "L4": 121e12,
}  # fmt: skip


def processor() -> tuple[str, list[str]]:
    """Return the processor's name and its vector and matrix extensions among those listed."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    name = next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), "unknown")
    flags = next((x.split() for x in lines if x.startswith("flags")), [])
    units = ("avx512f", "avx512_bf16", "avx512_vnni", "amx_bf16", "amx_int8")
    return name, [unit for unit in units if unit in flags]


def gpu() -> str:
    """Return the names of the machine's NVIDIA GPUs, a line each; empty without any."""
    try:
        query = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
        result = subprocess.run(query, capture_output=True, text=True)
    except OSError:
        return ""
    return "" if result.returncode else result.stdout.strip()


def peak() -> float | None:
    """Return the peak FLOP/s of the first GPU in bfloat16; None if it is not known."""
    name = gpu().split("\n")[0]
    return next((flops for part, flops in PEAKS.items() if part in name), None)


def count_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def count_threads() -> int:
    """Return how many threads a contestant may use: OMP_NUM_THREADS, or one per core."""
    return int(os.environ.get("OMP_NUM_THREADS") or count_cores())


def _cores(separator) -> str:
    count = count_cores()
    return f"{count}{separator}core{'s' if count != 1 else ''}"


def description() -> str:
    """Return one line that describes this machine."""
    name, units = processor()
    parts = [f"{_cores(' ')} of {name}", *units, *gpu().splitlines()]
    return f"{', '.join(parts)}; Python {platform.python_version()}"


def results_folder() -> Path:
    """Make and return the folder of this kind of machine, such as results/2-cores-intel-amx.

    With a GPU the folder has the GPU's name, such as results/nvidia-h200.
    """
    if name := gpu().split("\n")[0]:
        kind = "-".join(name.lower().split())
    else:
        name, units = processor()
        amx = "-amx" if "amx_bf16" in units else ""
        kind = f"{_cores('-')}-{name.lower().split('(')[0].split()[0]}{amx}"
    folder = RESULTS / kind
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def versions(*packages: str) -> str:
    """Return the installed packages among these, with their versions."""
    from importlib.metadata import PackageNotFoundError, version

    installed = []
    for package in packages:
        try:
            installed.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(installed)
