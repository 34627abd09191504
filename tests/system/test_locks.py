"""Locks that a process holds, and that nobody holds after its end."""

import os
import signal
import subprocess
import sys

import pytest

from keras_transformer.system.locks import NoLock, acquired, owned, waiting

HOLD = """
import os, signal, sys
from keras_transformer.system.locks import owned
with owned(sys.argv[1], "x"):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_lock_names_its_process_and_is_gone_at_the_end(tmp_path):
    path = tmp_path / "x.lock"
    message = rf"pairs is in use by another run \(process {os.getpid()}\): wait until it ends"
    with owned(path, "pairs"):
        with pytest.raises(ValueError, match=message), owned(path, "pairs"):
            pass
        assert acquired(path) is None
    assert not path.exists()


def test_the_lock_of_a_killed_process_is_free(tmp_path):
    path = tmp_path / "x.lock"
    done = subprocess.run([sys.executable, "-c", HOLD, str(path)])
    assert done.returncode == -signal.SIGKILL and path.exists()
    with owned(path, "pairs"):
        assert path.read_text() == str(os.getpid())
    with waiting(path):
        assert acquired(path) is None
    assert not isinstance(acquired(path), NoLock | None)
