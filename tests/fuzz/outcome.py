"""The two outcomes that foreign input may have: it is read, or refused with one clear line."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import hypothesis

from keras_transformer.system.failures import BAD_INPUT, in_one_line

EXAMPLES = int(os.environ.get("KT_FUZZ", "0"))  # of each test; 0: few, the same in each run
SECONDS = 10  # most for one example
MEGABYTES = 400  # most that the process may grow by in one example
SHORT = [hypothesis.Phase.explicit, hypothesis.Phase.generate]
LONGEST = 2000  # most characters of a message

COUNTS: Counter[tuple[str, str]] = Counter()


class StuckError(BaseException):
    """Raised where an example has hung; not an `Exception`, which a reader might catch."""


def fuzz(examples: int = 40, share: int = 1, seconds: float = SECONDS) -> hypothesis.settings:
    """Return the settings of a fuzz test.

    Args:
        examples: Number of examples in a normal run.
        share: Number of tests that share the examples of one kind of reader.
        seconds: Most for one example.
    """
    return hypothesis.settings(
        max_examples=-(-EXAMPLES // share) if EXAMPLES else examples,
        derandomize=not EXAMPLES,
        deadline=timedelta(seconds=seconds),
        # Shrinking can take minutes: a short run shows the example as it was drawn.
        phases=[*hypothesis.Phase] if EXAMPLES else SHORT,
        suppress_health_check=list(hypothesis.HealthCheck),
    )


def outcome(kind: str, read: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call a reader. Return what it read, None if it refused; anything else fails the test.

    Args:
        kind: Name under which the example is counted.
        read: The reader.
        arguments, options: Its arguments.
    """
    before = _peak()
    try:
        with _ended_after(SECONDS):
            found = read(*arguments, **options)
    except BAD_INPUT as error:
        found, told = None, in_one_line(error)
        COUNTS[kind, "refused"] += 1
        assert str(error).strip(), f"{type(error).__name__} without a message"
        assert len(told) <= LONGEST, f"a message of {len(told)} characters: {told:.300}"
    else:
        COUNTS[kind, "read"] += 1
    grown = (_peak() - before) >> 20
    assert grown <= MEGABYTES, f"the process grew by {grown} MB"
    return found


@contextlib.contextmanager
def _ended_after(seconds: float) -> Iterator[None]:
    """Raise `StuckError` in the body after so many seconds, where the system can."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def stop(*_):
        raise StuckError(f"not done after {seconds} s")

    old = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def _peak() -> int:
    """Return the largest size that this process had in memory, in bytes; 0 if unknown."""
    try:
        import resource
    except ImportError:
        return 0
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size if sys.platform == "darwin" else size << 10
