"""Start several processes of one command on this host, and end them together."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

from keras_transformer.config import require_whole
from keras_transformer.system.ports import free_port

_SAVING = 300.0  # seconds from a signal to SIGKILL, in which a run saves its state
_PATIENCE = 30.0  # seconds from the failure of a process until the others are killed
_FORWARDED = (signal.SIGTERM, signal.SIGINT)
# A program that asks Linux to kill it when the launcher ends (PR_SET_PDEATHSIG), and then replaces
# itself by the command.
_TIED = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)
if os.getppid() == int(sys.argv[1]):
    os.execvp(sys.argv[2], sys.argv[2:])
"""


def launch(command: Sequence[str], processes: int) -> int:
    """Run a command in several processes, which `distribute` joins, until all have ended.

    If a process fails, the others get SIGTERM, and are killed after 30 seconds. SIGTERM and Ctrl-C
    are passed on to all processes, which then have five minutes to save their state; a second
    signal kills them. On Linux, they are killed if this process is killed.

    Args:
        command: The program and its arguments.
        processes: Number of processes.

    Returns:
        The exit status: 0, or that of the first process that failed (128 + n after signal n).

    Raises:
        ValueError: If `processes` is below 1.
    """
    require_whole("processes", processes, 1)
    environ = dict(os.environ, KERAS_DISTRIBUTION_NUM_PROCESSES=str(processes))
    environ["KERAS_DISTRIBUTION_JOB_ADDRESSES"] = f"127.0.0.1:{free_port(2)}"
    if sys.platform == "linux":
        command = [sys.executable, "-S", "-c", _TIED, str(os.getpid()), *command]
    started: list[subprocess.Popen] = []
    signals: list[int] = []
    before = {number: signal.getsignal(number) for number in _FORWARDED}
    for number in _FORWARDED:
        signal.signal(number, lambda number, frame: signals.append(number))
    try:
        for index in range(processes):
            variables = {"KERAS_DISTRIBUTION_PROCESS_ID": str(index), "LOCAL_RANK": str(index)}
            # Each process has its own session; otherwise Ctrl-C would reach it twice.
            started.append(
                subprocess.Popen(command, env={**environ, **variables}, start_new_session=True)
            )
        return _watched(started, signals)
    finally:
        for process in started:
            process.kill()
        for number, handler in before.items():
            signal.signal(number, handler)


def _watched(started, signals):
    """Wait until all processes have ended, and pass signals on; return the exit status."""
    failed, deadline, forwarded = 0, math.inf, 0
    while None in (statuses := [process.poll() for process in started]):
        if len(signals) > forwarded:
            _send(started, signal.SIGKILL if forwarded else signals[0])
            forwarded, deadline = len(signals), min(deadline, time.monotonic() + _SAVING)
        ended = [(index, status) for index, status in enumerate(statuses) if status]
        if ended and not failed:
            index, failed = ended[0]
            if not signals:
                print(
                    f"process {index} of {len(started)} ended with status {failed}: "
                    "ending the others",
                    file=sys.stderr,
                )
                _send(started, signal.SIGTERM)
            deadline = min(deadline, time.monotonic() + _PATIENCE)
        if time.monotonic() > deadline:
            _send(started, signal.SIGKILL)
        time.sleep(0.05)
    failed = failed or next(filter(None, statuses), 0)
    return 128 - failed if failed < 0 else failed


def _send(started, number):
    for process in started:
        if process.poll() is None:
            process.send_signal(number)
