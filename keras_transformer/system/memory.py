"""Settings of glibc's allocator, so that a process reuses the memory that it frees.

This module imports only the standard library.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys

# Options of `mallopt`, from malloc.h.
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD, _M_MMAP_MAX, _M_ARENA_MAX = -1, -2, -3, -4, -8


def reuse_memory(of_any_size: bool = False) -> None:
    """Let the process keep freed main memory instead of returning it to the system.

    Every training step allocates the same large buffers. Fresh memory from the system costs a page
    fault every 4 KiB and is cleared first, which takes up to a third of a step. Does nothing
    without glibc.

    Args:
        of_any_size: Whether buffers above 32 MiB are kept, too. XLA allocates a step's memory as
            one buffer, so JAX gains most; but memory that was needed only once is kept forever.
            False: for libraries; True: for programs, before they start threads.
    """
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL("libc.so.6").mallopt
        mallopt(_M_ARENA_MAX, 1)  # one arena, which the threads of backward passes share
        mallopt(_M_MMAP_THRESHOLD, 32 << 20)  # glibc's maximum
        mallopt(_M_TRIM_THRESHOLD, -1)
        mallopt(_M_TOP_PAD, 64 << 20)
        if of_any_size:
            mallopt(_M_MMAP_MAX, 0)


def return_memory() -> None:
    """Return freed memory to the system, as after loading a model. Does nothing without glibc."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL("libc.so.6").malloc_trim(0)
