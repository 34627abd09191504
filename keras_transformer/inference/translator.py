"""From text to text: tokenizer, model and search behind one object, saved as one folder."""

from __future__ import annotations

import copy
import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from keras_transformer.config import require, require_whole
from keras_transformer.decoding import IMPOSSIBLE, uniforms
from keras_transformer.inference.folder import load_model, read_config, save_folder
from keras_transformer.inference.runner import (
    LENGTH_MULTIPLE,
    Runner,
    score_function,
    search_batches,
    until_end,
)
from keras_transformer.inference.searching import translation_function
from keras_transformer.inference.sentences import (
    encoded,
    encoded_prefixes,
    extended,
    most_tokens,
    padded,
)
from keras_transformer.models import Transformer
from keras_transformer.search import NBEST, SAMPLE, TRANSLATE, Search, spelled_out
from keras_transformer.text import Tokenizer, load_tokenizer
from keras_transformer.text.tokenizer import MANIFEST, checked_texts, round_up

METRICS = "metrics.json"


@dataclass(frozen=True)
class Hypothesis:
    """One translation: its text, and the score that it was ranked by.

    The score is the sum of the tokens' log-probabilities over the length penalty.
    """

    text: str
    score: float


class Translator:
    """Translates texts with a trained model.

    ```python
    translator = Translator.load("saved_models/grammar")
    translator.translate(["The old man loves the dog."], beam_size=4)
    ```

    Texts are sorted by length and translated in batches of a token budget; what else is in the
    batch changes nothing. An empty text gets an empty translation.

    Args:
        model: a `Transformer`, or any model with its `config` and `prefill`.
        tokenizer: the tokenizer it was trained with.
        source_language, target_language: codes such as "en". A model of many languages translates
            between these two; others only keep them for those who ask.

    Raises:
        ValueError: if the vocabularies or special ids of the two do not match, or a model of many
            languages does not know one.
    """

    def __init__(
        self,
        model: Transformer,
        tokenizer: Tokenizer,
        source_language: str | None = None,
        target_language: str | None = None,
    ):
        for name in ("source_vocab_size", "target_vocab_size", "pad_id", "bos_id", "eos_id"):
            ours, theirs = getattr(model.config, name), getattr(tokenizer, name)
            same = theirs in model.config.eos_ids if name == "eos_id" else ours == theirs
            if not same:
                raise ValueError(
                    f"the tokenizer does not match the model: its {name} is {theirs}, "
                    f"the model's {ours}"
                )
        self.model = model
        self.tokenizer = tokenizer.between(source_language, target_language)
        self.source_language = source_language
        self.target_language = target_language
        self._runner = Runner()

    def between(self, source_language: str | None, target_language: str | None) -> Translator:
        """The same model, for two other of its languages.

        Raises:
            ValueError: if it does not know one; names those that look like it.
        """
        chosen = copy.copy(self)
        chosen.tokenizer = self.tokenizer.between(source_language, target_language)
        chosen.source_language, chosen.target_language = source_language, target_language
        return chosen

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
            texts: source texts.
            prefixes: a start for each translation, forced; "" forces nothing. It may end inside
                a word.
            tokens_per_batch: most source tokens in a batch, padding included.
            strict: whether a text longer than the model's `max_length` raises; else it is cut
                with a warning.
            constraint: what translations are allowed: an object as `decoding` describes,
                hashable, with `start(texts, limits)` besides, which gives the state before the
                first token as NumPy arrays, a row for each text and its most tokens; such as
                `decoding.TreeConstraint`. None: all.
            options: of `search.Search`: `beam_size=4`, `length_penalty=0.6`,
                `max_extra_length=50`, `min_length=0` and `scoring="wu"`.

        Returns:
            One translation a text, in order.

        Raises:
            TypeError: for an option of another name.
            ValueError: for an option out of its range, or a too long text when `strict`.
        """
        search = Search.of(options, TRANSLATE, num_hypotheses=1)
        found = self._search(
            texts, search, prefixes, tokens_per_batch, strict, constraint=constraint
        )
        return [hypotheses[0].text for hypotheses in found]

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
            texts, prefixes, tokens_per_batch, strict, constraint: as of `translate`.
            options: as of `translate`, and `num_hypotheses`: how many, at most and by default
                `beam_size`; fewer come only where there are no more.
        """
        search = Search.of(options, NBEST)
        if search.num_hypotheses is None:
            search = replace(search, num_hypotheses=search.beam_size)
        found = self._search(
            texts, search, prefixes, tokens_per_batch, strict, constraint=constraint
        )
        return [hypotheses[: search.num_hypotheses] for hypotheses in found]

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
        """Return a translation of each text drawn from the model's distribution.

        Args:
            texts, prefixes, tokens_per_batch, strict: as of `translate`.
            seed: the same seed draws the same for the i-th text, whatever the other texts are.
            options: of `search.Search`: `temperature=1.0`, `top_k=0`, `top_p=1.0`, `min_p=0.0`,
                `max_extra_length=50` and `min_length=0`.
        """
        options = {"temperature": 1.0, **options}
        require(options["temperature"] is not None, "temperature", None, "above 0")
        require_whole("seed", seed, 0)
        search = Search.of(options, SAMPLE, beam_size=1, length_penalty=0.0)
        found = self._search(texts, search, prefixes, tokens_per_batch, strict, seed)
        return [hypotheses[0].text for hypotheses in found]

    @spelled_out(Search, TRANSLATE)
    def translate_stream(
        self,
        texts: Iterable[str],
        *,
        chunk_size: int = 2048,
        tokens_per_batch: int = 4096,
        strict: bool = False,
        **options: Any,
    ) -> Iterator[str]:
        """Translate without end: read and yield in order, with `chunk_size` texts in memory.

        Args:
            texts: any iterable, such as an open file's lines.
            chunk_size: texts that are read, then sorted and batched together; 1 answers each
                text before it reads the next.
            tokens_per_batch, strict, options: as of `translate`.
        """
        require_whole("chunk_size", chunk_size, 1)
        search = Search.of(options, TRANSLATE, num_hypotheses=1)

        def stream(texts):
            while chunk := list(itertools.islice(texts, chunk_size)):
                for hypotheses in self._search(chunk, search, None, tokens_per_batch, strict):
                    yield hypotheses[0].text

        return stream(iter(texts))

    def score(
        self, sources: Sequence[str], targets: Sequence[str], *, tokens_per_batch: int = 4096
    ) -> list[float]:
        """log p(target | source): the sum over the target's tokens and its end.

        Args:
            sources, targets: texts, as many of each.
            tokens_per_batch: most tokens of a side in a batch, padding included.

        Raises:
            ValueError: if there are not as many of each, or one is longer than the model takes.
        """
        limit, pad_id = self.model.config.max_length, self.model.config.pad_id
        source_ids = encoded(self.tokenizer, sources, "sources", limit, strict=True)
        target_ids = encoded(self.tokenizer, targets, "targets", limit, strict=True)
        if len(source_ids) != len(target_ids):
            raise ValueError(
                f"sources and targets must be as many, got {len(source_ids)} and {len(target_ids)}"
            )

        def make():
            # What the target begins with is as long for all languages of a tokenizer.
            return score_function(self.model, len(self.tokenizer.target_frame.before))

        scores = np.zeros(len(source_ids))
        longest = [max(len(s), len(t)) for s, t in zip(source_ids, target_ids, strict=True)]
        for chosen, rows, length in search_batches(longest, tokens_per_batch, limit):
            source = padded([source_ids[i] for i in chosen], rows, length, pad_id)
            labels = padded([target_ids[i] for i in chosen], rows, length, pad_id)
            (result,) = self._runner.arrays(self.model, "score", make, [source, labels])
            scores[chosen] = result[: len(chosen)]
        return scores.tolist()

    def _search(
        self, texts, search, prefixes, tokens_per_batch, strict, seed=None, constraint=None
    ):
        texts, config = checked_texts(texts), self.model.config
        source_ids = encoded(self.tokenizer, texts, "texts", config.max_length, strict)
        prefix_ids = encoded_prefixes(self.tokenizer, prefixes, len(texts), config.max_length - 2)
        found = [[Hypothesis("", 0.0)] for _ in source_ids]
        # A text without any token of its own is empty, and so is its translation.
        empty = sum(map(len, self.tokenizer.source_frame))
        full = [i for i, ids in enumerate(source_ids) if len(ids) > empty]
        lengths = [len(source_ids[i]) for i in full]
        for batch, rows, length in search_batches(lengths, tokens_per_batch, config.max_length):
            chosen = [full[i] for i in batch]
            sources = [source_ids[i] for i in chosen]
            source = padded(sources, rows, length, config.pad_id)
            begun = [prefix_ids[i] for i in chosen]
            prefix, prefix_length = None, max(map(len, begun))
            if prefix_length:
                if prefixes is not None:
                    prefix_length = round_up(prefix_length, LENGTH_MULTIPLE)
                prefix = padded(begun, rows, prefix_length, config.pad_id)
            limits = most_tokens(sources, begun, rows, search, config.max_length)
            numbers = first = None
            if search.temperature is not None:
                seeds = [[seed, i] for i in chosen] + [[seed]] * (rows - len(chosen))
                numbers = uniforms(seeds, length + prefix_length + search.max_extra_length)
            if constraint is not None:
                first = constraint.start([texts[i] for i in chosen], limits[: len(chosen)])
                first = {name: extended(x, rows - len(chosen)) for name, x in first.items()}
            ids, scores = self._runner.arrays(
                self.model,
                (search, constraint),
                lambda: translation_function(search, self.model, constraint),
                [source, limits, prefix, numbers, first],
            )
            for i, own_ids, own_scores in zip(chosen, ids, scores, strict=False):
                found[i] = self._hypotheses(own_ids, own_scores)
        return found

    def _hypotheses(self, ids_KL, scores_K):
        real_K = scores_K > IMPOSSIBLE / 2
        if not real_K.any():
            raise ValueError("model must give finite logits, got none: are weights NaN?")
        ends = self.model.config.eos_ids
        texts = self.tokenizer.decode_target(
            [until_end(ids, ends) for ids in ids_KL[real_K].tolist()]
        )
        scores = map(float, scores_K[real_K])
        return [Hypothesis(text, score) for text, score in zip(texts, scores, strict=True)]

    def save(self, folder: str | os.PathLike) -> None:
        """Writes `model.keras`, the tokenizer and `config.json` into a folder.

        What else is in the folder stays. All is written under other names first: if that fails,
        what was there before is untouched. Any backend reads what any other wrote.
        """
        languages = {
            "source_language": self.source_language,
            "target_language": self.target_language,
        }
        save_folder(folder, self.model, self.tokenizer, languages)

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike,
        precision: str | None = None,
        source_language: str | None = None,
        target_language: str | None = None,
    ) -> Translator:
        """Reads what `save` wrote, under any backend.

        Args:
            folder: where it was saved.
            precision: "float32", "bfloat16" or "float16" for weights and arithmetic of that
                type; "int8" for dense and embedding weights of 8 bits, a scale a row or column,
                which `save` keeps: a quarter of the size. None: as the model was saved.
            source_language, target_language: as of the class; None: as it was saved.

        Raises:
            ValueError: if the folder is no saved translator, a file of it is broken, its
                tokenizer is not the one that its model was trained with, or the precision or a
                language is another.
        """
        config = read_config(folder, "translator", MANIFEST, precision)
        if "task" in config:
            raise ValueError(f"{folder} is no saved translator but of task {config['task']!r}")
        try:
            tokenizer = load_tokenizer(folder)
        except FileNotFoundError as error:
            raise ValueError(f"{folder} is no saved translator: {error}") from error
        model = load_model(folder, config, tokenizer, precision)
        source_language = source_language or config.get("source_language")
        target_language = target_language or config.get("target_language")
        return cls(model, tokenizer, source_language, target_language)
