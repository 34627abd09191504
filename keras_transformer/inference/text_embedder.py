"""Vectors of texts, and the texts most similar to another."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from keras import ops

from keras_transformer.config import require, require_whole
from keras_transformer.inference.encoder_task import EncoderTask
from keras_transformer.inference.folder import read_config, save_folder
from keras_transformer.models.encoder_only import EncoderOnly
from keras_transformer.models.heads import SentenceEmbedding
from keras_transformer.system.files import read_json
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.text.tokenizer import checked_texts

POOLINGS = ("mean", "cls")
MODULES = "modules.json"  # marks a folder of sentence-transformers
BLOCK = 1024  # vectors on each side whose similarities are in memory at a time


@dataclass(frozen=True)
class Match:
    """A candidate, by its index, and its cosine similarity in [-1, 1]."""

    index: int
    score: float


class TextEmbedder(EncoderTask):
    """Computes a vector for each text, such that similar texts have similar vectors.

    ```python
    embedder = TextEmbedder.load("saved_models/all-MiniLM-L6-v2")
    vectors = embedder.embed(["A cat sleeps.", "It rains."])
    (matches,) = embedder.similar(["A kitten naps."], ["It rains.", "A cat sleeps."], top_k=1)
    print(matches[0].index, matches[0].score)
    ```

    A vector is made of the encoder's hidden states; the model's head is not used. Vectors are good
    if the model was trained for them, like those of sentence-transformers (Reimers and Gurevych
    2019). Texts are sorted by length and processed in batches of a token budget. Padding is
    masked, so the result for a text does not depend on the others in its batch.

    Args:
        model: Encoder with any head.
        tokenizer: Tokenizer that the model was trained with.
        pooling: "mean" of all tokens' hidden states, special tokens included, or that of the first
            token, "cls".

    Raises:
        ValueError: If `pooling` is unknown, or the tokenizer has more pieces than the model.
    """

    what, head, task = "text encoder", None, "text_embedding"

    def __init__(self, model: EncoderOnly, tokenizer: TextTokenizer, pooling: str = "mean"):
        super().__init__(model, tokenizer)
        require(pooling in POOLINGS, "pooling", pooling, f"one of {POOLINGS}")
        self.pooling = pooling

    def save(self, folder: str | os.PathLike, base: str | os.PathLike | None = None) -> None:
        """Write `model.keras`, `tokenizer.json` and `config.json`; see `EncoderTask.save`."""
        facts = {"task": self.task, "pooling": self.pooling}
        save_folder(folder, self.model, self.tokenizer, facts, base=base)

    @classmethod
    def load(
        cls, folder: str | os.PathLike, precision: str | None = None, pooling: str | None = None
    ) -> Self:
        """Load what `save`, a training script or `keras-transformer import` wrote.

        Args:
            folder: Folder of the saved model.
            precision: See `Translator.load`; None: as saved.
            pooling: "mean" or "cls"; None: as saved, and "mean" for a model without it.

        Raises:
            ValueError: If the folder is not such a model, a file in it is broken, or `pooling` is
                unknown.
        """
        loaded = super().load(folder, precision)
        if pooling is None:
            pooling = read_config(folder, cls.what).get("pooling", loaded.pooling)
        return cls(loaded.model, loaded.tokenizer, pooling)

    def embed(
        self,
        texts: Sequence[str],
        *,
        normalize: bool = True,
        tokens_per_batch: int = 8192,
        strict: bool = False,
    ) -> np.ndarray:
        """Return the vector of each text: (n, D), float32.

        Args:
            texts: Texts, or proteins for an ESM.
            normalize: Whether vectors have length 1, so that their dot products are cosines.
            tokens_per_batch: Maximum tokens in a batch, padding included.
            strict: Whether a text that is too long raises ValueError; else it is cut with a
                warning.

        Raises:
            ValueError: If an argument is out of range, or a text is too long and `strict`.
        """
        texts = checked_texts(texts)
        ids = self._encoded(texts, strict)
        vectors = np.empty((len(ids), self.model.config.d_model), "float32")
        for row, vector in enumerate(self._run(ids, tokens_per_batch)):
            vectors[row] = vector
        return unit(vectors) if normalize else vectors

    def similar(
        self,
        texts: Sequence[str],
        candidates: Sequence[str] | np.ndarray,
        top_k: int = 5,
        *,
        tokens_per_batch: int = 8192,
        strict: bool = False,
    ) -> list[list[Match]]:
        """Return the candidates with the highest cosine similarity to each text, best first.

        Args:
            texts: Texts.
            candidates: Texts, or vectors (m, D) that `embed` returned. Memory grows with m, not
                with the number of pairs.
            top_k: Number of candidates per text; all if there are fewer.
            tokens_per_batch, strict: See `embed`.

        Raises:
            ValueError: See `embed`; also if there are no candidates, or vectors have another width
                or numbers that are not finite.
        """
        require_whole("top_k", top_k, 1)
        options: dict[str, Any] = dict(tokens_per_batch=tokens_per_batch, strict=strict)
        if isinstance(candidates, np.ndarray):
            width = self.model.config.d_model
            fits = candidates.ndim == 2 and candidates.shape[1] == width
            require(fits, "candidates' shape", candidates.shape, f"(m, {width})")
            require(
                bool(np.isfinite(candidates).all()),
                "candidates",
                "NaN or infinity",
                "finite numbers",
            )
        else:
            candidates = self.embed(candidates, **options)
        require(len(candidates) > 0, "candidates", [], "one or more")
        vectors = self.embed(texts, **options)
        return [
            [Match(int(index), float(score)) for index, score in zip(*row, strict=True)]
            for start in range(0, len(vectors), BLOCK)
            for row in zip(
                *_nearest(vectors[start : start + BLOCK], candidates, top_k), strict=True
            )
        ]

    def _function(self) -> Callable:
        mean = SentenceEmbedding(self.model.config, None, None)

        def pooled(inputs):
            x_BTD = ops.cast(self.model.encode(inputs), "float32")
            return mean(x_BTD, inputs["token_ids"]) if self.pooling == "mean" else x_BTD[:, 0]

        return pooled


def pooling_of(folder: str | os.PathLike) -> str | None:
    """Return the pooling of a folder in the layout of sentence-transformers; None for others.

    Raises:
        FileNotFoundError: If a file that `modules.json` names is missing.
        ValueError: If a file is broken, the pooling is not one of `POOLINGS`, or there are other
            modules than an encoder, a pooling and a normalization.
    """
    path = Path(folder, MODULES)
    if not path.is_file():
        return None
    modules = read_json(path)
    plain = isinstance(modules, list) and all(isinstance(x, dict) for x in modules)
    require(plain, path.name, modules, "a list of objects")
    kinds = [str(x.get("type")).rpartition(".")[2] for x in modules]
    accepted = "Transformer, Pooling and then Normalize or nothing"
    fits = kinds[:2] == ["Transformer", "Pooling"] and kinds[2:] in ([], ["Normalize"])
    require(fits, f"the modules in {path}", kinds, accepted)
    path = Path(folder, str(modules[1].get("path")), "config.json")
    config = read_json(path)
    require(isinstance(config, dict), os.fspath(path), config, "an object")
    flags = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
    modes = [config["pooling_mode"]] if "pooling_mode" in config else []
    modes += [flags.get(x, x) for x, on in config.items() if x.startswith("pooling_mode_") and on]
    fits = len(modes) == 1 and modes[0] in POOLINGS
    require(fits, f"the pooling in {path}", modes, f"one of {POOLINGS}")
    return modes[0]


def unit(vectors: np.ndarray) -> np.ndarray:
    """Return vectors (n, D) of length 1; those of zeros stay."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def _nearest(queries, candidates, top_k):
    """Return the indices and the scores (n, k) of the candidates nearest to each unit vector."""
    best_scores = np.empty((len(queries), 0), "float32")
    best = np.empty((len(queries), 0), "int64")
    for start in range(0, len(candidates), BLOCK):
        block = unit(candidates[start : start + BLOCK].astype("float32"))
        indices = np.broadcast_to(np.arange(start, start + len(block)), (len(queries), len(block)))
        best = np.concatenate([best, indices], axis=1)
        best_scores = np.concatenate([best_scores, queries @ block.T], axis=1)
        if best.shape[1] > top_k:
            kept = np.argpartition(-best_scores, top_k - 1, axis=1)[:, :top_k]
            best, best_scores = (np.take_along_axis(x, kept, 1) for x in (best, best_scores))
    order = np.lexsort((best, -best_scores))
    return (np.take_along_axis(x, order, 1) for x in (best, best_scores))
