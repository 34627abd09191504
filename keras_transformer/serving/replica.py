"""Replicas, processes that compute for the server: the server's side and the process's side."""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from keras_transformer.system import child
from keras_transformer.system.child import Child

COMMAND = (
    sys.executable,
    "-c",
    "from keras_transformer.serving.replica import load, serve; serve(load)",
)
Models = list[dict[str, Any]]  # `catalogue.Model.facts` of each model
# Errors, and their subclasses, that the server raises as these types; others become RuntimeError.
_ERRORS = {kind.__name__: kind for kind in (ValueError, ImportError, OSError)}


class Replica(Child):
    """A process that holds the models and computes; the server's side of it.

    Args:
        task: Arguments of `load`.
        cores: Cores that the process may use; empty: all.
        variables: Variables of its environment, besides those of this process.
        command: The command that runs `serve`.
    """

    def __init__(
        self,
        task: dict[str, Any],
        cores: Sequence[int] = (),
        variables: Mapping[str, str] | None = None,
        command: Sequence[str] = COMMAND,
    ):
        super().__init__(command, variables, cores)
        self.busy = False
        self.models: Models = []
        self.send(task)

    def load(self) -> None:
        """Wait until the models are loaded; then `models` has the facts of each.

        Raises:
            ChildEndedError: If the process ended.
            ValueError, ImportError, OSError: If they cannot be loaded.
            RuntimeError: For any other error; the message has the process's traceback.
        """
        self.models = self._found()

    def ask(self, *arguments: Any) -> Any:
        """Let the process compute, and return its answer.

        Raises:
            ChildEndedError: If the process ended.
            ValueError, ImportError, OSError: If the process raised it.
            RuntimeError: If the computation failed; the message has the process's traceback.
        """
        self.send(arguments)
        return self._found()

    def _found(self):
        answer = self.receive()
        if "found" in answer:
            return answer["found"]
        raise _ERRORS.get(answer["error"], RuntimeError)(answer["message"])


def serve(load: Callable[..., tuple[Models, Callable[..., Any]]]) -> None:
    """Answer the requests of the server until the server ends.

    Args:
        load: Function called with the fields of the first request. It loads the models, and returns
            their facts, which are the answer to that request, and a function. Each further request
            is a list of the function's arguments; its result is the answer.
    """
    warnings.showwarning = _without_text
    compute = None

    def answer(message):
        nonlocal compute
        try:
            if compute is None:
                result, compute = load(**message)
            else:
                result = compute(*message)
            return {"found": result}
        except Exception as error:
            name = next((x for x, kind in _ERRORS.items() if isinstance(error, kind)), None)
            notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
            told = f"{error}{notes}" if name else traceback.format_exc()
            return {"error": name, "message": told}

    child.serve(answer)


def _without_text(message, *_, **__):
    """Print a warning without the value that it quotes, which may be a user's text."""
    print(f"WARNING: {str(message).partition(', got ')[0]}", file=sys.stderr, flush=True)


def load(
    specifications: Sequence[str], device: str | None, options: dict[str, Any]
) -> tuple[Models, Callable[..., Any]]:
    """Load the models of a server; return their facts and the function that computes.

    Args:
        specifications: The models, as for `Catalogue.load`.
        device: The GPU that this process must see; None: no GPU is required.
        options: Options of `Catalogue.load`.

    Raises:
        ValueError: If the backend sees no GPU but a device is given; see also `Catalogue.load`.
        ImportError: See `Catalogue.load`.
    """
    from keras_transformer.backend import BACKEND, count_gpus, keep_compilations
    from keras_transformer.serving.catalogue import Catalogue

    if device is not None and not count_gpus():
        raise ValueError(f"devices must be GPUs that {BACKEND} sees, got {device!r}")
    keep_compilations()
    catalogue = Catalogue.load(specifications, **options)

    models = {
        (name, number): model
        for name, versions in catalogue.models.items()
        for number, model in versions.by_number.items()
    }

    def compute(name, number, pair, method, *arguments):
        # While models are being replaced, only other replicas may have this version.
        others = (x for (model_name, _), x in reversed(models.items()) if model_name == name)
        model, pair = models.get((name, number)) or next(others, None), tuple(pair)
        if model is None or pair not in model.pairs:
            raise ValueError(f"{name} from {pair[0]} to {pair[1]} was replaced by other models")
        return getattr(model.handler(pair), method)(*arguments)

    return [model.facts() for model in models.values()], compute
