"""The engine "litert": the hypotheses of the engine "keras", computed by LiteRT."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_transformer.config import require
from keras_transformer.running.batches import until_end
from keras_transformer.running.inputs import Request, encoded_pairs, most_tokens, same_number
from keras_transformer.search import Search
from keras_transformer.system.elsewhere import run_elsewhere
from keras_transformer.system.extras import missing
from keras_transformer.system.files import read_json
from keras_transformer.system.processor import num_threads
from keras_transformer.text import Tokenizer
from keras_transformer.translate.engines.carried import LITERT_ENGINE
from keras_transformer.translate.engines.conversion_cache import converted
from keras_transformer.translate.engines.converted_engine import ConvertedEngine
from keras_transformer.translate.engines.engine import Hypothesis
from keras_transformer.translate.engines.graph_runner import (
    OPTIONS,
    LiteRTGraphs,
    beam_search,
    log_softmax,
)

NAME = "litert"
FORMAT = 1  # version of the cache
# The quantization of `export.litert` for each precision.
QUANTIZATIONS = {"float32": "float32", "float16": "float16", "int8": "int8-weights"}
PROGRAM = "keras_transformer.export.litert_graph"  # runs in a process of its own


class LiteRTEngine(ConvertedEngine):
    """An engine that computes with LiteRT and returns the hypotheses of `KerasEngine`.

    The model is converted once for each precision, see `conversion_cache`, by TensorFlow in another
    process; any backend may be active here. Texts are translated one by one.

    Args:
        folder: Folder of a saved translator.
        saved: Its `config.json`.
        tokenizer: Its tokenizer.
        precision: "float32", or weights as "float16" or "int8"; None: "float32".

    Raises:
        ImportError: If the package `ai_edge_litert` is missing; or TensorFlow, for the conversion.
        ValueError: If LiteRT cannot represent the model, or has no such precision.
    """

    carried = LITERT_ENGINE

    def __init__(
        self, folder: Path, saved: Mapping[str, Any], tokenizer: Tokenizer, precision: str | None
    ):
        precision = precision or "float32"
        accepted = f'one of {tuple(QUANTIZATIONS)} for engine="{NAME}"'
        require(precision in QUANTIZATIONS, "precision", precision, accepted)
        if importlib.util.find_spec("ai_edge_litert") is None:
            raise missing(f'engine="{NAME}"', "litert")
        super().__init__(folder, saved, tokenizer, precision)
        self._running = threading.Lock()  # an interpreter runs one text at a time

        def convert(place: Path) -> str:
            if importlib.util.find_spec("tensorflow") is None:
                raise missing(f'converting a model for engine="{NAME}"', "tensorflow")
            quantization = QUANTIZATIONS[precision]
            task: dict[str, Any] = dict(folder=str(folder), path=str(place), languages=())
            task |= dict(loader="Translator", quantization=quantization, calibration=None)
            run_elsewhere(PROGRAM, task, "tensorflow")
            return read_json(place / "model.json")["model"]

        name = f".{NAME}-{precision}"
        with converted(folder, saved, name, f"{FORMAT}", convert) as (place, self.config):
            self._graphs = LiteRTGraphs(place, num_threads())

    def hypotheses(
        self, tokenizer: Tokenizer, request: Request, search: Search
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each text, best first, without protected spans.

        Raises:
            ValueError: If the model gives scores that are not finite.
        """
        full, sources, prefixes = request.read(tokenizer).encoded(tokenizer, self.config.max_length)
        if search.forced_first is not None:
            usual = len(tokenizer.target_frame.before)
            prefixes = [[*search.forced_first, *ids[usual:]] for ids in prefixes]
        limits = most_tokens(sources, prefixes, len(full), search, self.config.max_length).tolist()
        results = [[Hypothesis("", 0.0)] for _ in request.texts]
        for i, source, prefix, limit in zip(full, sources, prefixes, limits, strict=True):
            results[i] = self._hypotheses(tokenizer, source, prefix, limit, search)
        return results

    def _hypotheses(self, tokenizer, source, prefix, limit, search):
        """Return the hypotheses of one text, best first."""
        config = self.config
        never = {config.pad_id, config.bos_id, *search.suppress_tokens} - {*config.eos_ids}
        facts = dict(bos_id=config.bos_id, eos_id=[*config.eos_ids], never_ids=sorted(never))
        options = {name: getattr(search, name) for name in OPTIONS}
        limit = max(limit, len(prefix) + 1)
        with self._running:
            pairs = beam_search(self._graphs, np.array([source]), limit, prefix, facts, options)
        pairs = pairs[: search.num_hypotheses]
        if not np.isfinite([score for score, _ in pairs]).all():
            raise ValueError("model must give finite scores: are weights NaN?")
        texts = tokenizer.decode_target([ids for _, ids in pairs])
        return [Hypothesis(x, float(score)) for x, (score, _) in zip(texts, pairs, strict=True)]

    def score(
        self,
        tokenizer: Tokenizer,
        sources: Sequence[str],
        targets: Sequence[str],
        tokens_per_batch: int,
    ) -> list[float]:
        """Return log p(target | source) of each pair, see `running.scoring.score_pairs`."""
        limit, num_forced = self.config.max_length, len(tokenizer.target_frame.before)
        source_ids, target_ids = encoded_pairs(tokenizer, sources, targets, limit)
        same_number(source_ids, target_ids)
        return [
            self._score(source, until_end(target, self.config.eos_ids), num_forced)
            for source, target in zip(source_ids, target_ids, strict=True)
        ]

    def _score(self, source, target, num_forced):
        """Return the log-probability of a target and its EOS after its forced tokens."""
        target = [*target, self.config.eos_ids[0]]
        total = 0.0
        with self._running:
            memory = self._graphs.encode(np.array([source]))
            past = self._graphs.empty(1, len(target))
            last = self.config.bos_id
            for position, token in enumerate(target):
                logits, past = self._graphs.step(np.array([last]), position, memory, past)
                if position >= num_forced:
                    total += float(log_softmax(logits)[0, token])
                last = token
        return total
