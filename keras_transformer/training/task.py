"""Options and steps that the training flows of tasks share.

A flow is a function whose arguments are a `TaskRun` and the task's own options. The help of an
option is its line in the docstring; an argument `train_file` or `text_files` is the option
`--train` or `--text`.

```python
@task(d_model=128, num_layers=2, num_heads=4, dropout=0.1, epochs=5, ...)
def train(run: TaskRun, train_file: Path, test_file: Path) -> None:
    ...  # the data and the model
    model.compile(run.optimizer(run.epochs * len(batches)), loss, metrics=["accuracy"])
    run.fit(model, batches.dataset(), len(batches))
    run.save(TextClassifier(model, tokenizer))
    run.record(scores, "test", model)
```
"""

from __future__ import annotations

import copy
import functools
import inspect
import os
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import keras
import typer

from keras_transformer.backend import keep_compilations
from keras_transformer.callbacks import Checkpoints, Progress
from keras_transformer.callbacks.checkpoints import LOG
from keras_transformer.evaluation.assess import save_metrics
from keras_transformer.optimizers import adam
from keras_transformer.system.files import write_json
from keras_transformer.training import runs
from keras_transformer.training.fine_tuning import check_lora, save_run
from keras_transformer.training.runs import say, schedule_for
from keras_transformer.weights import load_weights
from keras_transformer.weights.state import CHECKPOINTS

Count = Annotated[int, typer.Option(min=1)]
CountOrZero = Annotated[int, typer.Option(min=0)]
REQUIRED = inspect.Parameter.empty


class TaskRun:
    """A run of a task: its options, and the steps that the tasks share.

    An instance has `output`, `precision`, `seed` and the options that its flow passes to the
    decorator `task`. Without these, `start_from` and `warmup_steps` are None, and `lora_rank` is 0.

    Args:
        output: Folder of the run.
        start_from: Folder of a saved or imported model to train further, with its tokenizer and
            its sizes.
        lora_rank: Train only products of this rank (LoRA), and save them as an adapter, too; 0:
            train all weights. Needs --start-from.
        data_folder: Folder of the data sets.  [default: KT_DATA, or data]
        vocab_size: Size of the vocabulary, in pieces.
        d_model: Width of the model.
        num_layers: Blocks per stack.
        num_heads: Attention heads per block.
        dropout: Dropout rate, in [0, 1).
        max_length: Longest sequence, in tokens.
        length: Tokens per window of text.
        rows: Rows per step: windows of text, or rows of packed dialogues or pairs.
        tokens_per_batch: Tokens per batch, padding included.
        batch_size: Examples per batch.
        epochs: Passes over the training data.
        peak_learning_rate: Learning rate after the warmup.
        warmup_steps: Steps until the peak learning rate.
        weight_decay: Weight decay of AdamW.
        train_size: Train on at most this many examples.
        precision: Keras dtype policy: float32, mixed_bfloat16 or mixed_float16.
        seed: Seed of weights, dropout, order and sampling.
    """

    output: Path
    start_from: Path | None = None
    lora_rank: CountOrZero = 0
    data_folder: Path | None
    vocab_size: int
    d_model: Count
    num_layers: Count
    num_heads: Count
    dropout: float
    max_length: int
    length: int
    rows: int
    tokens_per_batch: int
    batch_size: Count
    epochs: Count
    peak_learning_rate: float
    warmup_steps: int | None = None
    weight_decay: float
    train_size: int | None
    precision: str
    seed: int

    def __init__(self, **options: Any):
        vars(self).update(options)
        self.seconds = 0.0  # seconds of training, in all calls of `fit`
        keep_compilations()
        check_lora(self.lora_rank, self.start_from)

    @property
    def sizes(self) -> dict[str, Any]:
        """The options of a new model that all families have."""
        names = ("d_model", "num_layers", "num_heads", "dropout")
        return {name: getattr(self, name) for name in names}

    @property
    def data(self) -> Path:
        """Folder of the data sets."""
        return self.data_folder or Path(os.environ.get("KT_DATA", "data"))

    def optimizer(self, steps: int, **options: Any) -> keras.optimizers.Optimizer:
        """Return Adam with warmup and linear decay over a run.

        Args:
            steps: Steps of the run.
            options: Further options of `adam`.
        """
        warmup_steps = self.warmup_steps
        if warmup_steps is None:  # the task has no such option
            warmup_steps, steps = max(1, steps // 10), 1 + steps
        return adam(schedule_for(self.peak_learning_rate, warmup_steps, steps), **options)

    def fit(
        self, model: keras.Model, data: Any, steps: int | None, **options: Any
    ) -> dict[str, list[float]]:
        """Fit a compiled model without checkpoints, print a line per epoch, return the history.

        Args:
            model: The compiled model.
            data: Endless batches; if `steps` is None, the inputs, with the labels as `y` among the
                options.
            steps: Batches per epoch; None: all rows of the inputs.
            options: Further arguments of `keras.Model.fit`. `validation_data` must be batches with
                the method `dataset` and a length.
        """
        batches = f", {steps} batches an epoch" if steps else ""
        say(f"{model.count_params():,} parameters{batches}; {keras.backend.backend()}")
        if validation := options.pop("validation_data", None):
            options["validation_data"] = validation.dataset(steps=len(validation))
            options["validation_steps"] = len(validation)
        options.setdefault("epochs", vars(self).get("epochs"))
        options |= dict(steps_per_epoch=steps, shuffle=steps is None, verbose=2)
        start = time.monotonic()
        history = model.fit(data, **options).history
        self.seconds += time.monotonic() - start
        return history

    def fit_rows(
        self,
        model: keras.Model,
        batches: Any,
        steps_per_epoch: int,
        epochs: int,
        identity: Mapping[str, Any],
        **options: Any,
    ) -> dict[str, float]:
        """Fit a language model, resuming from its last checkpoint; return the last epoch's logs.

        Args:
            model: The compiled model; it ends with the weights of the last checkpoint.
            batches: Data with `batches(first_step)` and `length`, such as `Windows`.
            steps_per_epoch: Batches per epoch.
            epochs: Total number of epochs.
            identity: Plain values that identify the run, see `Checkpoints`.
            options: Further arguments of `keras.Model.fit`.
        """
        folder = self.output / CHECKPOINTS
        facts = {"rows": self.rows, "length": batches.length, **identity}
        checkpoints = Checkpoints(folder, keep=1, run=facts, log=self.output / LOG)
        progress = Progress(self.rows * batches.length, checkpoints=checkpoints)
        options |= dict(steps_per_epoch=steps_per_epoch, epochs=epochs, callbacks=[progress])
        runs.fit(model, batches.batches, checkpoints, **options)
        load_weights(checkpoints.paths()[-1], model)
        # The seconds before a resume count, too.
        self.seconds = sum(logs["seconds"] for logs in checkpoints.history)
        return checkpoints.history[-1]

    def save(self, saved: Any) -> None:
        """Save the trained object, such as a `TextClassifier`; after LoRA, also its adapter."""
        save_run(saved.save, self.output, self.start_from, self.lora_rank)

    def record(
        self,
        scores: Mapping[str, Any],
        name: str | None = None,
        model: keras.Model | None = None,
    ) -> None:
        """Write scores into `metrics.json`.

        Args:
            scores: Plain values by name.
            name: Name of what was measured, such as "test"; None: the file holds only these scores.
            model: The trained model, to add its size, the seconds of training and the backend.
        """
        scores = dict(scores)
        if model is not None:
            scores |= dict(parameters=model.count_params(), seconds=self.seconds)
            scores["backend"] = keras.backend.backend()
        if name is None:
            write_json(self.output / "metrics.json", scores)
        else:
            save_metrics(self.output, name, scores)


def evaluated(model: keras.Model, batches: Any) -> dict[str, float]:
    """Return the loss and the metrics of a compiled model on all batches."""
    data, steps = batches.dataset(steps=len(batches)), len(batches)
    return model.evaluate(data, steps=steps, verbose=0, return_dict=True)


def task(folder: Callable[[dict[str, Any]], Path] | None = None, **defaults: Any) -> Callable:
    """Return a decorator that turns a flow into a function that Python code and Typer can call.

    The function's arguments are the task's own options and the shared options. `runs.run_into`
    locks its output folder and handles signals.

    Args:
        folder: Function from the arguments to `output`, if that is not given.
        defaults: The shared options that the task has, with their defaults; `output`, `precision`
            and `seed` are always there.
    """
    named = dict(output=None if folder else REQUIRED) | defaults | dict(precision="float32", seed=0)
    types = get_type_hints(TaskRun, include_extras=True)
    types |= dict(output=Path | None if folder else Path, warmup_steps=int)

    def decorate(flow):
        _, *specific = inspect.signature(flow, eval_str=True).parameters.values()
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        shared = [inspect.Parameter(x, kind, default=y) for x, y in named.items()]
        helps = _helps(TaskRun) | _helps(flow)
        parameters = [
            x.replace(
                annotation=_option(x.name, types.get(x.name, x.annotation), helps.get(x.name))
            )
            for x in (*specific, *shared)
        ]
        parameters.sort(key=lambda x: x.default is not REQUIRED)
        signature = inspect.Signature(parameters)

        @functools.wraps(flow)
        def train(*arguments, **options):
            bound = signature.bind(*arguments, **options)
            bound.apply_defaults()
            run = TaskRun(**{name: bound.arguments[name] for name in named})
            flow(run, **{x.name: bound.arguments[x.name] for x in specific})

        train.__signature__ = signature  # type: ignore[attr-defined]  # `inspect` reads it
        train.__annotations__ = {x.name: x.annotation for x in parameters}
        train.__doc__ = (inspect.getdoc(flow) or "").partition("Args:\n")[0].rstrip()
        return runs.run_into(folder)(train)

    return decorate


def _option(name, annotation, text):
    """Return an annotation for Typer: the type of an argument, and its option with a help text."""
    short = re.sub("_files?$", "", name)
    option = typer.Option(*([] if short == name else [f"--{short.replace('_', '-')}"]))
    if get_origin(annotation) is Annotated:
        annotation, option = get_args(annotation)
        option = copy.copy(option)
    option.help = text
    return Annotated[annotation, option]


def _helps(documented):
    """Return the descriptions of the arguments in a docstring, by name."""
    text = (inspect.getdoc(documented) or "").partition("Args:\n")[2].partition("\n\n")[0]
    lines = re.findall(r"^    (\w+): (.*?)(?=^    \w|\Z)", text, re.MULTILINE | re.DOTALL)
    return {name: " ".join(line.split()) for name, line in lines}
