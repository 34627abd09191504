"""The place of this process among those of a run, which launchers write into the environment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from keras_transformer.config import require

PORT = 29_400  # port of process 0 if the environment names only its host


@dataclass(frozen=True)
class Place:
    """One of the processes that train a model together.

    Args:
        index: Number of this process, from 0.
        count: Number of processes.
        address: "host:port" of process 0, which listens at this port and the next; needed if there
            are several processes.
        local: Number of this process on its host, from 0; None: it is the only process there.

    Raises:
        ValueError: If a value is out of range.
    """

    index: int = 0
    count: int = 1
    address: str = ""
    local: int | None = None

    def __post_init__(self):
        require(self.count >= 1, "number of processes", self.count, "at least 1")
        accepted = f"from 0 to {self.count - 1}"
        require(0 <= self.index < self.count, "process index", self.index, accepted)
        if self.count > 1:
            match = re.fullmatch(r"\S+:\d+", self.address)
            require(match, "address of process 0", self.address, "host:port")


# Each launcher's variables: index, count, host or host:port of process 0, its port, local index.
_LAUNCHERS = (
    (  # Keras; with Kubernetes, the index may come from an indexed Job
        ("KERAS_DISTRIBUTION_PROCESS_ID", "JOB_COMPLETION_INDEX"),
        "KERAS_DISTRIBUTION_NUM_PROCESSES",
        "KERAS_DISTRIBUTION_JOB_ADDRESSES",
        "",
        "LOCAL_RANK",
    ),
    (("RANK",), "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK"),  # torchrun, Ray Train
    # A step of Slurm (`srun`). SLURM_NTASKS is not used: sbatch and salloc set it outside of steps.
    (
        ("SLURM_PROCID",),
        "SLURM_STEP_NUM_TASKS",
        "SLURM_STEP_NODELIST",
        "MASTER_PORT",
        "SLURM_LOCALID",
    ),
)


def place_in(environ: Mapping[str, str]) -> Place:
    """Return the place of this process; `Place()` if no launcher's variables are set.

    The variables of Keras (`KERAS_DISTRIBUTION_PROCESS_ID`, `_NUM_PROCESSES`, `_JOB_ADDRESSES`)
    come first, then those of torchrun and Ray Train (`RANK`, `WORLD_SIZE`, `MASTER_ADDR`,
    `MASTER_PORT`), then those of a step of Slurm.

    Args:
        environ: The environment, such as `os.environ`.

    Raises:
        ValueError: If a variable is missing, not a number, or out of range.
    """
    for indices, counted, host, port, local in _LAUNCHERS:
        if counted not in environ:
            continue
        named = next((name for name in indices if name in environ), None)
        if named is None:
            raise ValueError(f"{indices[0]} must be set, as {counted} is")
        count, index = _whole(environ, counted), _whole(environ, named)
        if count == 1:
            return Place(index, count)
        address = _first(environ.get(host, ""))
        if not address:
            raise ValueError(f"{host} must be set, as {counted} is")
        if not re.search(r":\d+$", address):
            # torchrun itself listens at this port, so the next one is used.
            address += f":{_whole(environ, port) + 1 if port in environ else PORT}"
        return Place(index, count, address, _whole(environ, local) if local in environ else None)
    return Place()


def _whole(environ, name):
    require(environ[name].isdecimal(), name, environ[name], "a whole number of at least 0")
    return int(environ[name])


def _first(hosts):
    """Return the first host: "a:1" of "a:1,b:1", "node03" of Slurm's "node[03-05,08],other"."""
    name, number = re.findall(r"([^,\[]*)(?:\[(\w+)[^\]]*\])?", hosts.strip())[0]
    return name + number
