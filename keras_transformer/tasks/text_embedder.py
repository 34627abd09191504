"""The `TextEmbedder`, which computes vectors of texts, and finds the most similar texts."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import keras
import numpy as np
from keras import ops

from keras_transformer.config import require, require_whole
from keras_transformer.models import DecoderOnly, EncoderOnly
from keras_transformer.models.sentence import POOLINGS, Embedding, pool
from keras_transformer.models.steps import WeightedSteps
from keras_transformer.saved.contents import EMBEDDING, read_config
from keras_transformer.saved.folder import save_folder
from keras_transformer.saved.kinds import kind_of
from keras_transformer.tasks.encoder_task import EncoderTask
from keras_transformer.tasks.similarity import Match, matches, unit
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.text.tokenizer import checked_texts
from keras_transformer.weights.weight_files import read_weights, save_weights

# Names of prompts for queries and for candidates, as in sentence-transformers.
QUERIES, CANDIDATES = "query", ("document", "passage", "corpus")


class TextEmbedder(EncoderTask):
    """A text embedder: a vector for each text, such that similar texts have similar vectors.

    ```python
    embedder = TextEmbedder.load("saved_models/all-MiniLM-L6-v2")
    vectors = embedder.embed(["A cat sleeps.", "It rains."])
    (matches,) = embedder.similar(["A kitten naps."], ["It rains.", "A cat sleeps."], top_k=1)
    print(matches[0].index, matches[0].score)
    ```

    A vector is computed from the encoder's hidden states; the model's head is not used. Vectors
    are useful only if the model was trained for them, as sentence-transformers are (Reimers and
    Gurevych 2019). Texts are sorted by length and processed in batches of a token budget. Padding
    is masked, so the result for a text does not depend on the others in its batch.

    Args:
        model: Encoder with any head, or a decoder (Qwen3-Embedding).
        tokenizer: Tokenizer that the model was trained with.
        pooling: "mean": the mean of the hidden states of all tokens, special tokens included;
            "cls": the state of the first token; or another of `models.sentence.POOLINGS`. Several
            of them: their vectors are concatenated.
        embedding: The other parts of a sentence-transformers model: modules after the pooling,
            prompts, maximum length, similarity. None: the model has no such parts.

    Raises:
        ValueError: If `pooling` is unknown, or the tokenizer has more pieces than the model.
    """

    kind = kind_of("TextEmbedder")
    families = (EncoderOnly, DecoderOnly)

    def __init__(
        self,
        model: EncoderOnly,
        tokenizer: TextTokenizer,
        pooling: str | Sequence[str] = "mean",
        embedding: Embedding | None = None,
    ):
        super().__init__(model, tokenizer)
        modes = (pooling,) if isinstance(pooling, str) else pooling
        are_poolings = isinstance(modes, list | tuple) and len(modes) > 0
        are_poolings = are_poolings and all(mode in POOLINGS for mode in modes)
        require(are_poolings, "pooling", pooling, f"one of {POOLINGS}, or several")
        self._modes = tuple(modes)
        self.pooling = modes[0] if len(modes) == 1 else self._modes
        self.embedding = embedding or Embedding()
        self.max_length = min(self.embedding.max_length or self.max_length, self.max_length)

    @property
    def dimension(self) -> int:
        """The number of elements of a vector, D in the shapes of other docstrings."""
        return self.embedding.width(self.model.config.d_model * len(self._modes))

    def save(self, folder: str | os.PathLike, base: str | os.PathLike | None = None) -> None:
        """Write the files that `EncoderTask.save` writes.

        If the modules after the pooling have weights, write `embedding.safetensors`, too.
        """
        facts: dict[str, Any] = {"task": self.kind.task, "pooling": self.pooling}
        if embedding_facts := self.embedding.facts():
            facts["embedding"] = embedding_facts
        weights = self.embedding.weights()
        parts = [_Weights(weights)] if weights else []
        save_folder(folder, self.model, self.tokenizer, facts, parts, base=base)

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike,
        precision: str | None = None,
        pooling: str | Sequence[str] | None = None,
        size: int | None = None,
    ) -> Self:
        """Load an encoder that `save`, a training script or `keras-transformer import` wrote.

        Args:
            folder: Folder of the saved model.
            precision: See `Translator.load`; None: as saved.
            pooling: See the class; None: as saved, or "mean" if the folder names no pooling.
            size: Number of leading elements of a vector to keep; the model should be trained for
                this size (Matryoshka). None: as saved.

        Raises:
            ValueError: If the folder has no encoder, a file in it is broken, `pooling` is unknown,
                or vectors have fewer elements than `size`.
        """
        loaded = super().load(folder, precision)
        if pooling is None and size is None:
            return loaded
        embedding = loaded.embedding
        if size is not None:
            require_whole("size", size, 1)
            width = loaded.dimension
            require(size <= width, "size", size, f"at most {width}, the size of the vectors")
            embedding = replace(embedding, dimension=size)
        return cls(loaded.model, loaded.tokenizer, pooling or loaded.pooling, embedding)

    @classmethod
    def of(cls, folder: str | os.PathLike, model: EncoderOnly, tokenizer: TextTokenizer) -> Self:
        """Make the embedder from a model, a tokenizer and other files of `folder`."""
        config = read_config(folder, cls.kind.what)
        path = Path(folder, EMBEDDING)
        weights = read_weights(path) if path.is_file() else {}
        facts = config.get("embedding", {})
        require(isinstance(facts, dict), f'"embedding" of {folder}', facts, "an object")
        pooling = config.get("pooling", "mean")
        return cls(model, tokenizer, pooling, Embedding.of(facts, weights))

    def embed(
        self,
        texts: Sequence[str],
        *,
        prompt: str | None = None,
        prompt_name: str | None = None,
        normalize: bool | None = None,
        tokens_per_batch: int = 8192,
        strict: bool = False,
    ) -> np.ndarray:
        """Return the vector of each text: (n, D), float32.

        Args:
            texts: Texts, or proteins for an ESM.
            prompt: Text to put in front of each text, such as "query: ". "": no prompt. None: the
                prompt that `prompt_name` names.
            prompt_name: Name of one of the model's prompts, such as "query". None: its default
                prompt, if it has one.
            normalize: Whether vectors are scaled to norm 1, so that their dot products are cosines.
                None: only if the model's similarity is the cosine.
            tokens_per_batch: Maximum tokens in a batch, padding included.
            strict: Whether a text that is too long raises ValueError; else it is cut with a
                warning.

        Raises:
            ValueError: If an argument is out of range, or a text is too long and `strict` is set.
        """
        prompt = self.embedding.prompt(prompt, prompt_name)
        texts = [prompt + text for text in checked_texts(texts)]
        ids = self._encoded(texts, strict)
        extra = {}
        if prompt and not self.embedding.include_prompt:
            extra["skipped"] = self._prompt_length(prompt)
        vectors = np.empty((len(ids), self.dimension), "float32")
        results = self._run(ids, tokens_per_batch, extra=extra, with_lengths=True)
        for row, vector in enumerate(results):
            vectors[row] = vector
        normalize = self.embedding.similarity == "cosine" if normalize is None else normalize
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
        """Return the candidates that are most similar to each text, best first.

        The score is the cosine, unless the model names another similarity: "dot" (dot product),
        "euclidean" or "manhattan" (negative distances). If the model has a prompt named "query", it
        is put in front of the texts; its prompt "document", "passage" or "corpus" is put in front
        of the candidates. Without them, the default prompt is used.

        Args:
            texts: Texts to find similar candidates for.
            candidates: Texts, or vectors (m, D) that `embed` returned. Memory is proportional to m,
                not to the number of pairs.
            top_k: Number of candidates per text; all if there are fewer.
            tokens_per_batch, strict: See `embed`.

        Raises:
            ValueError: See `embed`; also if there are no candidates, or their vectors have another
                dimension or elements that are not finite.
        """
        require_whole("top_k", top_k, 1)
        options: dict[str, Any] = dict(tokens_per_batch=tokens_per_batch, strict=strict)
        if isinstance(candidates, np.ndarray):
            width = self.dimension
            has_shape = candidates.ndim == 2 and candidates.shape[1] == width
            require(has_shape, "candidates' shape", candidates.shape, f"(m, {width})")
            require(
                bool(np.isfinite(candidates).all()),
                "candidates",
                "NaN or infinity",
                "finite numbers",
            )
        else:
            name = self.embedding.prompt_name(*CANDIDATES)
            candidates = self.embed(candidates, prompt_name=name, **options)
        require(len(candidates) > 0, "candidates", [], "one or more")
        vectors = self.embed(texts, prompt_name=self.embedding.prompt_name(QUERIES), **options)
        return matches(vectors, candidates, top_k, self.embedding.similarity)

    def trainable(self) -> keras.Model:
        """Return a Keras model from `token_ids` (B, T) to vectors (B, D), to train the encoder.

        Both share the encoder's weights; the weights of the modules after the pooling are fixed.

        Raises:
            ValueError: If the model is a decoder.
        """
        name = type(self.model).__name__
        require(isinstance(self.model, EncoderOnly), "the model to train", name, "an encoder")
        inputs = {"token_ids": keras.Input((None,), dtype="int32", name="token_ids")}
        vectors_BD = self.function()(self.model.named_inputs(inputs))
        return WeightedSteps(inputs=inputs, outputs=vectors_BD)

    def _prompt_length(self, prompt: str) -> int:
        """Return the number of tokens of a prompt at the start of a text, BOS or [CLS] included."""
        (ids,) = self.tokenizer.encode([prompt])
        return len(ids) - (ids[-1] in self.tokenizer.added_ids)

    def function(self) -> Callable:
        def vectors(inputs):
            positions_BT = ops.cumsum(ops.ones_like(inputs["token_ids"]), axis=1) - 1
            counts_BT = ops.not_equal(inputs["token_ids"], self.model.config.pad_id)
            if "lengths" in inputs:  # in Qwen3-Embedding, the last token also has the id of padding
                counts_BT = positions_BT < ops.expand_dims(inputs["lengths"], -1)
            segments = {"segments": ops.cast(counts_BT, "int32")}
            x_BTD = ops.cast(self.model.encode(inputs | segments), "float32")
            if "skipped" in inputs:
                skipped_B1 = ops.expand_dims(inputs["skipped"], -1)
                counts_BT = ops.logical_and(counts_BT, positions_BT >= skipped_B1)
            return self.embedding(pool(x_BTD, counts_BT, self._modes))

        return vectors


@dataclass(frozen=True)
class _Weights:
    """The weights of the modules after the pooling, by name: a part that `save_folder` writes."""

    weights: Mapping[str, np.ndarray]

    def save(self, folder: str | os.PathLike) -> None:
        """Write `embedding.safetensors`."""
        save_weights(Path(folder, EMBEDDING), self.weights)
