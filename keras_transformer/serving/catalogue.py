"""The models of a server and their languages."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from keras_transformer.config import require
from keras_transformer.saved.contents import CONFIG
from keras_transformer.search import TRANSLATE, Search, spelled_out
from keras_transformer.serving.handlers import ExportedHandler, TranslatorHandler
from keras_transformer.serving.task_models import TaskModel, tasks_of
from keras_transformer.serving.versions import FIRST, Version, Versions, versions_of
from keras_transformer.serving.writers import LanguageModel, is_language_model
from keras_transformer.system.files import read_json
from keras_transformer.text.languages import short_code
from keras_transformer.translate.engines.exported import exported_engine
from keras_transformer.translate.quality_estimation import QualityEstimator
from keras_transformer.translate.translator import Translator

Pair = tuple[str, str]


class Model:
    """A loaded translator: its name, folder and language pairs, with a handler for each pair.

    Args:
        name: Name of the model.
        folder: Folder of the model.
        pairs: Maps language pairs in the codes of requests to the model's own codes.
        make: Function that makes the handler for a pair, in the codes of requests.
        default: The pair of requests that name no languages; None: they are refused.
        version: Version of the model.
        estimated: The pair whose translations have an estimate of quality; None: there is none.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        pairs: dict[Pair, Pair],
        make: Callable[[Pair], Any],
        default: Pair | None,
        version: Version = FIRST,
        estimated: Pair | None = None,
    ):
        self.name, self.folder, self.pairs, self.default = name, folder, pairs, default
        self.version, self.estimated = version, estimated
        self._make = make
        self._handlers: dict[Pair, Any] = {}

    def handler(self, pair: Pair) -> Any:
        """Return the handler for a language pair in the codes of requests; made on first use."""
        if pair not in self._handlers:
            self._handlers[pair] = handler = self._make(pair)
            handler.name, handler.version = self.name, self.version.number
        return self._handlers[pair]

    @property
    def search(self) -> dict[str, Any]:
        """The search options in the folder's `config.json`; empty if it has no such file."""
        path = self.folder / CONFIG
        return Search.saved(read_json(path), path) if path.is_file() else {}

    def facts(self) -> dict[str, Any]:
        """Return JSON values that describe the model: a replica sends them to its server."""
        handler = self.handler(next(iter(self.pairs)))
        return dict(
            name=self.name,
            version=self.version,
            folder=str(self.folder),
            pairs=list(self.pairs.items()),
            default=self.default,
            max_length=handler.max_length,
            can_attend=handler.can_attend,
            estimated=self.estimated,
            can_score=handler.can_score,
            takes_terms=handler.takes_terms,
            takes_style=handler.takes_style,
        )


class Catalogue:
    """All models of a server: translators, language models, and those of other tasks.

    ```python
    catalogue = Catalogue.load(["saved_models/multi30k", "de-fr=serving/tatoeba"])
    handlers = catalogue.route("en", "fr")  # two handlers, to run one after the other
    ```

    If no model translates between two languages, two models are chained through a third language.

    Args:
        models: Loaded translators; those of the same name are versions of a model. If several
            models have a language pair, the first of them serves it.
        writers: Loaded language models.
        tools: Loaded models of other tasks, those of `task_models.TASKS`.
        cold: One function for each translator that has not translated yet; the server calls it, so
            that the first request does not wait.

    Raises:
        ValueError: If there are no models, models of different kinds have the same name, or
            versions of a translator have the same number or differ in their languages.
    """

    def __init__(
        self,
        models: Sequence[Model],
        writers: Sequence[LanguageModel] = (),
        tools: Sequence[TaskModel] = (),
        cold: Sequence[Callable[[], Any]] = (),
    ):
        versions: dict[str, list[Model]] = {}
        for model in models:
            versions.setdefault(model.name, []).append(model)
        names = [*versions, *(x.name for x in writers), *(x.name for x in tools)]
        require(len(names) > 0, "models", names, "one or more")
        if len(set(names)) < len(names):
            raise ValueError(f"models must have different names, got {names}")
        self.models = {name: Versions(x) for name, x in versions.items()}
        self.writers = {writer.name: writer for writer in writers}
        self.tools = {tool.name: tool for tool in tools}
        self.cold = cold
        self._direct: dict[str, dict[str, Versions]] = {}
        for model_versions in self.models.values():
            for source, target in model_versions.any.pairs:
                self._direct.setdefault(source, {}).setdefault(target, model_versions)
        self.sources = sorted(self._direct)
        self.languages = sorted({x for model in models for pair in model.pairs for x in pair})

    @classmethod
    @spelled_out(Search, TRANSLATE)
    def load(
        cls,
        specifications: Iterable[str],
        *,
        precision: str | None = None,
        engine: str = "keras",
        warm_up: bool = True,
        **options: Any,
    ) -> Catalogue:
        """Load models, and translate once with each translator, so that no request waits for it.

        Args:
            specifications: `FOLDER` or `SOURCE-TARGET=FOLDER`, with the folder of a saved
                translator, of a SavedModel, of ONNX graphs, or of versions of these (see
                `versions_of`); or `FOLDER` of another saved model.
            precision: Precision of the models, as in `Translator.load`.
            engine: Engine of saved translators, as in `Translator.load`.
            warm_up: False leaves the first translations to the server, see `cold`.
            options: Search options of translators, as in `Translator.translate`.

        Raises:
            ValueError: If a folder is none of these, or its languages are unknown; see also
                `Catalogue`.
            ImportError: If a library is missing, such as TensorFlow for a SavedModel.
        """
        Search.of(options, TRANSLATE)
        models, writers, tools = list[Model](), list[LanguageModel](), list[TaskModel]()
        cold = list[Callable[[], Any]]()

        def add(text):
            folder, pair = parse(text)
            is_writer = is_language_model(folder)
            if is_writer or tasks_of(folder):
                require(pair is None, "model", text, f"{folder}: only translators have pairs")
                if is_writer:
                    writers.append(LanguageModel.load(folder, precision))
                else:
                    tools.append(TaskModel.load(folder, precision))
                return
            before = {model.name for model in models}
            for place, version in versions_of(folder):
                if exported := exported_engine(place):
                    model = _exported(place, pair, exported, options)
                else:
                    model = _saved(place, pair, options, precision, engine)
                if place != folder:
                    model.name, model.version = folder.resolve().name, version
                if model.name in before:
                    raise ValueError(f"models must have different names, got {model.name!r} twice")
                loaded = model.handler(next(iter(model.pairs)))
                cold.append(partial(_translate_once, loaded))
                if warm_up:
                    cold.pop()()
                models.append(model)

        for text in map(str, specifications):
            try:
                add(text)
            except Exception as error:
                error.add_note(f"while loading {text}")
                raise
        return cls(models, writers, tools, cold)

    def code(self, language: str) -> str:
        """Return a served language's code for any case, such as "de" for "DE"; else `language`."""
        known = {code.lower(): code for code in self.languages}
        return known.get(language.lower(), language)

    def targets(self, source: str) -> list[str]:
        """Return the languages into which a source language is translated, by one or two models."""
        direct = set(self._direct[source])
        further = direct.union(*(self._direct.get(x, ()) for x in direct))
        return sorted(further - {source})

    def route(self, source: str, target: str) -> list[Any]:
        """Return the one or two handlers that translate from one language to another.

        If a model has several versions, one is drawn at random, weighted by their shares.

        Raises:
            ValueError: If the source is unknown, or cannot be translated to the target.
        """
        if not self.sources:
            raise ValueError("no translator is served: see /docs for what the other models do")
        require(source in self._direct, "source", source, f"one of {', '.join(self.sources)}")
        direct = self._direct[source]
        if target in direct:
            return [direct[target].chosen().handler((source, target))]
        for middle in sorted(direct):
            second = self._direct.get(middle, {}).get(target)
            if second and source != target:
                first = direct[middle].chosen().handler((source, middle))
                return [first, second.chosen().handler((middle, target))]
        accepted = f"one of {', '.join(self.targets(source))} from {source}"
        raise ValueError(f"target must be {accepted}, got {target!r}")


def _translate_once(handler):
    handler.search(handler.read(["1"])[0], 1)


def parse(text: str) -> tuple[Path, Pair | None]:
    """Parse `FOLDER` or `SOURCE-TARGET=FOLDER`; return the folder, and the languages or None."""
    source, target, folder = re.findall(r"(?:(\w{2,})-(\w{2,})=)?(.*)", text, re.DOTALL)[0]
    require(folder, "model", text, "FOLDER or SOURCE-TARGET=FOLDER")
    return Path(folder), (source, target) if source else None


def _exported(folder, pair, exported, options):
    """Return the `Model` of an exported translator, for the given pair of languages."""
    accepted = f"SOURCE-TARGET={folder}, for {exported.carried.kind}"
    require(pair is not None, "model", str(folder), accepted)
    place = folder.resolve()
    is_version = place.name.isdecimal() and (place / "saved_model.pb").is_file()
    name = (place.parent if is_version else place).name
    version = Version(str(int(place.name))) if is_version else FIRST
    handler = ExportedHandler(exported, **options)
    return Model(name, folder, {pair: pair}, lambda pair: handler, pair, version)


def _saved(folder, pair, options, precision, engine):
    """Return the `Model` of a saved translator, with all its pairs of languages."""
    source, target = pair or (None, None)
    translator = Translator.load(folder, precision, source, target, engine)
    tokenizer = translator.tokenizer
    source, target = translator.source_language, translator.target_language
    pairs: dict[Pair, Pair] = {}
    if tokenizer.target_languages and not pair:
        sources = tokenizer.source_languages or (source or "en",)
        every = itertools.product(sources, tokenizer.target_languages)
        for names in translator.directions or every:
            codes = short_code(names[0]), short_code(names[1])
            if codes[0] != codes[1]:
                pairs.setdefault(codes, names)
    elif source is None or target is None:
        raise ValueError(f"{folder} does not name its languages: give it as SOURCE-TARGET={folder}")
    else:
        pairs[short_code(source), short_code(target)] = source, target
    default = (short_code(source), short_code(target)) if source and target else None
    estimator = QualityEstimator.read(folder, **options)

    languages = estimator and tuple(estimator.languages)
    estimated = next((codes for codes, names in pairs.items() if names == languages), None)

    def make(pair):
        pair_translator = translator.between(*pairs[pair])
        return TranslatorHandler(
            pair_translator, estimator if pair == estimated else None, **options
        )

    return Model(folder.resolve().name, folder, pairs, make, default, estimated=estimated)
