"""Engines of exported translators, SavedModels and graphs, which contain their tokenizers."""

from __future__ import annotations

import abc
import importlib.util
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_transformer.config import require, require_whole
from keras_transformer.running.inputs import Request, same_number
from keras_transformer.search import Search
from keras_transformer.system.extras import missing
from keras_transformer.system.git_lfs import refuse_pointer
from keras_transformer.system.processor import num_threads
from keras_transformer.text.tokenizer import checked_texts
from keras_transformer.translate.engines.carried import (
    LITERT,
    ONNX,
    SAVED_MODEL,
    Carried,
)
from keras_transformer.translate.engines.ctranslate2_search import shares
from keras_transformer.translate.engines.engine import Hypothesis
from keras_transformer.translate.engines.graph_runner import GraphTranslator

NONE = -1e8  # a SavedModel gives lower scores to beam slots without a hypothesis


def saved_model_in(folder: Path) -> Path | None:
    """Return the folder of a SavedModel's highest version; None if `folder` is no SavedModel."""
    if (folder / "saved_model.pb").is_file():
        return folder
    versions = [x for x in folder.glob("*/saved_model.pb") if x.parent.name.isdecimal()]
    return max(versions, key=lambda x: int(x.parent.name)).parent if versions else None


def exported_engine(folder: str | os.PathLike) -> ExportedEngine | None:
    """Load the engine of a folder that an export wrote; None if it is not such a folder.

    Raises:
        ImportError: If the package that runs the export is missing.
        ValueError: If the folder has a SavedModel that is not a translator.
    """
    folder = Path(folder)
    if path := saved_model_in(folder):
        return SavedModelEngine(path)
    for kind in (OnnxEngine, LiteRTFolderEngine):
        if all((folder / x).is_file() for x in (*kind.files, "translator.json")):
            return kind(folder)
    return None


class Unavailable:
    """Placeholder for a part that an exported translator gives no access to.

    Any access to an attribute raises AttributeError.

    Args:
        what: Name of the part, for the message: "config", "model" or "tokenizer".
    """

    def __init__(self, what: str):
        self._what = what

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"an exported translator shows no {self._what}, and so no {self._what}.{name}: load "
            "the folder that it was exported from"
        )

    def between(self, source_language: str | None, target_language: str | None) -> Unavailable:
        """Return this object: the languages of an exported translator cannot be changed.

        Raises:
            ValueError: If a language is given.
        """
        for name, code in dict(source=source_language, target=target_language).items():
            accepted = "None: those of an exported translator were chosen at its export"
            require(code is None, f"{name}_language", code, accepted)
        return self


class ExportedEngine(abc.ABC):
    """Base class of the engines of exported translators.

    Attributes:
        carried: The search options that the engine accepts.
    """

    carried: Carried

    def __init__(self):
        self.config: Any = Unavailable("config")
        self.model: Any = Unavailable("model")
        self.tokenizer: Any = Unavailable("tokenizer")

    def options(
        self,
        given: Mapping[str, Any],
        accepted: Collection[str],
        defaults: Mapping[str, Any] | None = None,
        **others: Any,
    ) -> Search:
        """Return the search options of a call, see `Search.of`.

        Raises:
            ValueError: If this engine does not accept an option.
        """
        return self.carried.options(given, accepted, defaults, **{**self.defaults(), **others})

    def defaults(self) -> dict[str, Any]:
        """Return the defaults of this engine that differ from those of `Search`, by name."""
        return {}

    def search(self, tokenizer: Any, request: Request, search: Search) -> list[list[Hypothesis]]:
        """Return the hypotheses of each text, best first.

        Raises:
            ValueError: If the request has an option that this engine does not accept.
        """
        self.carried.check_request(request)
        require_whole("tokens_per_batch", request.tokens_per_batch, 1)
        texts = request.texts
        results: list[list[Hypothesis]] = [[] for _ in texts]
        costs = [estimate(text) for text in texts]
        for chosen in shares(costs, request.tokens_per_batch):
            lists = self.nbest([texts[i] for i in chosen], search)
            for i, hypotheses in zip(chosen, lists, strict=True):
                results[i] = hypotheses
        return results

    @abc.abstractmethod
    def nbest(self, texts: list[str], search: Search) -> list[list[Hypothesis]]:
        """Return the hypotheses of each text of one batch, best first."""

    @abc.abstractmethod
    def score(
        self, tokenizer: Any, sources: Sequence[str], targets: Sequence[str], tokens_per_batch: int
    ) -> list[float]:
        """Return log p(target | source) of each pair, see `running.scoring.score_pairs`."""


def estimate(text: str) -> int:
    """Return an estimate of the number of tokens of a text: one per four characters, plus one."""
    return 1 + len(text) // 4


def _register_operations(tf):
    """Register the operations of tensorflow_text, without its Python code, which imports Keras.

    Raises:
        ImportError: If tensorflow_text is not installed.
    """
    spec = importlib.util.find_spec("tensorflow_text")
    if spec is None:
        raise ModuleNotFoundError("No module named 'tensorflow_text'", name="tensorflow_text")
    for folder in spec.submodule_search_locations or ():
        for path in sorted(Path(folder, "python", "ops").glob("_*.so")):
            tf.load_op_library(os.fspath(path))


class SavedModelEngine(ExportedEngine):
    """Engine of a SavedModel, whose search options were fixed at its export.

    Args:
        path: Folder with `saved_model.pb`.
    """

    carried = SAVED_MODEL

    def __init__(self, path: Path):
        super().__init__()
        try:
            import tensorflow as tf

            _register_operations(tf)
        except ImportError as error:
            raise missing(f"{path} is a SavedModel: running it", "tensorflow") from error
        self._tf, self._path = tf, path
        self._model = tf.saved_model.load(os.fspath(path))
        signatures = {"translate", "nbest"}
        if not signatures <= set(self._model.signatures):
            raise ValueError(
                f"{path} must have the signatures {sorted(signatures)}, as SavedModels exported by "
                f"keras-transformer do; it has {sorted(self._model.signatures)}"
            )

    def defaults(self) -> dict[str, Any]:
        """Return the `beam_size` of the export, read from the shape of the output of `nbest`."""
        shape = self._model.signatures["nbest"].structured_outputs["translations"].shape
        return {} if shape[1] is None else {"beam_size": int(shape[1])}

    def translations(self, texts: Sequence[str]) -> list[str]:
        """Return the best translation of each text of one batch."""
        lines = self._call("translate", texts=texts)["translations"]
        return [x.decode() for x in lines.numpy().tolist()]

    def nbest(self, texts: Sequence[str], search: Search | None = None) -> list[list[Hypothesis]]:
        """Return the hypotheses of each text of one batch, best first; `search` is not used."""
        outputs = self._call("nbest", texts=texts)
        rows, scores = (outputs[name].numpy().tolist() for name in ("translations", "scores"))
        return [
            [Hypothesis(x.decode(), score) for x, score in zip(*row, strict=True) if score > NONE]
            for row in zip(rows, scores, strict=True)
        ]

    def score(
        self, tokenizer: Any, sources: Sequence[str], targets: Sequence[str], tokens_per_batch: int
    ) -> list[float]:
        """Return log p(target | source) of each pair, from the signature `score`.

        Raises:
            ValueError: If the numbers of texts differ, or the SavedModel has no such signature.
        """
        if "score" not in self._model.signatures:
            raise ValueError(f"{self._path} cannot score: it has no signature `score`")
        sources, targets = checked_texts(sources, "sources"), checked_texts(targets, "targets")
        same_number(sources, targets)
        costs = [max(map(estimate, pair)) for pair in zip(sources, targets, strict=True)]
        logs = [0.0] * len(sources)
        for chosen in shares(costs, tokens_per_batch):
            pairs = dict(sources=[sources[i] for i in chosen], targets=[targets[i] for i in chosen])
            scores = self._call("score", **pairs)["scores"].numpy().tolist()
            for i, log in zip(chosen, scores, strict=True):
                logs[i] = log
        return logs

    def _call(self, name, **texts):
        tensors = {x: self._tf.constant(list(y), self._tf.string) for x, y in texts.items()}
        return self._model.signatures[name](**tensors)


class GraphEngine(ExportedEngine):
    """Base class of the engines of graphs, which translate texts one by one.

    Args:
        folder: The folder that the export wrote.

    Attributes:
        files: Names of the graphs' files.
        extra: The extra that runs them.
    """

    files: tuple[str, ...]
    extra: str

    def __init__(self, folder: Path):
        super().__init__()
        for path in [*(folder / x for x in self.files), *folder.glob("*.spm")]:
            refuse_pointer(path)
        try:
            self._translator = GraphTranslator(folder, num_threads())
        except ImportError as error:
            raise missing(f"{folder} holds {self.carried.kind}: running it", self.extra) from error

    def options(
        self,
        given: Mapping[str, Any],
        accepted: Collection[str],
        defaults: Mapping[str, Any] | None = None,
        **others: Any,
    ) -> Search:
        """Return the search options of a call; options not given are those of the export."""
        all_defaults = {**self._translator.facts.get("search", {}), **(defaults or {})}
        return super().options(given, accepted, all_defaults, **others)

    def nbest(self, texts: Sequence[str], search: Search) -> list[list[Hypothesis]]:
        """Return the hypotheses of each text, best first; texts are translated one by one."""
        options = {name: getattr(search, name) for name in ONNX.names}
        rows = [self._translator.nbest(text, **options) for text in texts]
        return [[Hypothesis(text, score) for text, score in row] for row in rows]

    def score(
        self, tokenizer: Any, sources: Sequence[str], targets: Sequence[str], tokens_per_batch: int
    ) -> list[float]:
        """Raise ValueError: the program can search, but cannot score a given translation."""
        raise ValueError(f"score needs a saved translator or a SavedModel, got {self.carried.kind}")


class OnnxEngine(GraphEngine):
    """Engine of the ONNX graphs of `export.onnx`, run by onnxruntime."""

    carried, files, extra = ONNX, ("encoder.onnx", "decoder.onnx"), "onnx"


class LiteRTFolderEngine(GraphEngine):
    """Engine of the graphs of `export.litert`, run by LiteRT."""

    carried, files, extra = LITERT, ("model.tflite",), "litert"
