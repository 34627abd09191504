"""Checkpoints of the whole state of a training, from which it goes on bit for bit."""

from __future__ import annotations

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
from keras_transformer.checkpoints.state import (
    UNFINISHED,
    epoch_paths,
    latest,
    read_state,
    restore_metrics,
    restore_state,
    write_state,
)
from keras_transformer.config import require


class TrainingStopped(Exception):  # noqa: N818 - no error
    """`fit` was asked to stop by `Checkpoints.stopping`, and what it has done is saved."""


class Checkpoints(keras.callbacks.Callback):
    """Saves the whole state of training after each epoch, resumes from the last, stops early.

    A checkpoint is a folder `epoch-0007` of weights, optimizer, random states and the history of
    metrics, written under another name first: a kill leaves only whole ones. With data that is a
    function of the step, a run that was killed or stopped and resumed ends with the same weights
    as one that never was.

    ```python
    checkpoints = Checkpoints("run/checkpoints", monitor="val_loss", patience=5)
    checkpoints.fit(model, batches.dataset, steps_per_epoch=len(batches), epochs=40)
    ```

    Where nobody stops inside an epoch, `fit(initial_epoch=checkpoints.epoch,
    callbacks=[checkpoints])` of the model does the same.

    Args:
        folder: where the checkpoints are, or will be.
        keep: how many of the last to keep, at least 1.
        monitor: name in the epoch's logs that early stopping looks at.
        patience: stop after so many epochs without a better `monitor`; None: never.
        mode: whether more ("max") or less ("min") is better.
        run: plain values that say what the run is; resuming another is refused.

    Attributes:
        stopping: set it, in a signal's handler say, to end `fit` by `TrainingStopped` after the
            batch at hand, with the state inside the epoch saved in `unfinished`; after the last
            batch of an epoch, at the epoch's end.

    Raises:
        ValueError: for an argument out of range, or if the folder's checkpoints are broken or
            belong to another run.
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
    ):
        super().__init__()
        require(keep >= 1, "keep", keep, "at least 1")
        require(patience is None or patience >= 1, "patience", patience, "at least 1 or None")
        require(mode in ("max", "min"), "mode", mode, "'max' or 'min'")
        self.folder = Path(folder)
        self.keep = keep
        self.monitor = monitor
        self.patience = patience
        self.mode = mode
        self.run = run or {}
        self.stopping = False
        self.history: list[dict[str, float]] = []
        self._random_state: dict[str, np.ndarray] | None = None
        self._step, self._seconds = 0, 0.0  # of the epoch that `unfinished` is inside
        if found := latest(self.folder):
            state = read_state(found)
            _same_run(self.folder, state["run"], self.run)
            self.history = state["history"]
            self._step, self._seconds = state.get("step", 0), state.get("seconds", 0.0)
            if patience is not None and not all(monitor in logs for logs in self.history):
                raise ValueError(
                    f"monitor must be in each epoch's logs of {found}, got {monitor!r}"
                )

    @property
    def epoch(self) -> int:
        """Number of finished epochs: the `initial_epoch` of `fit`."""
        return len(self.history)

    @property
    def step(self) -> int:
        """Number of batches done inside the epoch: where the data resumes."""
        return self._step

    @property
    def finished(self) -> bool:
        """Whether early stopping has said that it is enough."""
        if self.patience is None or not self.history:
            return False
        values = [logs[self.monitor] for logs in self.history]
        best = values.index(max(values) if self.mode == "max" else min(values))
        return len(values) - 1 - best >= self.patience

    def paths(self) -> list[Path]:
        """The checkpoints there are, oldest first."""
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
        """Trains a model from where the checkpoints end, inside an epoch too, to the last epoch.

        Args:
            model: compiled.
            data: from a step, counted from 0, to the batches from there on, which do not end.
            steps_per_epoch: batches of an epoch.
            epochs: how many in all; early stopping may make it fewer.
            callbacks: called before this one.
            options: of `model.fit`, such as `validation_data`.

        Raises:
            TrainingStopped: when `stopping` was set.
            ValueError: if an epoch is shorter than it was when the run was stopped inside one.
        """
        accepted = f"more than {self._step}, where the run was stopped"
        require(steps_per_epoch > self._step, "steps_per_epoch", steps_per_epoch, accepted)
        if self._step:
            # Under TensorFlow Keras makes the metrics' variables in the first step only.
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
                    [*callbacks, self], add_history=True, model=model, epochs=epochs, steps=steps
                ),
                shuffle=False,
                verbose=0,
                **options,
            )

    def on_train_begin(self, logs=None):
        if found := latest(self.folder):
            self._random_state = restore_state(found, self.model)
        if self.finished:
            self.model.stop_training = True

    def on_epoch_begin(self, epoch, logs=None):
        self._begin = time.perf_counter()

    def on_train_batch_begin(self, batch, logs=None):
        # Not earlier: making an iterator over the data draws from PyTorch's generator, and a run
        # that is resumed makes one more than a run that was never killed; and Keras begins each
        # epoch with metrics of none.
        if batch == 0 and self._random_state is not None:
            set_random_state(self._random_state)
        if batch == 0 and self._step:
            restore_metrics(self.folder / UNFINISHED, self.model)

    def on_train_batch_end(self, batch, logs=None):
        if self.stopping and batch + 1 < self.params["steps"]:
            step = self._step + batch + 1
            seconds = self._seconds + time.perf_counter() - self._begin
            state = {"run": self.run, "history": self.history, "step": step, "seconds": seconds}
            write_state(self.folder / UNFINISHED, self.model, state, metrics=True)
            raise TrainingStopped(f"in epoch {self.epoch + 1}, after step {step}")

    def on_epoch_end(self, epoch, logs=None):
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
        for path in (*self.paths()[: -self.keep], self.folder / UNFINISHED):
            shutil.rmtree(path, ignore_errors=True)
        if self.stopping:
            raise TrainingStopped(f"after epoch {self.epoch}")
        if self.finished:
            self.model.stop_training = True


def _same_run(folder, saved, asked):
    differing = sorted(k for k in saved.keys() | asked.keys() if saved.get(k) != asked.get(k))
    if differing:
        changes = ", ".join(_change(k, saved.get(k), asked.get(k)) for k in differing)
        raise ValueError(
            f"the checkpoints in {folder} are of another run ({changes}); choose another output "
            "folder, or begin anew in this one (--overwrite)"
        )


def _change(name, then, now):
    if isinstance(then, dict) and isinstance(now, dict):
        fields = sorted(k for k in then.keys() | now.keys() if then.get(k) != now.get(k))
        return ", ".join(_change(f"{name}.{k}", then.get(k), now.get(k)) for k in fields)
    return f"{name}: {then!r} then, {now!r} now"
