"""Models of the server that find something in texts, images or recordings: one engine per task."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import keras_transformer
from keras_transformer.saved.folder import read_config
from keras_transformer.saved.kinds import KINDS, Kind, kind_of, kinds_of
from keras_transformer.saved.model_files import is_saved
from keras_transformer.serving.engines import count_tokens
from keras_transformer.tasks.encoder_task import EncoderTask

Items = Sequence[Any]


@dataclass(frozen=True)
class Task:
    """A task of the server.

    Args:
        kind: The kind of folder that does it.
        run: Function from the object of a folder, items, tokens per batch and options to a list of
            what is found in each item.
        costs: Function from such an object and items to the number of tokens of each.
        shared: Whether an object of another task can lend it model and tokenizer.
    """

    kind: Kind
    run: Callable[..., list[Any]]
    costs: Callable[[Any, Items], list[int]]
    shared: bool = False

    @property
    def loader(self) -> Any:
        """Class of the objects that do it."""
        return getattr(keras_transformer, self.kind.loader)


def _texts(tool, texts):
    whole = [text if isinstance(text, str) else " ".join(text) for text in texts]
    return [len(ids) for ids in tool.tokenizer.encode(whole)]


def _patches(tool, images):
    config = tool.model.config
    height, width = (np.array(config.image_size) // config.patch_size).tolist()
    return [1 + height * width] * len(images)


def _frames(tool, sounds):
    return [1 + 50 * len(sound) // tool.hearing.sample_rate for sound in sounds]


def _words(tool, texts):
    return count_tokens(tool.tokenizer, texts)


def _by_command(kind):
    def run(tool, items, tokens_per_batch, pairs=None, **options):
        return getattr(tool, kind.command)(items, tokens_per_batch=tokens_per_batch, **options)

    encodes = issubclass(getattr(keras_transformer, kind.loader), EncoderTask)
    return Task(kind, run, _texts if encodes else _words, kind.command == "classify")


# By the command of the same purpose. The route of those with a `use` is /v1/ and this name.
TASKS: Mapping[str, Task] = {
    **{str(kind.command): _by_command(kind) for kind in KINDS if kind.use},
    "rank": Task(
        kind_of("TextScorer"),
        lambda x, pairs, n: x.score(
            *map(list, zip(*pairs, strict=True)), tokens_per_batch=n
        ).tolist(),
        _texts,
    ),
    "embed": Task(
        kind_of("TextEmbedder"),
        lambda x, texts, n, **options: list(x.embed(texts, tokens_per_batch=n, **options)),
        _texts,
        True,
    ),
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
class TaskEngine:
    """An engine for a batcher: an object with the options of a request; equal ones share batches.

    Args:
        name: Name of the task, one of `TASKS`.
        tool: The object.
        options: Names and values of its options.
    """

    name: str
    tool: Any
    options: tuple[tuple[str, Any], ...] = ()

    def costs(self, items: Items) -> list[int]:
        """Return the number of tokens of each item."""
        return TASKS[self.name].costs(self.tool, items)

    def search(self, items: Items, num_hypotheses: int, tokens_per_batch: int) -> list[Any]:
        """Return what is found in each item, as plain values of JSON or arrays."""
        options = {name: value for name, value in self.options if value is not None}
        found = TASKS[self.name].run(self.tool, items, tokens_per_batch, **options)
        return [_plain(x) for x in found]


def _plain(found):
    if isinstance(found, list):
        return [dataclasses.asdict(x) for x in found]
    return found if isinstance(found, str | float | np.ndarray | None) else str(found)


@dataclass(frozen=True)
class TaskModel:
    """A model that a server has loaded, with an object for each task that it can do.

    Args:
        name: Name of the model.
        tools: The objects, by task.
        loaded: When it was loaded, in seconds since 1970.
    """

    name: str
    tools: Mapping[str, Any]
    loaded: int = field(default_factory=lambda: int(time.time()))

    @classmethod
    def load(cls, folder: Path, precision: str | None = None) -> TaskModel:
        """Load a saved model of `TASKS`.

        Raises:
            ValueError, ImportError: See `load` of the classes of `TASKS`.
        """
        first, *others = tasks_of(folder)
        tool = TASKS[first].loader.load(folder, precision)
        tools = {first: tool}
        for name in others:
            if TASKS[name].shared:  # one copy of the weights
                tools[name] = TASKS[name].loader.of(folder, tool.model, tool.tokenizer)
        return cls(folder.resolve().name, tools)

    def engine(self, name: str, **options: Any) -> TaskEngine:
        """Return the engine for a task with the options of a request."""
        return TaskEngine(name, self.tools[name], tuple(sorted(options.items())))


def tasks_of(folder: Path) -> list[str]:
    """Return the tasks for which a server can use a folder; none if it is for something else.

    Raises:
        ValueError: If its `config.json` is broken.
    """
    if not is_saved(folder):
        return []
    kinds = kinds_of(read_config(folder, "model"))
    served = [task.kind for task in TASKS.values()]
    return [str(kind.command) for kind in kinds if kind in served]
