"""Training runs: locked folders, checkpoints on signals, one-line errors."""

from __future__ import annotations

import contextlib
import functools
import gc
import inspect
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import keras
import typer

from keras_transformer.backend import usable_precision
from keras_transformer.callbacks import Checkpoints, TrainingStopped
from keras_transformer.distribution.places import place_in
from keras_transformer.distribution.processes import current, leave
from keras_transformer.optimizers import WarmupSchedule
from keras_transformer.system.failures import BAD_INPUT, in_one_line, memory_errors
from keras_transformer.system.files import locked
from keras_transformer.training.cards import write_run_card
from keras_transformer.weights.state import CHECKPOINTS, latest, read_state

_Debug = Annotated[
    bool,
    typer.Option("--debug", envvar="KERAS_TRANSFORMER_DEBUG", help="Show error tracebacks."),
]
SIGNALS: dict[int, str] = {signal.SIGTERM: "SIGTERM", signal.SIGINT: "Ctrl-C"}


class _Signalled(BaseException):
    """Raised in a run when a signal ends it."""

    def __init__(self, number: int):
        self.number = number


class _Signals:
    """Handlers of SIGTERM and SIGINT during a run."""

    checkpoints: Checkpoints | None = None  # set during `fit`, which a signal ends after a batch
    number: int | None = None  # number of the first signal

    def __call__(self, number, frame):
        first, self.number = self.number is None, self.number or number
        if first and self.checkpoints is not None:
            self.checkpoints.stopping = True
            return
        raise _Signalled(self.number)


_signals = _Signals()


def run_into(
    default: Callable[[dict[str, Any]], Path] | None = None, *, joins: bool = False
) -> Callable:
    """Return a decorator for a function that trains into its argument `output`, a folder.

    The folder is locked during the run: a second run into it fails at once. SIGTERM and Ctrl-C end
    the run with exit status 143 or 130 and one line on stderr about the saved state. If `precision`
    would be slower than float32 on this machine, float32 is used.

    Args:
        default: Function from the arguments to `output`, called if that is None.
        joins: Whether the function joins the processes that the environment names. If not, several
            processes are refused: each would train alone into the same folder.
    """

    def decorate(train):
        signature = inspect.signature(train)

        @functools.wraps(train)
        def run(*arguments, **options):
            bound = signature.bind(*arguments, **options)
            bound.apply_defaults()
            values = bound.arguments
            if values["output"] is None and default is not None:
                values["output"] = default(values)
            if "precision" in values:
                values["precision"] = usable_precision(values["precision"])
            folder, place = values["output"], place_in(os.environ)
            if place.count > 1 and not joins:
                raise NotImplementedError(
                    f"this task trains in one process, got {place.count} (as `keras-transformer "
                    "launch`, torchrun and srun start them): `keras-transformer train` joins them"
                )
            with _handled():
                try:
                    # Of several processes, process 0 holds the lock.
                    with locked(folder) if place.index == 0 else contextlib.nullcontext():
                        with memory_errors():
                            result = train(*bound.args, **bound.kwargs)
                        if place.index == 0:
                            write_run_card(folder, train, values)
                        return result
                except _Signalled as signalled:
                    number = signalled.number
                except BaseException as error:
                    leave()  # so that the other processes, which wait for this one, end too
                    if isinstance(error, MemoryError):
                        saved = _what_is_saved(folder, values.get("overwrite", False))
                        raise MemoryError(f"{in_one_line(error)}; {saved}") from error
                    raise
                for other in SIGNALS:
                    signal.signal(other, signal.SIG_IGN)
                saved = _what_is_saved(folder, values.get("overwrite", False))
                say(f"stopped by {SIGNALS[number]}; {saved}")
                gc.collect()  # ends the worker processes of batches, which the traceback referenced
                raise SystemExit(128 + number)

        return run

    return decorate


def fit(
    model: keras.Model, data: Callable[[int], Any], checkpoints: Checkpoints, **options: Any
) -> None:
    """Run `checkpoints.fit`; a signal ends it after the current batch and saves the state.

    A second signal ends it at once.

    Args:
        model: The compiled model.
        data: See `Checkpoints.fit`.
        checkpoints: Checkpoints of the run.
        options: See `Checkpoints.fit`.
    """
    _signals.checkpoints = checkpoints
    try:
        checkpoints.fit(model, data, **options)
        if _signals.number is not None:
            raise _Signalled(_signals.number)
    except TrainingStopped:
        if _signals.number is None and current().count == 1:  # not stopped by a signal
            raise
        # A signal stopped this process or another one.
        raise _Signalled(_signals.number or signal.SIGTERM) from None
    finally:
        _signals.checkpoints = None


def schedule_for(
    peak: float, warmup_steps: int, total_steps: int, decay: str = "linear"
) -> WarmupSchedule:
    """Return a schedule of warmup and decay.

    Args:
        peak: Highest learning rate.
        warmup_steps: Steps until the peak. A run of `warmup_steps` or fewer steps uses a tenth of
            its steps.
        total_steps: Steps of the run.
        decay: See `WarmupSchedule`.

    Raises:
        ValueError: If `WarmupSchedule` does not accept a value.
    """
    if 0 < total_steps <= warmup_steps:
        shorter = max(1, total_steps // 10)
        if shorter < warmup_steps:
            say(f"warmup_steps is {shorter}, not {warmup_steps}: the run has {total_steps} steps")
        warmup_steps, total_steps = shorter, max(total_steps, shorter + 1)
    return WarmupSchedule(peak, warmup_steps, total_steps, decay=decay)


def main(train: Callable) -> None:
    """Run a function with the options of the command line; report bad input in one line."""

    @functools.wraps(train)
    def command(*, debug, **options):
        warnings.showwarning = lambda message, *_, **__: say(f"warning: {in_one_line(message)}")
        try:
            train(**options)
        except BAD_INPUT as error:
            if debug:
                raise
            say(f"error: {in_one_line(error)}", everywhere=True)
            raise typer.Exit(2) from error

    # typer reads the options from the signature.
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = inspect.signature(train, eval_str=True).parameters.values()
    keywords = [x.replace(kind=keyword) for x in parameters]
    debug = inspect.Parameter("debug", keyword, default=False, annotation=_Debug)
    signature = inspect.Signature([*keywords, debug])
    command.__signature__ = signature  # type: ignore[attr-defined]  # `inspect` reads it
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command()(command)
    app()


def say(line: str, *, everywhere: bool = False) -> None:
    """Print a line on stderr, in place of the current progress line.

    Args:
        line: The line.
        everywhere: Whether each of several processes prints it; if not, only process 0 does.
    """
    if current().index and not everywhere:
        return
    print(("\r\x1b[K" if sys.stderr.isatty() else "") + line, file=sys.stderr, flush=True)


@contextlib.contextmanager
def _handled() -> Iterator[None]:
    """Handle SIGTERM and SIGINT with `_signals`, if this is the main thread."""
    before = {}
    if threading.current_thread() is threading.main_thread():
        # Ignored signals stay ignored, as under nohup.
        before = {x: signal.getsignal(x) for x in SIGNALS}
        before = {x: y for x, y in before.items() if y not in (signal.SIG_IGN, None)}
        for number in before:
            signal.signal(number, _signals)
    try:
        yield
    finally:
        _signals.number = None
        for number, handler in before.items():
            signal.signal(number, handler)


def _what_is_saved(folder, overwrites):
    """Return a sentence about the state that a stopped run can resume from."""
    checkpoint = latest(folder / CHECKPOINTS)
    if checkpoint is None:
        return f"nothing is saved in {folder}: the same command starts over"
    state = read_state(checkpoint)
    epoch, step = len(state["history"]), state.get("step")
    place = f"step {step} of epoch {epoch + 1}" if step else f"the end of epoch {epoch}"
    command = "the same command" + (" without --overwrite" if overwrites else "")
    return f"{folder} holds the training state at {place}, from which {command} resumes"
