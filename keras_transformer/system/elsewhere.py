"""Programs of this package that export a model in a process of their own, with another backend."""

from __future__ import annotations

import json
import os
import subprocess
import sys

INVALID = 65  # exit status of the program for invalid input


def run_elsewhere(module: str, task: dict, backend: str) -> None:
    """Run a module of this package in a new process, with a given Keras backend and without GPUs.

    Args:
        module: The module, which gets `task` as JSON in its first command-line argument.
        task: Arguments of the module, plain values; errors name its "folder".
        backend: The Keras backend of the process.

    Raises:
        ValueError: If the process ends with status `INVALID`; the message is its output.
        RuntimeError: If it ends with another status than 0; the message has the end of its stderr.
    """
    environment = {
        **os.environ,
        "KERAS_BACKEND": backend,
        "PYTHONPATH": os.pathsep.join(sys.path),
        # Tracing needs no GPU, and the parent process may hold the GPU's memory.
        "CUDA_VISIBLE_DEVICES": "-1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    process = subprocess.run(
        [sys.executable, "-m", module, json.dumps(task)],
        env=environment,
        capture_output=True,
        text=True,
        errors="replace",
    )
    if process.returncode == INVALID:
        raise ValueError(f"cannot export {task['folder']}: {process.stdout.strip()}")
    if process.returncode:
        raise RuntimeError(
            f"the export of {task['folder']} failed with status {process.returncode}:\n"
            f"{process.stderr[-2000:].strip()}"
        )
