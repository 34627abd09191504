"""Models for tasks on texts, images and recordings besides translation: one handler per task."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import keras_transformer
from keras_transformer.saved.contents import is_saved, read_config
from keras_transformer.saved.kinds import KINDS, Kind, kind_of, kinds_of
from keras_transformer.text.text_tokenizer import TextTokenizer

Items = Sequence[Any]


@dataclass(frozen=True)
class Task:
    """A task of the server, such as "classify" or "embed".

    Args:
        kind: Kind of the saved models for this task.
        run: Function from a loaded model's object, items, tokens per batch and options to the
            results, one for each item.
        costs: Function from the same object and items to the number of tokens of each.
    """

    kind: Kind
    run: Callable[..., Iterable[Any]]
    costs: Callable[[Any, Items], list[int]]

    @property
    def loader(self) -> Any:
        """Class whose `load` returns the object for this task."""
        return getattr(keras_transformer, self.kind.loader)


# Functions for `Task.costs`: the number of tokens of each item.


def _texts(tool, texts):
    whole = [text if isinstance(text, str) else " ".join(text) for text in texts]
    return [len(ids) for ids in tool.tokenizer.encode(whole)]


def _patches(tool, images):
    config = tool.model.config
    height, width = (np.array(config.image_size) // config.patch_size).tolist()
    return [1 + height * width] * len(images)


def _frames(tool, sounds):
    # The encoder has 50 positions per second.
    return [1 + 50 * len(sound) // tool.hearing.sample_rate for sound in sounds]


def _any_texts(tool, texts):
    if isinstance(tool.tokenizer, TextTokenizer):
        return _texts(tool, texts)
    return [len(ids) for ids in tool.tokenizer.encode_source(list(texts))]


def _by_command(kind):
    """Return the task of a kind of models; it calls the method named like the kind's command.

    The option `pairs` is not passed on: it only keeps texts and pairs in different batches.
    """

    def run(tool, items, tokens_per_batch, pairs=None, **options):
        return getattr(tool, kind.command)(items, tokens_per_batch=tokens_per_batch, **options)

    return Task(kind, run, _any_texts)


# Keys are names of commands; a task whose kind has a `use` also has the route `/v1/` + the key.
TASKS: Mapping[str, Task] = {
    **{str(kind.command): _by_command(kind) for kind in KINDS if kind.use},
    "rank": Task(
        kind_of("TextScorer"),
        lambda x, pairs, n: x.score(
            *map(list, zip(*pairs, strict=True)), tokens_per_batch=n
        ).tolist(),
        _texts,
    ),
    "embed": _by_command(kind_of("TextEmbedder")),
    "see": Task(
        kind_of("ImageClassifier"),
        lambda x, images, n, **options: x.classify(images, **options),
        _patches,
    ),
    "transcribe": Task(
        kind_of("Transcriber"),
        lambda x, sounds, n, **options: x.transcribe(sounds, **options),
        _frames,
    ),
}


@dataclass(frozen=True)
class TaskHandler:
    """A handler that does a task with a model; equal handlers share batches.

    Args:
        name: Name of the task, one of `TASKS`.
        tool: Object that does the task, such as a `TextClassifier`.
        options: Names and values of the request's options.
    """

    name: str
    tool: Any
    options: tuple[tuple[str, Any], ...] = ()

    def read(self, items: Items) -> tuple[Items, list[int]]:
        """Return the items, and the number of tokens of each."""
        return items, TASKS[self.name].costs(self.tool, items)

    def search(self, items: Items, num_hypotheses: int, tokens_per_batch: int) -> list[Any]:
        """Return the result of each item, as JSON values or arrays."""
        options = {name: value for name, value in self.options if value is not None}
        results = TASKS[self.name].run(self.tool, items, tokens_per_batch, **options)
        return [_plain(x) for x in results]


def _plain(result):
    if isinstance(result, list):
        return [dataclasses.asdict(x) for x in result]
    return result if isinstance(result, str | float | np.ndarray | None) else str(result)


@dataclass(frozen=True)
class TaskModel:
    """A loaded model, with an object for each task that it can do.

    Args:
        name: Name of the model.
        tools: Maps names of tasks to the objects that do them.
        loaded: When it was loaded, in seconds since 1970.
    """

    name: str
    tools: Mapping[str, Any]
    loaded: int = field(default_factory=lambda: int(time.time()))

    @classmethod
    def load(cls, folder: Path, precision: str | None = None) -> TaskModel:
        """Load a saved model, for all of `TASKS` that it can do.

        Raises:
            ValueError, ImportError: See `load` of the classes of `TASKS`.
        """
        first, *others = tasks_of(folder)
        tool = TASKS[first].loader.load(folder, precision)
        tools = {first: tool}
        for name in others:  # only encoders have several tasks, with one copy of the weights
            tools[name] = TASKS[name].loader.of(folder, tool.model, tool.tokenizer)
        return cls(folder.resolve().name, tools)

    def handler(self, name: str, **options: Any) -> TaskHandler:
        """Return the handler for a task with the options of a request."""
        return TaskHandler(name, self.tools[name], tuple(sorted(options.items())))


def tasks_of(folder: Path) -> list[str]:
    """Return the names of the tasks in `TASKS` that the model in a folder can do.

    Raises:
        ValueError: If its `config.json` is broken.
    """
    if not is_saved(folder):
        return []
    kinds = kinds_of(read_config(folder, "model"))
    served = [task.kind for task in TASKS.values()]
    return [str(kind.command) for kind in kinds if kind in served]
