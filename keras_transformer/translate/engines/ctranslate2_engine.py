"""The engine "ctranslate2": the hypotheses of the engine "keras", computed by CTranslate2."""

from __future__ import annotations

import math
import os
import warnings
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_transformer.config import require
from keras_transformer.running.batches import until_end
from keras_transformer.running.inputs import Request, encoded_pairs, most_tokens, same_number
from keras_transformer.search import Search
from keras_transformer.system.extras import missing
from keras_transformer.system.processor import num_threads
from keras_transformer.text import Tokenizer
from keras_transformer.translate import engines
from keras_transformer.translate.engines.beams import Beam, penalty
from keras_transformer.translate.engines.carried import CTRANSLATE2
from keras_transformer.translate.engines.conversion_cache import converted
from keras_transformer.translate.engines.converted_engine import ConvertedEngine
from keras_transformer.translate.engines.ctranslate2_search import Row, RowSearch, shares
from keras_transformer.translate.engines.engine import Hypothesis

NAME = "ctranslate2"
CACHE, FORMAT = ".ctranslate2", 1  # name and version of the cache


class CTranslate2Engine(ConvertedEngine):
    """An engine that computes with CTranslate2 and returns the hypotheses of `KerasEngine`.

    The Keras model is also loaded for texts whose hypotheses cannot be derived from CTranslate2's
    beams, see `beams.BeamEnd`.

    Args:
        folder: Folder of a saved translator.
        saved: Its `config.json`.
        tokenizer: Its tokenizer.
        precision: See `Translator.load`; None: "float32".

    Raises:
        ImportError: If the package `ctranslate2` is missing.
        ValueError: If CTranslate2 cannot represent the model, such as one with several EOS tokens.
    """

    carried = CTRANSLATE2

    def __init__(
        self, folder: Path, saved: Mapping[str, Any], tokenizer: Tokenizer, precision: str | None
    ):
        try:
            import ctranslate2
        except ImportError as error:
            raise missing(f'engine="{NAME}"', "ctranslate2") from error
        super().__init__(folder, saved, tokenizer, precision)
        self._pieces = {side: tokenizer.pieces_of(side) for side in ("source", "target")}
        self._ids = {piece: i for i, piece in enumerate(self._pieces["target"])}
        # Target tokens per source token of recent translations, to guess the length of new ones.
        self._growth = deque([1.0], maxlen=500)
        device = "cuda" if ctranslate2.get_cuda_device_count() else "cpu"
        version = f"{FORMAT} {ctranslate2.__version__}"

        def convert(place: Path) -> str:
            return engines.convert(folder, saved, tokenizer, place)

        with converted(folder, saved, CACHE, version, convert) as (place, self.config):
            self._translator = ctranslate2.Translator(
                os.fspath(place),
                device=device,
                compute_type=_compute_type(precision or "float32", device),
                intra_threads=num_threads(),
            )

    def hypotheses(
        self, tokenizer: Tokenizer, request: Request, search: Search
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each text, best first, without protected spans.

        Raises:
            ValueError: If `beam_size` is above half the vocabulary, or the model gives scores that
                are not finite.
        """
        most = len(self._ids) // 2
        accepted = f'at most {most}, half the vocabulary, for engine="{NAME}"'
        require(search.beam_size <= most, "beam_size", search.beam_size, accepted)
        config = self.config
        request = request.read(tokenizer)
        full, sources, prefixes = request.encoded(tokenizer, config.max_length)
        limits = most_tokens(sources, prefixes, len(full), search, config.max_length).tolist()
        rows = [
            Row(self._tokens("source", source), tuple(prefix), max(limit, len(prefix) + 1))
            for source, prefix, limit in zip(sources, prefixes, limits, strict=True)
        ]
        growth = float(np.quantile(self._growth, 0.9))
        RowSearch(self, search, request.tokens_per_batch, growth).run(rows)
        self._growth.extend(len(x.found[0].ids) / len(x.source) for x in rows if x.found)
        results = [[Hypothesis("", 0.0)] for _ in request.texts]
        self._decode(tokenizer, search, dict(zip(full, rows, strict=True)), results)
        if rest := [i for i, row in zip(full, rows, strict=True) if row.found is None]:
            with warnings.catch_warnings():  # warnings about cut texts were issued above already
                warnings.simplefilter("ignore", UserWarning)
                again = self.keras_engine.search(tokenizer, request.part(rest), search)
            for i, hypotheses in zip(rest, again, strict=True):
                results[i] = hypotheses
        return results

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
        rows = [Row(self._tokens("source", ids), (), limit) for ids in source_ids]
        ends = [until_end(ids, self.config.eos_ids) for ids in target_ids]
        logs = self.log_probabilities(rows, ends, tokens_per_batch)
        return [float(np.sum(x[num_forced:], dtype="float64")) for x in logs]

    def log_probabilities(
        self, rows: Sequence[Row], targets: Sequence[Sequence[int]], tokens_per_batch: int
    ) -> list[list[float]]:
        """Return the log-probabilities of the tokens of each target, EOS last.

        Args:
            rows: The sources.
            targets: Token ids of one target per row, without EOS.
            tokens_per_batch: Maximum tokens per side of a batch, padding included.
        """
        logs: list[list[float]] = [[] for _ in rows]
        lengths = [max(len(x.source), len(y)) for x, y in zip(rows, targets, strict=True)]
        for chosen in shares(lengths, tokens_per_batch):
            scored = self._translator.score_batch(
                [rows[i].source for i in chosen],
                [self._tokens("target", targets[i]) for i in chosen],
                max_input_length=0,
            )
            for i, result in zip(chosen, scored, strict=True):
                logs[i] = list(result.log_probs)
        return logs

    def beams(
        self, rows: Sequence[Row], beam_size: int, length: int, **options: Any
    ) -> list[list[Beam]]:
        """Return the beams that CTranslate2 finds for each row up to a length, best first.

        Args:
            rows: Sources and prefixes; either all have a prefix or none has.
            beam_size: Number of beams.
            length: Maximum tokens, prefix and EOS included.
            options: Further options of `ctranslate2.Translator.translate_batch`.
        """
        prefixes = [self._tokens("target", row.prefix) for row in rows]
        results = self._translator.translate_batch(
            [row.source for row in rows],
            target_prefix=prefixes if any(prefixes) else None,
            beam_size=beam_size,
            max_decoding_length=length,
            min_decoding_length=0,
            max_input_length=0,
            return_end_token=True,
            return_scores=True,
            **options,
        )
        return [
            [self._beam(*x) for x in zip(result.hypotheses, result.scores, strict=True)]
            for result in results
        ]

    def _beam(self, tokens, total):
        ids = tuple(self._ids[x] for x in tokens)
        return Beam(ids, total, ids[-1:] == (self.config.eos_ids[0],))

    def _tokens(self, side, ids):
        pieces = self._pieces[side]
        return [pieces[i] for i in ids]

    def _decode(self, tokenizer, search, rows, results):
        """Decode the hypotheses of rows whose `found` is set, and put them into `results`."""
        places = [(i, x) for i, row in rows.items() for x in row.found or ()]
        texts = tokenizer.decode_target([x.ids for _, x in places])
        for i, row in rows.items():
            if row.found is not None:
                results[i] = []
        for (i, x), text in zip(places, texts, strict=True):
            score = x.total / penalty(len(x.ids), search)
            if not math.isfinite(score):
                raise ValueError(f"model must give finite scores, got {score}: are weights NaN?")
            results[i].append(Hypothesis(text, score))


def _compute_type(precision, device):
    """Return CTranslate2's compute type: the precision, or float32 if the device lacks it."""
    import ctranslate2

    if precision in ctranslate2.get_supported_compute_types(device):
        return precision
    warnings.warn(
        f"precision is float32 in place of {precision}: CTranslate2 does not compute in it here",
        stacklevel=2,
    )
    return "float32"
