"""The processor of this machine: instruction sets, maker and number of threads."""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
import sys
from pathlib import Path

VARIABLE = "KERAS_TRANSFORMER_PROCESSOR"
CPUINFO = Path("/proc/cpuinfo")
# Instruction sets of ARM processors: macOS's name, and Linux's name.
_OF_MACOS = {"DotProd": "asimddp", "I8MM": "i8mm", "BF16": "bf16", "FP16": "asimdhp"}


def processor_features() -> frozenset[str]:
    """Return the names that Linux has for the processor's instruction sets, such as "avx2".

    They come from `/proc/cpuinfo`, or on macOS from `sysctl`; on other systems the set is empty.
    The environment variable KERAS_TRANSFORMER_PROCESSOR, names separated by spaces, replaces them:
    for a virtual machine that hides instruction sets, and to imitate another machine.
    """
    named = os.environ.get(VARIABLE)
    if named is not None:
        return frozenset(named.lower().split())
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        return _of_macos() if sys.platform == "darwin" else features_in(CPUINFO.read_text())
    return frozenset()


def features_in(cpuinfo: str) -> frozenset[str]:
    """Return the instruction sets that the text of `/proc/cpuinfo` names."""
    for line in cpuinfo.splitlines():
        name, _, value = line.partition(":")
        if name.strip().lower() in ("flags", "features"):  # of x86 and of ARM
            return frozenset(value.split())
    return frozenset()


def num_threads() -> int:
    """Return the number of threads to compute with: OMP_NUM_THREADS, else this process's cores."""
    threads = os.environ.get("OMP_NUM_THREADS", "")
    if threads.isdecimal() and int(threads):
        return int(threads)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def is_amd() -> bool:
    """Return whether AMD made the processor, by `/proc/cpuinfo`; False without that file."""
    with contextlib.suppress(OSError):
        return "AuthenticAMD" in CPUINFO.read_text()
    return False


def _of_macos():
    """Return the instruction sets of an ARM processor on macOS, by the names that Linux has."""
    if platform.machine() != "arm64":
        return frozenset()
    lines = subprocess.run(
        ["sysctl", "hw.optional.arm"], capture_output=True, text=True, timeout=10, check=True
    ).stdout.splitlines()
    return frozenset(
        feature for name, feature in _OF_MACOS.items() if f"hw.optional.arm.FEAT_{name}: 1" in lines
    )
