"""Checkpoints of the full training state, from which a run resumes."""

from __future__ import annotations

import csv
import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_transformer.backend import random_state, set_random_state
from keras_transformer.backend.private import build_metrics
from keras_transformer.config import require
from keras_transformer.distribution.processes import current
from keras_transformer.system.files import replacing
from keras_transformer.weights.state import (
    STATE,
    UNFINISHED,
    epoch_paths,
    latest,
    read_state,
    restore_metrics,
    restore_state,
    write_state,
)

LOG = "log.csv"  # in a run's folder
# Entries of `run` with the number of steps, which the schedule of the learning rate depends on.
_LENGTHS = {"steps", "total_steps"}
_ASKED = 16  # batches after which several processes agree again whether to stop


class TrainingStopped(Exception):  # noqa: N818 - not an error
    """Raised when `fit` stops because of `Checkpoints.stopping`; the state is saved."""


class Checkpoints(keras.callbacks.Callback):
    """A callback that saves the full training state after each epoch, resumes, and stops early.

    A checkpoint is a folder such as `epoch-0007` with weights, optimizer, random states and the
    history of metrics. It is written under another name first, so a kill leaves only complete
    checkpoints. If the data depend on the step alone, a run that was killed or stopped and then
    resumed on the same machine ends with the weights of an uninterrupted one: on a CPU bit for bit.

    ```python
    checkpoints = Checkpoints("run/checkpoints", monitor="val_loss", patience=5)
    checkpoints.fit(model, batches.dataset, steps_per_epoch=len(batches), epochs=40)
    ```

    If the run never stops inside an epoch, the model's own `fit(initial_epoch=checkpoints.epoch,
    callbacks=[checkpoints])` does the same.

    Args:
        folder: Folder of the checkpoints, existing or not.
        keep: Number of the most recent epochs whose checkpoints are kept, at least 1.
        monitor: Name of the metric, in the logs of the epochs, for early stopping and `best`.
        patience: Number of epochs without a better `monitor` after which training stops; None:
            never.
        mode: Whether a higher ("max") or a lower ("min") value is better.
        run: Plain values that identify the run; the checkpoints of another run are rejected.
        defaults: Values of entries of `run` that are missing in checkpoints of older versions.
        every: Batches between two saves inside an epoch, from which a killed run resumes; None:
            the state is saved only at the ends of epochs and where a run is stopped.
        log: CSV file to write the history to, a row for each epoch; it is rewritten with each
            checkpoint. None: no such file.

    Attributes:
        history: Logs of each finished epoch.
        stopping: Set it to True, for example in a signal handler, to end `fit` with
            `TrainingStopped` after the current batch. The state inside the epoch is saved in
            the checkpoint `unfinished`. After the last batch of an epoch, `fit` ends at the end of
            the epoch. Several processes all end after the same batch, at most 16 batches later.

    Raises:
        ValueError: If an argument is out of range, or the checkpoints in the folder are broken,
            belong to another run or, with `patience`, lack the `monitor`.
    """

    def __init__(
        self,
        folder: str | os.PathLike,
        *,
        keep: int = 5,
        monitor: str = "val_loss",
        patience: int | None = None,
        mode: str = "min",
        run: dict[str, Any] | None = None,
        defaults: dict[str, Any] | None = None,
        every: int | None = None,
        log: str | os.PathLike | None = None,
    ):
        super().__init__()
        require(every is None or every >= 1, "every", every, "at least 1 or None")
        require(keep >= 1, "keep", keep, "at least 1")
        require(patience is None or patience >= 1, "patience", patience, "at least 1 or None")
        require(mode in ("max", "min"), "mode", mode, "'max' or 'min'")
        self.folder = Path(folder)
        self.keep = keep
        self.monitor, self.mode, self.patience = monitor, mode, patience
        self.run = run or {}
        self.every = every
        self.log = None if log is None else Path(log)
        self.stopping = False
        self.history: list[dict[str, float]] = []
        self._random_state: dict[str, np.ndarray] | None = None
        self._step, self._seconds = 0, 0.0  # of the unfinished epoch, from its checkpoint
        if checkpoint := latest(self.folder):
            state = read_state(checkpoint)
            older = {k: v for k, v in (defaults or {}).items() if k in self.run}
            _same_run(self.folder, older | state["run"], self.run)
            self.history = state["history"]
            self._step, self._seconds = state.get("step", 0), state.get("seconds", 0.0)
            if patience is not None and not all(monitor in logs for logs in self.history):
                raise ValueError(
                    f"monitor must be in each epoch's logs of {checkpoint}, got {monitor!r}"
                )

    @property
    def epoch(self) -> int:
        """Number of finished epochs: the `initial_epoch` of `fit`."""
        return len(self.history)

    @property
    def step(self) -> int:
        """Number of finished batches in the checkpoint `unfinished`; 0 if there is none."""
        return self._step

    @property
    def finished(self) -> bool:
        """Whether early stopping has ended the run."""
        if self.patience is None or not self.history:
            return False
        return self.epoch - (self.best() or 0) >= self.patience

    def best(self, logs: dict[str, float] | None = None) -> int | None:
        """Return the number, from 1, of the epoch with the best `monitor`.

        Return None if there is no epoch yet, or an epoch lacks the metric.

        Args:
            logs: Logs of an epoch that is not yet in `history`; None: there is no such epoch.
        """
        history = [*self.history, *([logs] if logs else [])]
        if not history or not all(self.monitor in x for x in history):
            return None
        values = [x[self.monitor] for x in history]
        return 1 + values.index(max(values) if self.mode == "max" else min(values))

    def paths(self) -> list[Path]:
        """Return the paths of the checkpoints of finished epochs, oldest first."""
        return epoch_paths(self.folder)

    def fit(
        self,
        model: keras.Model,
        data: Callable[[int], Any],
        *,
        steps_per_epoch: int,
        epochs: int,
        callbacks: Sequence[keras.callbacks.Callback] = (),
        **options: Any,
    ) -> None:
        """Train a model, from the last checkpoint (even inside an epoch) to the last epoch.

        If no epoch is left to train, the weights of the checkpoint are not loaded.

        Args:
            model: A compiled model.
            data: Function from a step, counted from 0, to an endless iterable of the batches from
                that step on.
            steps_per_epoch: Batches per epoch.
            epochs: Total number of epochs; early stopping may end the run sooner.
            callbacks: Other callbacks, called before this one.
            options: Further arguments of `model.fit`, such as `validation_data`.

        Raises:
            TrainingStopped: If `stopping` was set.
            ValueError: If `steps_per_epoch` is not above the step at which the run was stopped.
        """
        accepted = f"more than {self._step}, the step at which the run was stopped"
        require(steps_per_epoch > self._step, "steps_per_epoch", steps_per_epoch, accepted)
        if self._step:
            # With TensorFlow, Keras creates the variables of metrics only in the first step.
            batches = iter(data(self.epoch * steps_per_epoch + self._step))
            build_metrics(model, next(batches))
        while self.epoch < epochs and not self.finished:
            steps = steps_per_epoch - self._step
            model.fit(
                data(self.epoch * steps_per_epoch + self._step),
                steps_per_epoch=steps,
                initial_epoch=self.epoch,
                epochs=self.epoch + 1 if self._step else epochs,
                callbacks=keras.callbacks.CallbackList(
                    [*callbacks, self],
                    add_history=True,
                    model=model,
                    epochs=epochs,
                    steps=steps,
                    first_step=self._step,
                ),
                shuffle=False,
                verbose=0,
                **options,
            )

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        if checkpoint := latest(self.folder):
            self._random_state = restore_state(checkpoint, self.model)
            self._write_log()  # the process may have been killed between a checkpoint and its row
        if self.finished:
            self.model.stop_training = True

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._begin = time.perf_counter()

    def on_train_batch_begin(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        # Not earlier: creating an iterator over the data draws from PyTorch's generator, and a
        # resumed run creates one iterator more than an uninterrupted run. And Keras resets the
        # metrics at the start of each epoch.
        if batch == 0 and self._random_state is not None:
            set_random_state(self._random_state)
        if batch == 0 and self._step:
            restore_metrics(self.folder / UNFINISHED, self.model)

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        if batch + 1 == self.params["steps"]:
            return
        step = self._step + batch + 1
        stops = self._stops(batch)
        if stops or (self.every and step % self.every == 0):
            seconds = self._seconds + time.perf_counter() - self._begin
            state = {"run": self.run, "history": self.history, "step": step, "seconds": seconds}
            write_state(self.folder / UNFINISHED, self.model, state, metrics=True)
        if stops:
            raise TrainingStopped(f"in epoch {self.epoch + 1}, after step {step}")

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        logs = {name: float(value) for name, value in (logs or {}).items()}
        if self.patience is not None and self.monitor not in logs:
            raise ValueError(
                f"monitor must be one of the epoch's logs {sorted(logs)}, got {self.monitor!r}"
            )
        if "seconds" in logs:
            logs["seconds"] += self._seconds
        self.history.append(logs)
        self._step, self._seconds = 0, 0.0
        self._random_state = random_state()
        path = self.folder / f"epoch-{len(self.history):04d}"
        write_state(path, self.model, {"run": self.run, "history": self.history})
        self._write_log()
        if current().index == 0:
            for path in (*self.paths()[: -self.keep], self.folder / UNFINISHED):
                (path / STATE).unlink(missing_ok=True)  # without it, the rest is no checkpoint
                shutil.rmtree(path, ignore_errors=True)
        if self._stops(None):
            raise TrainingStopped(f"after epoch {self.epoch}")
        if self.finished:
            self.model.stop_training = True

    def _write_log(self) -> None:
        """Write the history as a CSV file with a row for each epoch."""
        if self.log is None or current().index:  # of several processes, process 0 writes
            return
        rows = [{"epoch": i, **logs} for i, logs in enumerate(self.history, 1)]
        names = dict.fromkeys(name for row in rows for name in row)
        with replacing(self.log) as path, path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, names, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)

    def _stops(self, batch: int | None) -> bool:
        """Return whether to stop; several processes agree every 16 batches and after an epoch."""
        team = current()
        if team.count > 1:
            if batch is not None and (batch + 1) % _ASKED:
                return False
            self.stopping = any(team.exchange(self.stopping))
        return self.stopping


def _same_run(folder: Path, saved: dict[str, Any], asked: dict[str, Any]) -> None:
    """Raise ValueError if the options of a run differ from those in its checkpoints."""
    differing = sorted(k for k in saved.keys() | asked.keys() if saved.get(k) != asked.get(k))
    if differing:
        changes = ", ".join(_change(k, saved.get(k), asked.get(k)) for k in differing)
        if _LENGTHS.issuperset(differing):
            raise ValueError(
                f"the checkpoints in {folder} belong to a run of another length ({changes}), over "
                "which the learning rate decays. Finish it as it began, then train its model "
                f"further with --start-from {folder.parent} into another output folder; or start "
                "again in this one (--overwrite)"
            )
        raise ValueError(
            f"the checkpoints in {folder} belong to another run ({changes}); choose another output "
            "folder, or start again in this one (--overwrite)"
        )


def _change(name: str, then: Any, now: Any) -> str:
    if isinstance(then, dict) and isinstance(now, dict):
        fields = sorted(k for k in then.keys() | now.keys() if then.get(k) != now.get(k))
        return ", ".join(_change(f"{name}.{k}", then.get(k), now.get(k)) for k in fields)
    return f"{name}: {then!r} before, {now!r} now"
