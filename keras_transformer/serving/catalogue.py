"""The models of a server: which languages they translate between, and how they are called."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from keras_transformer.config import require
from keras_transformer.inference.translator import Translator
from keras_transformer.search import TRANSLATE, Search, spelled_out
from keras_transformer.system.extras import missing
from keras_transformer.text.languages import short_code

Pair = tuple[str, str]


class TranslatorEngine:
    """A translator between two languages, as a batcher calls it.

    Args:
        translator: it.
        options: of its search, as of `Translator.nbest`.
    """

    can_attend = True

    def __init__(self, translator: Translator, **options: Any):
        self.translator = translator
        self.max_length = translator.model.config.max_length
        self._search = Search.of(options, TRANSLATE)
        self._options = options

    def costs(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text."""
        return [len(ids) for ids in self.translator.tokenizer.encode_source(list(texts))]

    def search(
        self, texts: Sequence[str], num_hypotheses: int = 1, tokens_per_batch: int = 4096
    ) -> list[list[str]]:
        """The best translations of each text, best first.

        Args:
            texts: any.
            num_hypotheses: of each text, at most.
            tokens_per_batch: most source tokens that are computed at once, padding included.
        """
        found = self.translator.nbest(
            texts,
            num_hypotheses=num_hypotheses,
            tokens_per_batch=tokens_per_batch,
            **{**self._options, "beam_size": max(self._search.beam_size, num_hypotheses)},
        )
        return [[x.text for x in hypotheses] for hypotheses in found]


class SavedModelEngine:
    """An exported SavedModel; its search is as it was exported.

    Args:
        path: the version's folder.
    """

    can_attend = False
    max_length = None  # which a SavedModel does not say

    def __init__(self, path: Path):
        try:
            import tensorflow as tf
            import tensorflow_text  # noqa: F401  (its operations)
        except ImportError as error:
            raise missing(f"{path} is a SavedModel: serving it", "tensorflow") from error
        self._tf = tf
        self._model = tf.saved_model.load(os.fspath(path))
        signatures = {"translate", "nbest"}
        if not signatures <= set(self._model.signatures):
            raise ValueError(
                f"{path} must have the signatures {sorted(signatures)}, as a SavedModel that "
                f"keras-transformer exported has; it has {sorted(self._model.signatures)}"
            )

    def costs(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, about."""
        return [1 + len(text) // 4 for text in texts]

    def search(
        self, texts: Sequence[str], num_hypotheses: int = 1, tokens_per_batch: int = 4096
    ) -> list[list[str]]:
        """The best translations of each text, best first; no more than it was exported for.

        All texts are one batch.
        """
        name = "translate" if num_hypotheses == 1 else "nbest"
        found = self._model.signatures[name](texts=self._tf.constant(list(texts)))
        rows = found["translations"].numpy().reshape(len(texts), -1).tolist()
        decoded = [[x.decode() for x in row] for row in rows]
        if num_hypotheses == 1:
            return decoded
        kept = found["scores"].numpy() > -1e8  # below: no hypothesis
        return [
            [x for x, is_one in zip(row, real, strict=True) if is_one][:num_hypotheses]
            for row, real in zip(decoded, kept.tolist(), strict=True)
        ]


class Model:
    """A loaded model: its name, folder and languages, and an engine for each pair of these.

    Args:
        name: what it is called.
        folder: where it lies.
        pairs: the codes that requests use, and what the model calls these languages.
        make: makes the engine of a model's two languages.
        default: the pair that is meant if none is said.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        pairs: dict[Pair, Pair],
        make: Callable[[str, str], Any],
        default: Pair | None,
    ):
        self.name, self.folder, self.pairs, self.default = name, folder, pairs, default
        self._make = make
        self._engines: dict[Pair, Any] = {}

    def engine(self, pair: Pair) -> Any:
        """Return the engine of two languages."""
        if pair not in self._engines:
            self._engines[pair] = self._make(*self.pairs[pair])
        return self._engines[pair]


class Catalogue:
    """All models of a server.

    ```python
    catalogue = Catalogue.load(["saved_models/multi30k", "de-fr=serving/tatoeba"])
    engines = catalogue.route("en", "fr")  # of both, one after the other
    ```

    Where no model has a pair, two are used, through a third language.

    Args:
        models: the loaded ones; the first that has a pair serves it.

    Raises:
        ValueError: if there is none, or two have one name.
    """

    def __init__(self, models: Sequence[Model]):
        require(len(models) > 0, "models", models, "one or more")
        self.models = {model.name: model for model in models}
        if len(self.models) < len(models):
            raise ValueError(f"models must have different names, got {[x.name for x in models]}")
        self._direct: dict[str, dict[str, Model]] = {}
        for model in models:
            for source, target in model.pairs:
                self._direct.setdefault(source, {}).setdefault(target, model)
        self.sources = sorted(self._direct)

    @classmethod
    @spelled_out(Search, TRANSLATE)
    def load(
        cls,
        specifications: Iterable[str],
        *,
        precision: str | None = None,
        **options: Any,
    ) -> Catalogue:
        """Reads models and has each translate once, so that the first request need not wait.

        Args:
            specifications: `FOLDER` or `SOURCE-TARGET=FOLDER`: saved translators, or SavedModels
                (the folder that TensorFlow Serving is given, or one of its versions).
            precision: as of `Translator.load`.
            options: of the search of translators, as of `Translator.translate`.

        Raises:
            ValueError: if one is neither, or its languages are not known.
            ImportError: without TensorFlow, for a SavedModel.
        """
        Search.of(options, TRANSLATE)
        models = []
        for text in specifications:
            folder, pair = parse(str(text))
            path = _saved_model(folder)
            if path:
                models.append(_exported(folder, pair, path))
            else:
                models.append(_saved(folder, pair, options, precision))
            models[-1].engine(next(iter(models[-1].pairs))).search(["1"], 1)
        return cls(models)

    def targets(self, source: str) -> list[str]:
        """Languages that one is translated into."""
        direct = set(self._direct[source])
        further = direct.union(*(self._direct.get(x, ()) for x in direct))
        return sorted(further - {source})

    def route(self, source: str, target: str) -> list[Any]:
        """The engines that lead from one language to another: one, or two.

        Raises:
            ValueError: if there is no way.
        """
        require(source in self._direct, "source", source, f"one of {', '.join(self.sources)}")
        direct = self._direct[source]
        if target in direct:
            return [direct[target].engine((source, target))]
        for middle in sorted(direct):
            second = self._direct.get(middle, {}).get(target)
            if second and source != target:
                return [direct[middle].engine((source, middle)), second.engine((middle, target))]
        accepted = f"one of {', '.join(self.targets(source))} from {source}"
        raise ValueError(f"target must be {accepted}, got {target!r}")


def parse(text: str) -> tuple[Path, Pair | None]:
    """Reads `FOLDER` or `SOURCE-TARGET=FOLDER`: the folder, and the languages if they are said."""
    source, target, folder = re.fullmatch(r"(?:(\w{2,})-(\w{2,})=)?(.*)", text, re.DOTALL).groups()
    require(folder, "model", text, "FOLDER or SOURCE-TARGET=FOLDER")
    return Path(folder), (source, target) if source else None


def _exported(folder, pair, path):
    require(pair is not None, "model", str(folder), f"SOURCE-TARGET={folder}, being a SavedModel")
    name = (path.parent if path.name.isdecimal() else path).resolve().name
    engine = SavedModelEngine(path)
    return Model(name, folder, {pair: pair}, lambda source, target: engine, pair)


def _saved(folder, pair, options, precision):
    translator = Translator.load(folder, precision, *(pair or ()))
    tokenizer = translator.tokenizer
    own = translator.source_language, translator.target_language
    if tokenizer.target_languages and not pair:
        sources = tokenizer.source_languages or (own[0] or "en",)
        pairs = {}
        for names in itertools.product(sources, tokenizer.target_languages):
            codes = tuple(map(short_code, names))
            if codes[0] != codes[1]:
                pairs.setdefault(codes, names)
    elif None in own:
        raise ValueError(f"{folder} does not say its languages: give it as SOURCE-TARGET={folder}")
    else:
        pairs = {tuple(map(short_code, own)): own}
    default = None if None in own else tuple(map(short_code, own))

    def engine(source, target):
        return TranslatorEngine(translator.between(source, target), **options)

    return Model(folder.resolve().name, folder, pairs, engine, default)


def _saved_model(folder):
    """The folder of the SavedModel's highest version, or None if it is none."""
    if (folder / "saved_model.pb").is_file():
        return folder
    versions = [x for x in folder.glob("*/saved_model.pb") if x.parent.name.isdecimal()]
    return max(versions, key=lambda x: int(x.parent.name)).parent if versions else None
