"""Faults of files in child processes: at the n-th change of the file system, or at the n-th byte.

An audit hook sees all changes that Python makes. Writes of other libraries, such as HDF5 and
safetensors, end at a limit of the size of files, which the operating system enforces.
"""

import errno
import os
import signal
import sys
import traceback
from collections import Counter

from keras_transformer.system.failures import BAD_INPUT, in_one_line

ALL = os.environ.get("KT_FAULTS") == "all"
COUNTS: Counter[tuple[str, str]] = Counter()  # by kind of fault and outcome
REFUSED, BROKEN = 2, 3  # exit status of a child: an error of one line, any other error
_CHANGES = {"os.rename", "os.mkdir"}
_REMOVALS = {"os.remove", "os.rmdir", "os.truncate"}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def some(items, few):
    """All items if `KT_FAULTS=all`, else a few at equal distances, with the first and the last."""
    items = list(items)
    if ALL or len(items) <= few:
        return items
    return [items[round(i * (len(items) - 1) / (few - 1))] for i in range(few)]


def in_child(work, seconds=60):
    """Do work in a child process; return its exit status (negative: the signal) and its message."""
    reader, writer = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        status, message = 0, ""
        try:
            signal.alarm(seconds)
            message = str(work() or "")
        except BAD_INPUT as error:
            status, message = REFUSED, in_one_line(error)
        except SystemExit as error:
            status = error.code or 0
        except BaseException:
            status, message = BROKEN, traceback.format_exc()
        finally:
            os.write(writer, message.encode()[-60_000:])
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        message = file.read().decode("utf-8", "replace")
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), message


def _on_change(act):
    """Call `act(path, is_removal)` before each change of the file system."""

    def hook(event, arguments):
        if event == "open":
            path, _, flags = arguments
            if flags & _WRITES and not str(path).startswith(("/dev", "/proc")):
                act(path, False)
        elif event in _CHANGES or event in _REMOVALS:
            act(arguments[0], event in _REMOVALS)

    sys.addaudithook(hook)


def changes_of(work):
    """Return the number of changes that some work makes."""

    def counted():
        found = []
        _on_change(lambda *change: found.append(change))
        work()
        return len(found)

    status, message = in_child(counted)
    assert status == 0, message
    return int(message)


def signalled(work, number, sent=signal.SIGKILL):
    """Return work that sends a signal to its process before a change, counted from 0."""

    def interrupted():
        done = 0

        def act(*_):
            nonlocal done
            done += 1
            if done == number + 1:
                os.kill(os.getpid(), sent)

        _on_change(act)
        return work()

    return interrupted


def failing(work, number, code=errno.ENOSPC):
    """Return work whose changes fail from one on; files can still be removed, as on a full disk."""

    def failing_work():
        done = 0

        def act(path, is_removal):
            nonlocal done
            done += 1
            if done > number and not is_removal:
                raise OSError(code, os.strerror(code), str(path))

        _on_change(act)
        return work()

    return failing_work


def limited(work, size, kill):
    """Return work whose files cannot grow beyond a size: a kill at that byte, or an error."""

    def limited_work():
        import resource  # which Windows lacks

        signal.signal(signal.SIGXFSZ, signal.SIG_DFL if kill else signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        return work()

    return limited_work
