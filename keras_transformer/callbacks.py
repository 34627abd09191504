"""Callbacks for `fit`: whole-state checkpoints, BLEU of real translations, a progress line."""

from __future__ import annotations

import os
import shutil
import sys
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
from keras_transformer.evaluation.scores import evaluate
from keras_transformer.inference.translator import Translator
from keras_transformer.system.extras import missing


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
        """How many epochs are done: the `initial_epoch` of `fit`."""
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


class TranslationQuality(keras.callbacks.Callback):
    """Translates validation texts by real beam search and logs `val_bleu` and `val_chrf`.

    Stands before `Checkpoints` in the list of callbacks, which then may monitor `val_bleu`.
    Between the epochs in which it translates it repeats the last value.

    Args:
        translator: of the model in training.
        pairs: (source, reference) texts.
        every: epochs from one translation to the next, at least 1.
        options: of `Translator.translate`, such as {"beam_size": 1}.
    """

    def __init__(
        self,
        translator: Translator,
        pairs: Sequence[tuple[str, str]],
        *,
        every: int = 1,
        options: dict[str, Any] | None = None,
    ):
        super().__init__()
        require(every >= 1, "every", every, "at least 1")
        require(len(pairs) >= 1, "pairs", pairs, "at least one pair")
        self.translator = translator
        self.sources, self.references = (list(side) for side in zip(*pairs, strict=True))
        self.every = every
        self.options = options or {}
        self.last: dict[str, float] = {}

    def on_epoch_end(self, epoch, logs=None):
        if (epoch + 1) % self.every == 0 or not self.last:
            hypotheses = self.translator.translate(self.sources, **self.options)
            metrics = evaluate(hypotheses, self.references)
            self.last = {"val_bleu": metrics["bleu"], "val_chrf": metrics["chrf"]}
        if logs is not None:
            logs.update(self.last)


class Progress(keras.callbacks.Callback):
    """One line on stderr: loss, perplexity, target tokens a second, time left.

    Use with `fit(verbose=0)`, before `Checkpoints`: it adds `seconds` (of training alone) to the
    epoch's logs. On a terminal the line is rewritten; elsewhere a line comes every
    `interval` seconds, and one at each epoch's end.

    Args:
        tokens_per_step: target tokens of a mean batch, padding not counted.
        interval: seconds between two lines where stderr is no terminal.
    """

    def __init__(self, tokens_per_step: float, interval: float = 10.0):
        super().__init__()
        self.tokens_per_step = tokens_per_step
        self.interval = interval
        self.seconds = 0.0
        self.tokens_per_second = 0.0

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch = epoch
        self._begin = self._shown = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        now = time.perf_counter()
        if now - self._shown < (0.2 if sys.stderr.isatty() else self.interval):
            return
        self._shown = now
        steps, done = self.params["steps"], batch + 1
        per_step = (now - self._begin) / done
        left = per_step * (steps - done + steps * (self.params["epochs"] - self._epoch - 1))
        self._show(
            f"epoch {self._epoch + 1}/{self.params['epochs']} step {done}/{steps} "
            f"{_metrics(logs)} {self.tokens_per_step / per_step:,.0f} tokens/s "
            f"{_time(left)} left",
            end="" if sys.stderr.isatty() else "\n",
        )

    def on_test_begin(self, logs=None):
        # Validation and callbacks run after the last batch: their time is not training's.
        self._close_epoch()

    def on_epoch_end(self, epoch, logs=None):
        self._close_epoch()
        if logs is not None:
            logs["seconds"] = self._took
        self._show(
            f"epoch {epoch + 1}/{self.params['epochs']} {_metrics(logs)} "
            f"{self.tokens_per_second:,.0f} tokens/s {_time(self.seconds)} so far"
        )

    def _close_epoch(self):
        if self._begin is None:
            return
        self._took = time.perf_counter() - self._begin
        self._begin = None
        self.seconds += self._took
        self.tokens_per_second = self.tokens_per_step * self.params["steps"] / self._took

    def _show(self, line, end="\n"):
        clear = "\r\x1b[K" if sys.stderr.isatty() else ""
        sys.stderr.write(clear + line + end)
        sys.stderr.flush()


def _metrics(logs):
    return " ".join(f"{name} {float(value):.4g}" for name, value in (logs or {}).items())


def _time(seconds):
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


class TensorBoard(keras.callbacks.Callback):
    """Writes each epoch's logs and the learning rate for TensorBoard, on any backend.

    Keras's own callback needs TensorFlow; this one needs tensorboardX.

    Args:
        folder: where the event files go.

    Raises:
        ImportError: if tensorboardX is not installed.
    """

    def __init__(self, folder: str | os.PathLike):
        super().__init__()
        try:
            from tensorboardX import SummaryWriter
        except ImportError as error:
            raise missing("writing TensorBoard files", "tensorboard") from error
        self._writer = SummaryWriter(str(folder))

    def on_epoch_end(self, epoch, logs=None):
        rate = float(keras.ops.convert_to_numpy(self.model.optimizer.learning_rate))
        for name, value in {**(logs or {}), "learning_rate": rate}.items():
            self._writer.add_scalar(name, float(value), epoch + 1)
        self._writer.flush()

    def on_train_end(self, logs=None):
        self._writer.close()
