"""The state of a job, from its start to its end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from keras_transformer.corpora.shards import Shard


@dataclass
class Outcome:
    """State of a job: its progress, and in the end its result.

    Args:
        shards: Number of shards of the job, or of its part with the option `shard`.
        lines: Number of lines in these shards.
        done: Number of shards that are done, those of earlier runs included.
        found: Number of shards that earlier runs had done.
        translated: Number of lines that this run has done, translated or scored.
        seconds: Seconds from the start of the workers to the last answer.
        failed: Errors of the shards that were given up, keyed by `str(shard)`.
        warnings: Number of warnings from the workers, for example about lines that were cut.
        warning: Text of the first warning.
        left: Number of lines that are neither done nor failed.
    """

    shards: int
    lines: int
    done: int = 0
    found: int = 0
    translated: int = 0
    seconds: float = 0.0
    failed: dict[str, str] = field(default_factory=dict)
    warnings: int = 0
    warning: str = ""
    left: int = 0

    @property
    def rate(self) -> float:
        """Lines per second of this run."""
        return self.translated / self.seconds if self.seconds else 0.0

    @property
    def seconds_left(self) -> float | None:
        """Estimated seconds until the job ends; None before the first shard is done."""
        return self.left / self.rate if self.rate else None

    def add(self, shard: Shard, answer: dict[str, Any]) -> None:
        """Update the counts with a worker's answer for a shard, see `worker.Worker.do`."""
        self.left -= shard.lines
        if "error" in answer:
            self.failed[str(shard)] = answer["error"]
            return
        self.done += 1
        self.translated += shard.lines
        if "warnings" in answer:
            self.warning = self.warning or answer["warning"]
            self.warnings += answer["warnings"]


class ShardError(RuntimeError):
    """Raised at the end of a job if shards were given up; all others are done.

    Args:
        outcome: State of the job.
    """

    def __init__(self, outcome: Outcome):
        self.outcome = outcome
        told = "; ".join(f"{shard}: {error}" for shard, error in outcome.failed.items())
        super().__init__(
            f"{len(outcome.failed)} of {outcome.shards} shards failed, the others are done: {told}"
        )
