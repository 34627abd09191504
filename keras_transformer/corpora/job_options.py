"""The options of a job over a corpus, which Python and the command line share."""

from __future__ import annotations

import dataclasses
import math
import re
from dataclasses import dataclass
from typing import Any

from keras_transformer.config import is_number, require
from keras_transformer.signatures import check_options, option, whole

EXECUTORS = ("local", "ray")


def _is_executor(name, value):
    require(value in EXECUTORS, name, value, f"one of {EXECUTORS}")


def _is_share(name, value):
    match = re.fullmatch(r"(\d+)/(\d+)", value) if isinstance(value, str) else None
    is_share = match is not None and int(match[1]) < int(match[2])
    require(is_share, name, value, 'part and number of parts, from "0/8" to "7/8", for example')


def _is_number_of_gpus(name, value):
    in_range = is_number(value) and value >= 0 and (value < 1 or value == math.floor(value))
    require(in_range, name, value, "a whole number, or with Ray a share below 1")


def _is_anything(name, value):
    return None


@dataclass(frozen=True)
class JobOptions:
    """Options of every job over a corpus.

    Raises:
        ValueError: If a value is out of its range, or the executor does not have the option.
    """

    executor: str = option(
        "local", _is_executor, "local: processes of this machine; ray: actors of a Ray cluster."
    )
    processes: int = option(
        1, whole(1), "Number of worker processes; with Ray, the maximum number of actors."
    )
    min_processes: int | None = option(
        None, whole(1), "With Ray: the minimum number of actors.  [default: 1]"
    )
    gpus: float = option(
        0, _is_number_of_gpus, "Number of GPUs of each worker; with Ray also a share, such as 0.5."
    )
    ray_address: str | None = option(
        None,
        _is_anything,
        "Address of a Ray cluster.  [default: RAY_ADDRESS, or a new Ray on this machine]",
    )
    shard_lines: int = option(50_000, whole(1), "Number of lines in a shard.")
    shard: str = option(
        "0/1",
        _is_share,
        "i/n: process only shards whose number leaves the remainder i when divided by n.",
    )
    only_plan: bool = option(
        False, _is_anything, "Check the inputs, write the manifest and stop; no model is loaded."
    )

    def __post_init__(self):
        check_options(self)
        if self.executor == "ray":
            accepted = f"at most processes={self.processes}"
            in_range = self.min_processes is None or self.min_processes <= self.processes
            require(in_range, "min_processes", self.min_processes, accepted)
        else:
            for name in ("min_processes", "ray_address"):
                value = getattr(self, name)
                require(value is None, name, value, 'left out unless executor is "ray"')
            require(
                self.gpus == int(self.gpus),
                "gpus",
                self.gpus,
                'a whole number unless executor is "ray"',
            )

    @property
    def part(self) -> tuple[int, int]:
        """The index of the part of the shards to process, from 0, and the number of parts."""
        part, parts = map(int, self.shard.split("/"))
        return part, parts

    @classmethod
    def changed(cls, options: dict[str, Any]) -> dict[str, Any]:
        """Return the options whose value is not the default."""
        defaults = {field.name: field.default for field in dataclasses.fields(cls)}
        return {name: value for name, value in options.items() if value != defaults[name]}

    @classmethod
    def take(cls, options: dict[str, Any]) -> JobOptions:
        """Remove the options of this class from a dictionary, and return them as an object."""
        fields = dataclasses.fields(cls)
        return cls(**{x.name: options.pop(x.name) for x in fields if x.name in options})


NAMES = tuple(field.name for field in dataclasses.fields(JobOptions))
