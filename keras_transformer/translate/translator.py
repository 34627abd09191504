"""The `Translator`: tokenizer, model and search as one object, saved as one folder."""

from __future__ import annotations

import copy
import itertools
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keras_transformer.config import require, require_whole
from keras_transformer.running.inputs import Request, require_match
from keras_transformer.saved.contents import CONFIG
from keras_transformer.search import NBEST, SAMPLE, TRANSLATE, Search, spelled_out
from keras_transformer.system.named_models import located
from keras_transformer.text import Tokenizer
from keras_transformer.text.lexical_shortlist import Shortlist
from keras_transformer.translate import engines
from keras_transformer.translate.engines.choice import load_engine
from keras_transformer.translate.engines.engine import Hypothesis

if TYPE_CHECKING:
    from keras_transformer.models import EncoderDecoder, Transformer

METRICS = "metrics.json"


class Translator:
    """A trained model with its tokenizer, which translates texts.

    ```python
    translator = Translator.load("saved_models/grammar")
    translator.translate(["The old man loves the dog."], beam_size=4)
    ```

    Texts are sorted by length and translated in batches of a token budget. A translation does not
    depend on the other texts. An empty text gets an empty translation.

    Args:
        model: A `Transformer`, or any model with the same `config` fields and `prefill`.
        tokenizer: The tokenizer that the model was trained with.
        source_language: Language code such as "en". A multilingual model translates from this
            language; other models only record it.
        target_language: Code of the language to translate into; see `source_language`.
        search: Default search options of this translator, by name, see `search.Search`; for
            example those of an imported model's authors. None: those of `Search`.
        directions: Pairs of source and target language that a multilingual model was trained in.
            Another pair is translated in two steps if a third language connects them. Empty: every
            pair is translated in one step.

    Attributes:
        middle: The third language of a pair that is translated in two steps; else None.

    Raises:
        ValueError: If vocabulary sizes or special ids of model and tokenizer differ, a multilingual
            model does not know a language, or `directions` are not pairs.
    """

    def __init__(
        self,
        model: Transformer,
        tokenizer: Tokenizer,
        source_language: str | None = None,
        target_language: str | None = None,
        search: Mapping[str, Any] | None = None,
        directions: Collection[tuple[str, str]] = (),
    ):
        require_match(tokenizer, model.config)
        self._begin(engines.KerasEngine(model), search or {}, directions)
        self._choose(tokenizer, source_language, target_language)

    def _begin(self, engine, search, directions):
        self._engine, self.search = engine, dict(search)
        are_pairs = all(isinstance(x, list | tuple) and len(x) == 2 for x in directions)
        require(are_pairs, "directions", directions, "pairs of source and target language")
        self.directions = tuple((source, target) for source, target in directions)

    def _choose(self, tokenizer, source_language, target_language):
        """Set the pair of languages, and `middle`, the third language, if it needs two steps."""
        self.middle = middle_of(self.directions, source_language, target_language)
        self.tokenizer = tokenizer.between(self.middle or source_language, target_language)
        self.source_language, self.target_language = source_language, target_language

    @property
    def model(self) -> EncoderDecoder:
        """The Keras model. With `engine="ctranslate2"` or "auto", it is loaded on first use.

        An exported translator has none: access to an attribute of it raises AttributeError.
        """
        return self._engine.model

    @model.setter
    def model(self, model: EncoderDecoder) -> None:
        self._engine = engines.KerasEngine(model, self.shortlist)

    @property
    def shortlist(self) -> Shortlist | None:
        """The shortlist of the translator; None: the search option `shortlist` is refused."""
        return getattr(self._engine, "shortlist", None)

    @shortlist.setter
    def shortlist(self, shortlist: Shortlist | None) -> None:
        self._engine = engines.KerasEngine(self.model, shortlist)

    @property
    def config(self) -> Any:
        """The config of the model."""
        return self._engine.config

    def options(
        self, given: Mapping[str, Any], accepted: Collection[str] = TRANSLATE, **others: Any
    ) -> Search:
        """Return complete search options: those given, else the translator's defaults.

        Args:
            given: Options by name.
            accepted: Names of the options that may be given.
            others: See `Search.of`.
        """
        return self._engine.options(given, accepted, self.search, **others)

    def between(self, source_language: str | None, target_language: str | None) -> Translator:
        """Return a translator with the same model for another pair of languages.

        Args:
            source_language, target_language: Language codes to translate from and to.

        Raises:
            ValueError: If the model does not know a language; the message lists similar codes.
        """
        chosen = copy.copy(self)
        chosen._choose(self.tokenizer, source_language, target_language)
        return chosen

    def require_direct(self) -> Translator:
        """Return the translator; ValueError if it translates in two steps, see the class.

        Only a translation in one step has a probability, attention and an exported form.
        """
        if self.middle:
            pair = f"{self.source_language}-{self.target_language}"
            trained = ", ".join("-".join(x) for x in self.directions)
            raise ValueError(
                f"source_language and target_language must be one of {trained} here; {pair} is "
                f"translated in two steps, through {self.middle}"
            )
        return self

    @spelled_out(Search, TRANSLATE)
    def translate(
        self,
        texts: Sequence[str],
        *,
        prefixes: Sequence[str] | None = None,
        tokens_per_batch: int = 4096,
        strict: bool = False,
        constraint: Any = None,
        **options: Any,
    ) -> list[str]:
        """Return the best translation of each text.

        Args:
            texts: Source texts.
            prefixes: Forced start of each translation; "" forces nothing. A prefix may end inside
                a word.
            tokens_per_batch: Maximum source tokens per batch, padding included.
            strict: Whether a text longer than the model's `max_length` raises ValueError; else it
                is cut with a warning.
            constraint: Restriction of the translations: a `Glossary`; or a hashable object as
                `decoding` describes, with a method `start(texts, limits)` that returns the state
                before the first token, NumPy arrays with a row per text. None: no restriction.
            options: Options of `search.Search`, such as `beam_size=4`, except those of sampling.

        Returns:
            One translation per text, in order.

        Raises:
            TypeError: If an option is unknown.
            ValueError: If an option is out of range, or a text is too long and `strict` is set.
        """
        search = self.options(options, TRANSLATE, num_hypotheses=1)
        request = Request(texts, prefixes, tokens_per_batch, strict, constraint=constraint)
        lists = self.hypotheses(request, search)
        return [hypotheses[0].text for hypotheses in lists]

    @spelled_out(Search, NBEST)
    def nbest(
        self,
        texts: Sequence[str],
        *,
        prefixes: Sequence[str] | None = None,
        tokens_per_batch: int = 4096,
        strict: bool = False,
        constraint: Any = None,
        **options: Any,
    ) -> list[list[Hypothesis]]:
        """Return the best translations of each text with their scores, best first.

        Args:
            texts: Source texts.
            prefixes, tokens_per_batch, strict, constraint: See `translate`.
            options: See `translate`; also `num_hypotheses`, the translations per text: at most
                `beam_size`, which is the default. There are fewer if the search finds fewer.
        """
        search = self.options(options, NBEST)
        if search.num_hypotheses is None:
            search = replace(search, num_hypotheses=search.beam_size)
        request = Request(texts, prefixes, tokens_per_batch, strict, constraint=constraint)
        lists = self.hypotheses(request, search)
        return [hypotheses[: search.num_hypotheses] for hypotheses in lists]

    @spelled_out(Search, SAMPLE, temperature=1.0)
    def sample(
        self,
        texts: Sequence[str],
        *,
        seed: int = 0,
        prefixes: Sequence[str] | None = None,
        tokens_per_batch: int = 4096,
        strict: bool = False,
        **options: Any,
    ) -> list[str]:
        """Return a translation of each text, drawn from the model's distribution.

        Args:
            texts: Source texts.
            seed: Seed of the random numbers, at least 0.
            prefixes, tokens_per_batch, strict: See `translate`.
            options: Options of sampling, such as `temperature=1.0`, lengths such as `max_length`,
                and `repetition_penalty`; see `search.Search`.
        """
        options = {"temperature": 1.0, **options}
        require(bool(options["temperature"]), "temperature", options["temperature"], "above 0")
        require_whole("seed", seed, 0)
        search = self.options(options, SAMPLE, beam_size=1, length_penalty=0.0)
        request = Request(texts, prefixes, tokens_per_batch, strict, seed)
        lists = self.hypotheses(request, search)
        return [hypotheses[0].text for hypotheses in lists]

    @spelled_out(Search, TRANSLATE)
    def translate_stream(
        self,
        texts: Iterable[str],
        *,
        chunk_size: int = 2048,
        tokens_per_batch: int = 4096,
        strict: bool = False,
        constraint: Any = None,
        **options: Any,
    ) -> Iterator[str]:
        """Yield the best translation of each text of a stream, in order.

        The stream may be of any length: `chunk_size` texts are in memory at a time.

        Args:
            texts: Any iterable of texts, such as an open file.
            chunk_size: Number of texts that are read and sorted together; with 1, each translation
                is yielded before the next text is read.
            tokens_per_batch, strict, constraint, options: See `translate`.
        """
        require_whole("chunk_size", chunk_size, 1)
        search = self.options(options, TRANSLATE, num_hypotheses=1)

        def stream(texts):
            while chunk := list(itertools.islice(texts, chunk_size)):
                request = Request(chunk, None, tokens_per_batch, strict, constraint=constraint)
                lists = self.hypotheses(request, search)
                yield from (hypotheses[0].text for hypotheses in lists)

        return stream(iter(texts))

    def score(
        self, sources: Sequence[str], targets: Sequence[str], *, tokens_per_batch: int = 4096
    ) -> list[float]:
        """Return log p(target | source) of each pair, summed over the target's tokens and its EOS.

        Args:
            sources: Source texts.
            targets: Target texts, one per source.
            tokens_per_batch: Maximum tokens per side of a batch, padding included.

        Raises:
            ValueError: If the numbers of texts differ, or a text is longer than the model's
                `max_length`; or the translator needs two steps, see `require_direct`.
        """
        self.require_direct()
        return self._engine.score(self.tokenizer, sources, targets, tokens_per_batch)

    def hypotheses(self, request: Request, search: Search) -> list[list[Hypothesis]]:
        """Return the hypotheses of each text of a request, best first, as the search finds them.

        Args:
            request: The texts, and their token ids if they are known already.
            search: Options of the search, see `options`.

        Raises:
            ValueError: If a pair that is translated in two steps is given a constraint.
        """
        if self.middle:
            accepted = "left out for a pair that is translated in two steps"
            require(request.constraint is None, "constraint", request.constraint, accepted)
            first_step = self.between(self.source_language, self.middle)
            first = replace(request, prefixes=None)
            lists = first_step.hypotheses(first, replace(search, num_hypotheses=1))
            request = replace(request, texts=[x[0].text for x in lists], ids=None)
        return self._engine.search(self.tokenizer, request, search)

    def wait(self) -> None:
        """Wait until the engine compiles nothing in the background: see `engine="inductor"`."""
        getattr(self._engine, "wait", lambda: None)()

    def save(self, folder: str | os.PathLike, base: str | os.PathLike | None = None) -> None:
        """Write `model.keras`, the tokenizer, `config.json` and a shortlist, if any, into a folder.

        Other files in the folder are kept. If an error occurs, the folder is left as it was. Any
        backend can load it.

        Args:
            folder: Folder to write to; created if missing.
            base: Folder of the translator that LoRA training started from: write only the adapter
                to it, `adapter.safetensors`, instead of `model.keras`. None: the whole model.
        """
        sides = dict(source_language=self.source_language, target_language=self.target_language)
        facts: dict[str, Any] = sides | ({"search": self.search} if self.search else {})
        facts |= {"directions": [[*x] for x in self.directions]} if self.directions else {}
        engine = engines.KerasEngine(self.model, self.shortlist)
        engine.save(folder, self.tokenizer, facts, base)

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike,
        precision: str | None = None,
        source_language: str | None = None,
        target_language: str | None = None,
        engine: str = "keras",
    ) -> Translator:
        """Load a translator that any backend saved, or an exported one.

        An exported translator contains its tokenizer and languages, a SavedModel also its search
        options. Arguments that would change these are refused.

        Args:
            folder: Folder of a saved or an exported translator, or the name of one, such as
                "tatoeba": see `system.named_models`.
            precision: "float32", "bfloat16" or "float16": dtype of weights and arithmetic; if it
                would be slower than float32 on this machine, float32 is used, with a warning.
                "int8": each weight of dense layers and embeddings takes 8 bits, plus 4 bits for the
                rounding error, when saved: 40 % of the size. Arithmetic is in float32. "q8" or
                "q4": weights in blocks of 8 or 4 bits, in memory, too. None: as saved.
            source_language, target_language: See the class; None: as saved.
            engine: "keras", the model itself on the chosen backend; "ctranslate2", a C++ runtime
                with the same results, which does not accept every option and converts the model
                once; "inductor", PyTorch's compiler, which compiles once, in the background;
                "auto", for each call "ctranslate2" if it should be faster and accepts the options,
                else "keras".

        Raises:
            ImportError: If the package of the engine is missing.
            ValueError: If the folder is not a saved translator, a file is broken, the tokenizer is
                not the model's, or the precision, a language or the engine is unknown.
        """
        folder = located(folder)
        new_engine, tokenizer, config = load_engine(folder, engine, precision)
        languages = dict(source_language=source_language, target_language=target_language)
        # A language model that translates has languages and search options in its prompt.
        config = config.get("prompt") or config
        translator, search = cls.__new__(cls), Search.saved(config, Path(folder, CONFIG))
        translator._begin(new_engine, search, config.get("directions") or ())
        source, target = (code or config.get(name) for name, code in languages.items())
        translator._choose(tokenizer, source, target)
        return translator


def middle_of(
    directions: Collection[tuple[str, str]], source: str | None, target: str | None
) -> str | None:
    """Return the language through which a pair is translated in two steps; None: in one step.

    Args:
        directions: Pairs that are translated in one step; empty: all.
        source, target: Languages of the pair; None: not known.
    """
    if (source, target) in directions or source == target:
        return None
    middles = {y for x, y in directions if x == source} & {x for x, y in directions if y == target}
    return min(middles, default=None)
