"""Import of Marian's models: weights, tokenizer, search and shortlist."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_transformer.config import TransformerConfig, require
from keras_transformer.hub.marian.binary import BinaryFile, is_binary
from keras_transformer.hub.marian.marian_options import checked, config_of, read_yaml, search_of
from keras_transformer.hub.marian.npz import SUFFIX, ModelFile
from keras_transformer.hub.marian.outgoing import OURS, SHORTLIST, TOKENIZER, facts_of, restored
from keras_transformer.hub.marian.shortlists import read_shortlist
from keras_transformer.hub.marian.vocabularies import PAIR, SPM, suppressed, tokenizer_of
from keras_transformer.hub.marian.weight_names import OUTPUT, UNUSED, embedding, rules_of
from keras_transformer.models import Transformer
from keras_transformer.search import Search
from keras_transformer.system.git_lfs import read_bytes
from keras_transformer.text import MarianTokenizer, Tokenizer, load_tokenizer
from keras_transformer.text.lexical_shortlist import Shortlist
from keras_transformer.weights import assign_weights
from keras_transformer.weights.sizes import sized_by

DECODER = "decoder.yml"
DECODERS = (DECODER, "config.yml")
# How Firefox decodes, from the `bergamot.config.yml` of mozilla/firefox-translations-models.
FIREFOX = {"beam-size": 1, "normalize": 1.0, "max-length-factor": 2}
NEVER = -1e4  # bias of a piece that is never generated, in the range of float16


def is_marian(source: str | os.PathLike) -> bool:
    """Return whether a path is that of a model of Marian: an `.npz` file or a binary file.

    A folder must contain such a file, or options of a decoder, and no `config.json`.
    """
    path = Path(source)
    if path.is_dir():
        return not (path / "config.json").is_file() and bool(_decoders(path) or _models(path))
    return path.suffix == SUFFIX or is_binary(path)


def _decoders(folder: Path) -> list[Path]:
    """Return the files in a folder that may hold the options of a decoder."""
    paths = [folder / name for name in DECODERS]
    return [*filter(Path.is_file, paths), *sorted(folder.glob(f"*.{DECODER}"))]


def _models(folder: Path) -> list[Path]:
    return [*sorted(folder.glob(f"*{SUFFIX}")), *filter(is_binary, sorted(folder.glob("*.bin")))]


def _opened(path: Path) -> ModelFile:
    return BinaryFile(path) if is_binary(path) else ModelFile(path)


@dataclass(frozen=True)
class MarianModel:
    """A model of Marian.

    Args:
        file: The arrays and the options of the model.
        decoder: Options of its decoder: vocabularies and search.
        where: The file of these options, for messages.
        vocabularies: Paths of the vocabularies of source and target.
    """

    file: ModelFile
    decoder: Mapping[str, Any]
    where: Path
    vocabularies: tuple[Path, Path]

    @classmethod
    def read(cls, path: str | os.PathLike) -> MarianModel:
        """Open a model, without reading its weights.

        The options of its decoder are in the first of `FILE.decoder.yml` (FILE: the model's file
        name), `decoder.yml` and `config.yml` that exists beside it. Without them, the vocabularies
        are `source.spm` and `target.spm`, or `srcvocab.*.spm` and `trgvocab.*.spm`, or the only
        `.spm` file. The search then has Marian's defaults; with one file `*.s2t.bin` beside the
        model, which is its shortlist, it has the options of `FIREFOX`.

        Raises:
            FileNotFoundError: If a file is missing.
            ValueError: If a file is broken, or is not of Marian.
        """
        path = Path(path)
        file = _opened(path)
        places = [path.with_name(f"{path.name}.{DECODER}")]
        places += [path.with_name(name) for name in DECODERS]
        where = next(filter(Path.is_file, places), None)
        if where is None:
            return cls(file, _unnamed_options(path), path, _found(path))
        options = read_yaml(read_bytes(where), where)
        return cls(file, options, where, _named(options, where))

    @cached_property
    def tokenizer(self) -> MarianTokenizer:
        """The tokenizer.

        Raises:
            FileNotFoundError, ValueError: See `tokenizer_of`.
        """
        return tokenizer_of(self.vocabularies, self._options["dim-vocabs"], self.file.path)

    @cached_property
    def _options(self):
        theirs = checked(self.file.options, self.file.path)
        if theirs["dim-vocabs"] is None:
            raise ValueError(f"{self.file.path} lacks the option dim-vocabs")
        return theirs

    @cached_property
    def config(self) -> TransformerConfig:
        """Our config of the model.

        Raises:
            ValueError: If an option of the model is not supported; names it.
        """
        tokenizer, theirs = self.tokenizer, self._options
        name = "transformer-guided-alignment-layer"
        if (layer := self.file.options.get(name, "last")) != "last":
            warnings.warn(
                f"{name} of {self.file.path}, {layer}, is left out: words are aligned by the mean "
                "of the heads of a layer in the middle",
                stacklevel=2,
            )
        try:
            return config_of(theirs, tokenizer.target_vocab_size, tokenizer.eos_id)
        except ValueError as error:
            raise ValueError(f"{self.file.path} cannot be read: {error}") from error

    @property
    def search(self) -> dict[str, Any]:
        """The options with which our search equals Marian's."""
        search = search_of(self.decoder, suppressed(self.tokenizer), self.where)
        return search | ({"shortlist": True} if self.decoder.get("shortlist") else {})

    def shortlist(self, tokenizer: Tokenizer) -> Shortlist | None:
        """Read the shortlist that the options of the decoder name; None if they name none.

        Of a model that `export.marian` wrote, read also one that its search does not use.

        Args:
            tokenizer: The tokenizer of the model.

        Raises:
            FileNotFoundError: If there is no such file.
            ValueError: If it is broken, or of another vocabulary.
        """
        entry = self.decoder.get("shortlist")
        if not entry:
            ours = self.file.path.with_name(SHORTLIST)
            return read_shortlist(ours, tokenizer) if self.is_ours and ours.is_file() else None
        name, *rest = entry if isinstance(entry, list) else [entry]
        require(isinstance(name, str), f"shortlist in {self.where}", entry, "a path, first")
        path = _beside(self.where, name)
        if not path.is_file():
            raise FileNotFoundError(f"there is no shortlist {path}, which {self.where} names")
        # A text file is followed by numbers for `read_shortlist`, a binary file by true or false.
        numbers = [x for x in rest if type(x) in (int, float)]
        options = dict(zip(("frequent", "per_piece", "least"), numbers, strict=False))
        sizes = None if self.is_ours else self._options["dim-vocabs"]
        return read_shortlist(path, tokenizer, sizes=sizes, **options)

    def model(self, dtype: Any = None) -> keras.Model:
        """Return the model with its weights.

        Args:
            dtype: Keras dtype policy, such as "bfloat16". None: the global one.

        Raises:
            ValueError: If a weight is missing, of another shape, NaN or infinite, or the file has
                weights that the model lacks; names them.
        """
        config, theirs, names = self.config, self._options, self.file.names
        rules = rules_of(
            config,
            theirs["transformer-tied-layers"],
            not theirs["transformer-no-projection"],
            f"{OUTPUT}_W" not in names,
        )
        optional = {f"{OUTPUT}_b"} if theirs["output-omit-bias"] else set()
        self._check({name for rule in rules for name in rule.names} - optional)
        with sized_by(config, len(names), self.file.most_elements):
            model = Transformer(config, dtype=dtype)
        by_path = {rule.ours: rule for rule in rules}
        for weight in model.weights:
            shape, rule = tuple(weight.shape), by_path.get(weight.path)
            weight.assign(
                self._without_projection(shape) if rule is None else self._take(rule, shape)
            )
        return model

    @property
    def is_ours(self) -> bool:
        """Whether `export.marian` wrote the model in float32, so that `restored` can read it."""
        return OURS in self.file.specials

    def restored(self, dtype: Any = None) -> tuple[keras.Model, Tokenizer, dict[str, Any]]:
        """Return what `export.marian` wrote: the model, bit for bit, its tokenizer, and its facts.

        The facts are those of `outgoing.facts_of`.

        Args:
            dtype: See `model`.

        Raises:
            ValueError: If the tokenizer's folder beside the model is missing, or a file is broken.
        """
        folder = self.file.path.with_name(TOKENIZER)
        if not folder.is_dir():
            raise ValueError(f"{self.file.path} needs the folder {folder}, written beside it")
        arrays = {x: self.file.array(x) for x in self.file.names | self.file.specials}
        try:
            config, weights = restored(arrays)
            model = Transformer(config, dtype=dtype)
            assign_weights(weights, model)
            facts = facts_of(arrays)
            Search.saved({"search": facts.get("search") or {}}, OURS)
        except (KeyError, ValueError, TypeError) as error:
            raise ValueError(f"{self.file.path} is damaged: {error!r:.300}") from error
        return model, load_tokenizer(folder), facts

    def _check(self, needed):
        names, path = self.file.names, self.file.path
        if any("->" in name for name in names):
            raise ValueError(
                f"{path} was trained with TRANSFORMER_FLAVOR=experimental, whose layers are not "
                "supported"
            )
        if missing := sorted(needed - names):
            raise ValueError(f"{path} lacks the weights {', '.join(missing[:5])}")
        kept = {f"{OUTPUT}_b"}  # accepted, though unused, with output-omit-bias
        others = sorted(x for x in names - needed - kept if not x.endswith(UNUSED))
        if others:
            raise ValueError(f"{path} has weights that the model lacks: {', '.join(others[:5])}")

    def _take(self, rule, shape):
        try:
            return rule.take(self._array, shape)
        except ValueError as error:
            raise ValueError(f"{self.file.path} does not fit its options: {error}") from error

    def _without_projection(self, shape):
        """Return an output projection that changes nothing: its matrix, or a bias of zeros."""
        return np.eye(*shape) if len(shape) == 2 else np.zeros(shape)

    def _array(self, name):
        """Return an array, with a row for each piece that our vocabulary adds.

        Added rows are zeros, in a bias `NEVER`. The last row is that of padding, with which our
        decoder begins, as Marian's begins with zeros.
        """
        sizes = dict(zip(("encoder", "decoder"), self._options["dim-vocabs"], strict=True))
        added = {x: self.config.target_vocab_size - size for x, size in sizes.items()}
        if name == f"{OUTPUT}_b":
            biases = np.zeros((1, sizes["decoder"]), "float32")
            if not self._options["output-omit-bias"]:
                biases = self.file.read(name)
            return np.pad(biases, ((0, 0), (0, added["decoder"])), constant_values=NEVER)
        values = self.file.read(name)
        if name == f"{OUTPUT}_W":
            return np.pad(values, ((0, 0), (0, added["decoder"])))
        side = "encoder" if name == embedding("encoder", False) else "decoder"
        is_table = name in (embedding(side, self.config.share_embeddings), f"{OUTPUT}_Wt")
        return np.pad(values, ((0, added[side]), (0, 0))) if is_table else values


def read_models(source: str | os.PathLike) -> list[MarianModel]:
    """Open a model file, or the models of a folder.

    The options of its decoder list them; a folder without such options must hold one model.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If a file is broken, or a folder without decoder options holds several models.
    """
    path = Path(source)
    if not path.is_dir():
        return [MarianModel.read(path)]
    decoders = _decoders(path)
    if not decoders:
        models = _models(path)
        accepted = f"one: write a {DECODER} that lists its models and vocabularies"
        require(len(models) == 1, f"the models in {path}", [x.name for x in models], accepted)
        return [MarianModel.read(models[0])]
    where = decoders[0]
    options = read_yaml(read_bytes(where), where)
    models = [_beside(where, x) for x in _texts(options, "models", where)]
    vocabularies = _named(options, where)
    return [MarianModel(_opened(x), options, where, vocabularies) for x in models]


def _texts(options, name, where):
    values = options.get(name)
    is_list = isinstance(values, list) and values and all(isinstance(x, str) for x in values)
    require(is_list, f"{name} in {where}", values, "a list of paths")
    return values


def _beside(where, name):
    """Return the path that an options file names, relative to it.

    If there is no such file, it is the path of a file of that name beside the options.
    """
    path = where.parent / name
    return path if path.is_file() else where.parent / Path(name).name


def _named(options, where):
    """Return the paths of the vocabularies of source and target that a file of options lists."""
    names = _texts(options, "vocabs", where)
    require(len(names) == 2, f"vocabs in {where}", names, "one of the source and one of the target")
    source, target = (_beside(where, name) for name in names)
    return source, target


def _found(path):
    """Return the paths of the vocabularies beside a model that has no file of options."""
    for pair in (PAIR, ("srcvocab.*.spm", "trgvocab.*.spm")):
        sources, targets = (sorted(path.parent.glob(name)) for name in pair)
        if len(sources) == len(targets) == 1:
            return sources[0], targets[0]
    vocabularies = sorted(path.parent.glob(f"*{SPM}"))
    if len(vocabularies) != 1:
        raise FileNotFoundError(
            f"{path} has no {path.name}.{DECODER} and no {DECODER} beside it, which names the "
            "vocabularies"
        )
    return vocabularies[0], vocabularies[0]


def _unnamed_options(path):
    """Return the options of the decoder for a model that has no file of them."""
    shortlists = sorted(path.parent.glob("*.s2t.bin"))
    if len(shortlists) != 1:
        return {}
    return {**FIREFOX, "shortlist": [shortlists[0].name, False]}
