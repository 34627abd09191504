"""The command that starts several processes of another command."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def launch(
    command: Annotated[
        list[str],
        typer.Argument(
            metavar="-- COMMAND...",
            help="A command of keras-transformer with its options, or python and a script.",
        ),
    ],
    processes: Annotated[int, typer.Option(min=1, help="Number of processes on this host.")],
) -> None:
    """Run a command in several processes on this host, to train on one GPU each.

    Each process has the variables KERAS_DISTRIBUTION_PROCESS_ID, KERAS_DISTRIBUTION_NUM_PROCESSES
    and KERAS_DISTRIBUTION_JOB_ADDRESSES. On several hosts, torchrun, Ray Train, Slurm or Kubernetes
    start the processes instead, with their own variables.

    \b
    Examples:
        keras-transformer launch --processes 4 -- train --recipe base --output saved_models/base
        keras-transformer launch --processes 2 -- python my_script.py
    """
    from keras_transformer.distribution.launcher import launch as run

    is_python = command[0] in ("python", "python3")
    program = command[1:] if is_python else ["-m", "keras_transformer.cli", *command]
    raise typer.Exit(run([sys.executable, *program], processes))
