"""Reports during training: BLEU of validation texts, a progress line, TensorBoard."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import Any

import keras

from keras_transformer.callbacks.checkpoints import Checkpoints
from keras_transformer.config import require
from keras_transformer.distribution.processes import current
from keras_transformer.evaluation.scores import evaluate
from keras_transformer.system.extras import missing
from keras_transformer.translate.translator import Translator


class TranslationQuality(keras.callbacks.Callback):
    """A callback that translates validation texts, and logs `val_bleu` and `val_chrf`.

    Put it before `Progress`, which shows them, and before `Checkpoints`, which can then monitor
    `val_bleu`. In epochs without a translation it logs the last values again.

    Args:
        translator: Translator with the model in training.
        pairs: (source, reference) texts.
        every: Number of epochs from one translation to the next, at least 1. The callback also
            translates after the first epoch in this process.
        options: Options of `Translator.translate`, such as {"beam_size": 1}.

    Attributes:
        last: The last `val_bleu` and `val_chrf`, by name; {} before the first translation.

    Raises:
        ValueError: If `every` is below 1 or there are no pairs.
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

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if (epoch + 1) % self.every == 0 or not self.last:
            hypotheses = self.translator.translate(self.sources, **self.options)
            metrics = evaluate(
                hypotheses, self.references, language=self.translator.target_language
            )
            self.last = {"val_bleu": metrics["bleu"], "val_chrf": metrics["chrf"]}
        if logs is not None:
            logs.update(self.last)


class Progress(keras.callbacks.Callback):
    """A callback that prints metrics, target tokens per second and remaining time on stderr.

    Use it with `fit(verbose=0)` and before `Checkpoints`: it adds `seconds` (training only) to the
    logs of the epoch. On a terminal the line is rewritten; elsewhere a new line is written every
    `interval` seconds and at the end of each epoch.

    Args:
        tokens_per_step: Mean number of target tokens per batch, padding not counted.
        interval: Seconds between two lines if stderr is not a terminal.
        checkpoints: Checkpoints of the run, whose best epoch is shown; None: it is not shown.

    Attributes:
        seconds: Training time of the epochs in this process, in seconds.
        tokens_per_second: Target tokens per second in the last epoch.
    """

    def __init__(
        self,
        tokens_per_step: float,
        interval: float = 10.0,
        checkpoints: Checkpoints | None = None,
    ):
        super().__init__()
        self.tokens_per_step = tokens_per_step
        self.interval = interval
        self.checkpoints = checkpoints
        self.seconds = 0.0
        self.tokens_per_second = 0.0
        self._since = 0.0  # time at which the first batch ended; 0: it has not
        self._epochs = 0.0  # epochs that have ended since then

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._epoch = epoch
        self._shown = time.perf_counter()
        self._begin: float | None = self._shown

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        now = time.perf_counter()
        if batch == 0:  # its time includes compilation, and is not that of later batches
            self._first_done = now
            self._since = self._since or now
            return
        if now - self._shown < (0.2 if sys.stderr.isatty() else self.interval):
            return
        self._shown = now
        before = self.params.get("first_step", 0)
        steps, done = before + self.params["steps"], before + batch + 1
        per_step = (now - self._first_done) / batch
        left = per_step * (steps - done + steps * (self.params["epochs"] - self._epoch - 1))
        self._show(
            f"epoch {self._epoch + 1}/{self.params['epochs']} step {done}/{steps} "
            f"{_metrics(logs)} {self.tokens_per_step / per_step:,.0f} tokens/s "
            f"{_time(left)} left",
            end="" if sys.stderr.isatty() else "\n",
        )

    def on_test_begin(self, logs: dict[str, Any] | None = None) -> None:
        # Validation and callbacks run after the last batch: their time is not training time.
        self._close_epoch()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._close_epoch()
        if logs is not None:
            logs["seconds"] = self._took
        best = ""
        if self.checkpoints and (number := self.checkpoints.best(logs)):
            best = f"best epoch {number} ({self.checkpoints.monitor}) "
        self._show(
            f"epoch {epoch + 1}/{self.params['epochs']} {_metrics(logs)} {best}"
            f"{self.tokens_per_second:,.0f} tokens/s {_time(self.seconds)} so far"
            f"{self._left(epoch)}"
        )

    def _left(self, epoch: int) -> str:
        """Return the remaining time as a text, including that of validation and callbacks."""
        steps, before = self.params["steps"], self.params.get("first_step", 0)
        self._epochs += steps / (before + steps)
        per_epoch = (time.perf_counter() - self._since) / self._epochs
        left = per_epoch * (self.params["epochs"] - epoch - 1)
        return f" {_time(left)} left" if left else ""

    def _close_epoch(self) -> None:
        if self._begin is None:
            return
        self._took = time.perf_counter() - self._begin
        self._begin = None
        self.seconds += self._took
        self.tokens_per_second = self.tokens_per_step * self.params["steps"] / self._took

    def _show(self, line: str, end: str = "\n") -> None:
        if current().index:  # of several processes, process 0 reports
            return
        clear = "\r\x1b[K" if sys.stderr.isatty() else ""
        sys.stderr.write(clear + line + end)
        sys.stderr.flush()


def _metrics(logs: dict[str, Any] | None) -> str:
    return " ".join(f"{name} {float(value):.4g}" for name, value in (logs or {}).items())


def _time(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


class TensorBoard(keras.callbacks.Callback):
    """A callback that writes an epoch's logs and learning rate for TensorBoard, on any backend.

    Keras's own callback needs TensorFlow; this one needs tensorboardX.

    Args:
        folder: Folder for the event files.

    Raises:
        ImportError: If tensorboardX is not installed.
    """

    def __init__(self, folder: str | os.PathLike):
        super().__init__()
        try:
            from tensorboardX import SummaryWriter
        except ImportError as error:
            raise missing("writing TensorBoard files", "tensorboard") from error
        self._writer = SummaryWriter(str(folder))

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        rate = float(keras.ops.convert_to_numpy(self.model.optimizer.learning_rate))
        for name, value in {**(logs or {}), "learning_rate": rate}.items():
            self._writer.add_scalar(name, float(value), epoch + 1)
        self._writer.flush()

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        self._writer.close()
