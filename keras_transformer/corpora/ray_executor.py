"""The Ray executor: Ray Data over shards, with a pool of actors on a cluster or on this machine."""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import traceback
from collections.abc import Generator, Sequence
from typing import Any

from keras_transformer.config import require
from keras_transformer.corpora.job_options import JobOptions
from keras_transformer.corpora.shards import Shard
from keras_transformer.system.extras import missing


def on_ray(
    job: dict[str, Any], shards: Sequence[Shard], options: JobOptions
) -> Generator[dict[str, Any]]:
    """Process shards on actors of Ray; yield each answer of `worker.Worker` as it arrives.

    Ray Data receives the numbers and paths of shards, not their lines, so it needs little memory.
    Ray restarts actors that die. All machines must see the model, the inputs and the output folder
    at the same paths, and have this package installed.

    Args:
        job: Values of a `job.Job`.
        shards: Shards to process.
        options: Options of the executor.

    Raises:
        ImportError: If Ray is not installed.
        ValueError: If the cluster has too few GPUs for the minimum number of actors; all GPUs of an
            actor are in one machine.
    """
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise missing('executor="ray"', "ray") from error
    least, most = (min(x, len(shards)) for x in (options.min_processes or 1, options.processes))
    is_ours = not ray.is_initialized()
    if is_ours:
        _connect(ray, options, most)
    try:
        if options.gpus:
            gpus = [x["Resources"].get("GPU", 0) for x in ray.nodes() if x["Alive"]]
            # The number of actors that fit: all GPUs of an actor are in one machine.
            room = sum(int(number // options.gpus) for number in gpus)
            accepted = f"few enough for {least} actors on machines with {gpus} GPUs"
            require(room >= least, "gpus", options.gpus, accepted)
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = context.print_on_execution_start = False
        items = [{"shard": json.dumps(dataclasses.asdict(shard))} for shard in shards]
        answers = ray.data.from_items(items, override_num_blocks=len(items)).map_batches(
            _Actor,
            fn_constructor_args=(job,),
            batch_size=1,
            compute=ray.data.ActorPoolStrategy(min_size=least, max_size=most),
            num_cpus=1,
            num_gpus=options.gpus,
        )
        for row in answers.iter_rows():
            yield json.loads(row["answer"])
    finally:
        if is_ours:
            ray.shutdown()


def _connect(ray, options, actors):
    """Connect to the cluster, or start Ray on this machine with a core for each actor."""
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    address = options.ray_address or os.environ.get("RAY_ADDRESS")
    resources = {} if address else dict(num_cpus=actors, include_dashboard=False)
    # KERAS_BACKEND of this process also applies to the actors, on all machines.
    environment = {x: os.environ[x] for x in ("KERAS_BACKEND",) if x in os.environ}
    ray.init(
        address=address or "local",
        runtime_env={"env_vars": environment},
        logging_level=logging.WARNING,
        log_to_driver=False,
        **resources,
    )


class _Actor:
    """A Ray actor with a `Worker`: Ray Data calls it with batches of one shard."""

    def __init__(self, job):
        # Imported here, because the driver needs no framework.
        from keras_transformer.backend import keep_compilations
        from keras_transformer.corpora.worker import Worker

        keep_compilations()
        self.worker = Worker(job)

    def __call__(self, batch):
        (shard,) = batch["shard"]
        try:
            answer = self.worker.do(Shard.of(json.loads(shard)))
        except Exception:
            traceback.print_exc()
            os._exit(1)  # Ray replaces the actor, whose process may be in any state
        return {"answer": [json.dumps(answer)]}
