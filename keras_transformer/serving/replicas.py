"""Processes that hold the models of a server and compute its batches."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Any

from keras_transformer.config import require, require_whole
from keras_transformer.search import TRANSLATE, Search, spelled_out
from keras_transformer.serving.catalogue import Catalogue, Model, parse
from keras_transformer.serving.handlers import ReplicaHandler
from keras_transformer.serving.replica import COMMAND, Replica
from keras_transformer.serving.task_models import tasks_of
from keras_transformer.serving.versions import Version
from keras_transformer.serving.writers import is_language_model
from keras_transformer.system.child import ChildEndedError
from keras_transformer.text import load_tokenizer

log = logging.getLogger("keras_transformer.serving")
TRIES = 3  # attempts to compute a batch; it fails if the replica ends in each of them
LONGEST_BATCH = 600.0  # maximum seconds for a batch; a process that takes longer is killed
LONGEST_PAUSE = 5.0  # maximum seconds between attempts to start a process
_VISIBLE = "CUDA_VISIBLE_DEVICES"


class Replicas:
    """The replicas of a server; one that ends is started again.

    ```python
    replicas = Replicas(["saved_models/grammar"], count=2)
    app = create_app(replicas.load, replicas=replicas)
    ```

    Args:
        specifications: The models, as for `Catalogue.load`.
        count: Number of processes. Each has a copy of the models, and its share of the cores.
        devices: The GPU of each process: its number or UUID, as in CUDA_VISIBLE_DEVICES; None: all
            processes see all GPUs.
        precision: As for `Catalogue.load`.
        engine: As for `Catalogue.load`.
        options: Search options, as for `Catalogue.load`.

    Raises:
        ValueError: If `count`, `devices` or a search option is out of range.
        NotImplementedError: If a model is not a translator.
    """

    @spelled_out(Search, TRANSLATE)
    def __init__(
        self,
        specifications: Iterable[str],
        count: int,
        devices: Sequence[str] | None = None,
        *,
        precision: str | None = None,
        engine: str = "keras",
        **options: Any,
    ):
        require_whole("count", count, 1)
        Search.of(options, TRANSLATE)
        self.count, self.devices = count, _checked(devices, count)
        # Called before each attempt to start a replica that has ended.
        self.restarted: Callable[[], None] = lambda: None
        specifications = [str(x) for x in specifications]
        for text in specifications:
            if is_language_model(parse(text)[0]):
                raise NotImplementedError(
                    f"{text} is a language model, which replicas cannot serve: serve it without "
                    "--replicas, or export it to Hugging Face's format for vLLM"
                )
            if tasks_of(parse(text)[0]):
                raise NotImplementedError(
                    f"{text} is no translator, and replicas serve translators only: serve it "
                    "without --replicas"
                )
        self._task = dict(
            specifications=specifications,
            options={"precision": precision, "engine": engine, **options},
        )
        self._cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
        self._changed = threading.Condition()
        self._closed = threading.Event()
        self._running: set[Replica] = set()  # all processes
        self._places: list[Replica] = []  # replicas that compute, by number

    def load(self) -> Catalogue:
        """Start the replicas, or replace running ones one by one; return their models.

        Each new replica loads its models before it replaces an old one, and the old one finishes
        its batch.

        Raises:
            ValueError, ImportError, OSError: If the models cannot be loaded. Replicas that were
                not replaced yet stay.
            ChildEndedError, RuntimeError: As in `Replica.load`.
        """
        if self._places:
            for number in range(self.count):
                fresh = self._loaded(self._start(number))
                self._replace(number, None, fresh)
            return self._catalogue(fresh)
        with ThreadPoolExecutor(self.count) as executor:
            try:
                every = [self._start(number) for number in range(self.count)]
                for done in as_completed([executor.submit(self._loaded, x) for x in every]):
                    done.result()
                catalogue = self._catalogue(every[0])
            except BaseException:  # one failed: do not wait for the others
                self.close()
                raise
        self._places = every
        for number in range(self.count):
            threading.Thread(target=self._keep, args=(number,), daemon=True).start()
        return catalogue

    def alive(self) -> int:
        """Return the number of replicas that can compute."""
        return sum(replica.is_alive() for replica in self._places)

    def ask(self, *arguments: Any) -> Any:
        """Let a free replica compute; if it ends, ask another, up to `TRIES` times.

        Raises:
            ChildEndedError: If the replica ended each time.
            ValueError, ImportError, OSError: As in `Replica.ask`.
            RuntimeError: If the computation failed, or the replicas are closed.
        """
        for attempt in range(1, TRIES + 1):
            replica = self._take()
            watch = threading.Timer(LONGEST_BATCH, replica.stop)
            watch.start()
            try:
                return replica.ask(*arguments)
            except ChildEndedError as error:
                if attempt == TRIES:
                    raise
                log.warning("%s: its batch is computed again", error)
            finally:
                watch.cancel()
                self._give_back(replica)

    def close(self) -> None:
        """End the processes."""
        with self._changed:
            self._closed.set()
            self._changed.notify_all()
            running, self._running = self._running, set()
        for replica in running:
            replica.stop()

    def _start(self, number):
        """Start the process of a replica with its share of the cores and its device."""
        # If Keras is not loaded here, the new process chooses its backend by itself.
        keras = sys.modules.get("keras")
        variables = {"KERAS_BACKEND": keras.config.backend()} if keras else {}
        device = self.devices and self.devices[number]
        if device is not None:
            variables[_VISIBLE] = device
        cores = self._cores[number :: self.count] or self._cores
        with self._changed:
            if self._closed.is_set():
                raise RuntimeError("the replicas are closed")
            replica = Replica(self._task | {"device": device}, cores, variables, COMMAND)
            self._running.add(replica)
        return replica

    def _loaded(self, replica):
        """Wait until a replica has its models, and return it; stop it if that fails."""
        try:
            replica.load()
        except BaseException:
            self._stop(replica)
            raise
        return replica

    def _stop(self, replica):
        with self._changed:
            self._running.discard(replica)
        replica.stop()

    def _catalogue(self, replica):
        return Catalogue([_model(facts, self.ask) for facts in replica.models])

    def _take(self):
        """Wait for a free replica, mark it as busy, and return it."""
        with self._changed:
            while not self._closed.is_set():
                for replica in self._places:
                    if not replica.busy and replica.is_alive():
                        replica.busy = True
                        return replica
                self._changed.wait()
        raise RuntimeError("the replicas are closed")

    def _give_back(self, replica):
        with self._changed:
            replica.busy = False
            replaced = replica not in self._places
            self._changed.notify()
        if replaced:
            self._stop(replica)

    def _replace(self, number, old, fresh):
        """Replace a replica by a loaded one, and stop the replaced one.

        If `old` is given but is not in place any more, stop the loaded one instead.
        """
        with self._changed:
            current = self._places[number]
            if self._closed.is_set() or old not in (None, current):
                current = fresh
            else:
                self._places[number] = fresh
                self._changed.notify()
            busy = current.busy
        if not busy:  # a busy one is stopped after its batch
            self._stop(current)

    def _keep(self, number):
        """Restart the replica `number` whenever it ends. Runs in a thread."""
        while not self._closed.is_set():
            replica = self._places[number]
            replica.wait()
            pause = 0.1
            while not self._closed.is_set() and self._places[number] is replica:
                log.warning("replica %d of %d ended: it is started again", number, self.count)
                self.restarted()
                try:
                    self._replace(number, replica, self._loaded(self._start(number)))
                except Exception as error:
                    if not self._closed.is_set():
                        log.error("replica %d, next attempt in %g s: %s", number, pause, error)
                        self._closed.wait(pause)
                        pause = min(2 * pause, LONGEST_PAUSE)


def _model(facts, ask):
    """Return a `Model` from its facts: languages and tokenizer are here, weights in replicas."""
    name, folder = facts["name"], Path(facts["folder"])
    version = Version(*facts["version"])
    pairs = {tuple(codes): names for codes, names in facts["pairs"]}
    # The server does not need the tokenizer of an exported model.
    tokenizer = load_tokenizer(folder) if facts["can_attend"] else None

    def handler(pair):
        pair_tokenizer = tokenizer and tokenizer.between(*pairs[pair])
        return ReplicaHandler(
            partial(ask, name, version.number, pair),
            pair_tokenizer,
            facts["max_length"],
            facts["can_attend"],
            can_estimate=[*pair] == facts["estimated"],
            can_score=facts["can_score"],
            takes_terms=facts["takes_terms"],
            takes_style=facts["takes_style"],
        )

    default = facts["default"] and tuple(facts["default"])
    return Model(name, folder, pairs, handler, default, version)


def _checked(devices, count):
    """Return the devices as a list; raise ValueError unless there is one per replica."""
    if devices is None:
        return None
    require(len(devices) == count, "devices", devices, f"{count}, one for each replica")
    visible = os.environ.get(_VISIBLE)
    for device in devices:
        require(device, "devices", devices, "the numbers or UUIDs of GPUs")
        if visible is not None:
            accepted = f"among those in {_VISIBLE}, {visible}"
            require(device in visible.split(","), "devices", device, accepted)
    return list(devices)
