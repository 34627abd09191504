"""Training runs that signals, kills and errors end: the same command ends in the same weights."""

import os
import random
import shutil
import signal
import time
from functools import partial

import numpy as np
import pytest
from safetensors.numpy import load_file

from keras_transformer.callbacks import Progress
from keras_transformer.system.files import locked
from keras_transformer.training import translation as module
from keras_transformer.training.translation import train
from keras_transformer.weights.state import latest
from tests.faults.faults import (
    ALL,
    BROKEN,
    COUNTS,
    REFUSED,
    changes_of,
    failing,
    in_child,
    signalled,
    some,
)
from tests.training.made_up import SETTINGS, WORDS

pytestmark = pytest.mark.once("files and signals; that states resume is tested under each backend")
EPOCHS, SECONDS = 2, 300
FURTHER = [f"epochs={EPOCHS}", "checkpoint_every=3", "subword_sampling=0", "model.d_model=16"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Files of a few hundred pairs of made-up words."""
    folder, draw = tmp_path_factory.mktemp("corpus"), random.Random(0)
    for name, count in (("train", 200), ("validation", 10), ("test", 2)):
        texts = [" ".join(draw.choices(WORDS, k=draw.randint(2, 6))) for _ in range(count)]
        (folder / f"{name}.tsv").write_text("".join(f"{x}\t{x.upper()}\n" for x in texts))
    return folder


@pytest.fixture(scope="module")
def run(corpus):
    """`run(folder)`: work that trains into a folder."""

    def into(folder):
        names = ("train", "validation", "test")
        files = {f"{name}_files": [corpus / f"{name}.tsv"] for name in names}
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        train(output=folder, changes=[*SETTINGS, *FURTHER], **files)

    return lambda folder: lambda: into(folder)


@pytest.fixture(scope="module")
def whole(run, tmp_path_factory):
    """The folder of a run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    status, message = in_child(run(folder), SECONDS)
    assert status == 0, message
    return folder


@pytest.fixture
def resumes(run, whole, tmp_path):
    """`resumes(kind, fault)`: a run with a fault, and the same command after it."""

    def check(kind, fault, statuses):
        folder = tmp_path / "run"
        shutil.rmtree(folder, ignore_errors=True)
        status, message = in_child(fault(run(folder)), SECONDS)
        assert status in statuses and status != BROKEN, (status, message)
        assert "\n" not in message
        saved = latest(folder / "checkpoints")
        end, message = in_child(run(folder), SECONDS)
        assert end == 0, message
        path = f"checkpoints/epoch-{EPOCHS:04d}/weights.safetensors"
        ours, theirs = (load_file(x / path) for x in (folder, whole))
        assert ours.keys() == theirs.keys()
        for name in ours:
            np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)
        kept = {x.name for x in whole.iterdir()}
        assert {x.name for x in folder.iterdir()} == kept
        COUNTS[kind, "resumed" if saved else "started over"] += 1
        return status

    return check


@pytest.fixture(scope="module")
def moments(run, tmp_path_factory):
    """Numbers of changes of files in a run; without `ALL`, one in the middle and the last."""
    count = changes_of(run(tmp_path_factory.mktemp("counted") / "run"))
    return some(range(0, count, 5), 3)[0 if ALL else 1 :]


class Disturbed(Progress):
    """The line of progress, and a fault after the second batch of the second epoch."""

    def on_train_batch_end(self, batch, logs=None):
        super().on_train_batch_end(batch, logs)
        if self._epoch == 1 and batch == 1:
            self.disturb()


def test_signals_and_kills_at_changes_of_files(resumes, moments):
    cases = zip(moments, [signal.SIGKILL, signal.SIGTERM, signal.SIGINT] * 1000, strict=False)
    for number, sent in cases:
        expected = -9 if sent == signal.SIGKILL else 128 + sent
        fault = partial(signalled, number=number, sent=sent)
        resumes(f"{sent.name} in a run", fault, (expected, 0))


# tests/training/test_translation.py sends SIGTERM in a step.
@pytest.mark.parametrize("name", ["SIGINT", *["SIGTERM"] * ALL, "MemoryError"])
def test_a_fault_in_a_step_loses_nothing_that_was_saved(name, resumes, monkeypatch):
    def disturb(self):
        if name == "MemoryError":
            raise MemoryError
        os.kill(os.getpid(), getattr(signal, name))

    def disturbed(work):
        def run_it():
            module.Progress = Disturbed
            work()

        return run_it

    monkeypatch.setattr(Disturbed, "disturb", disturb, raising=False)
    expected = REFUSED if name == "MemoryError" else 128 + getattr(signal, name)
    assert resumes(f"{name} in a step", disturbed, (expected,)) == expected


def test_a_full_disk_ends_a_run_that_resumes(resumes, moments):
    for number in moments if ALL else moments[:1]:
        resumes("full disk in a run", partial(failing, number=number), (REFUSED, 0))


def test_the_newest_state_has_the_highest_number_and_not_the_latest_time(whole, tmp_path):
    folder = shutil.copytree(whole / "checkpoints", tmp_path / "checkpoints")
    now = time.time()
    for i, path in enumerate(sorted(folder.iterdir())):
        for x in (path, *path.iterdir()):
            os.utime(x, (now - 86400 * i, now - 86400 * i))
    assert latest(folder).name == f"epoch-{EPOCHS:04d}"
    COUNTS["clock that jumps", "new"] += 1


def test_times_of_a_clock_that_runs_backwards_change_no_weights(resumes):
    def backwards(work):
        def run_it():
            begun, steps = time.time(), iter(range(10**9))
            time.time = lambda: begun - 3600 * next(steps)
            work()

        return run_it

    resumes("clock that jumps", backwards, (0,))


def test_a_second_run_into_one_folder_names_the_first(run, tmp_path):
    folder = tmp_path / "run"
    with locked(folder):
        status, message = in_child(run(folder))
    assert status == REFUSED and f"is in use by another run (process {os.getpid()})" in message
    assert in_child(signalled(lambda: locked(folder).__enter__(), 3))[0] in (0, -9)
    with locked(folder):  # nobody holds the lock of a dead process
        pass
    COUNTS["two processes", "refused"] += 1
