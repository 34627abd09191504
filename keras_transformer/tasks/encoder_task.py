"""Base class of the objects that run an encoder for a task: loading, saving and batches."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar, Self

import keras
import numpy as np
from keras import ops

from keras_transformer.backend import COMPILES_EACH_SHAPE
from keras_transformer.config import require
from keras_transformer.models.encoder_only import EncoderOnly
from keras_transformer.running.batches import search_batches
from keras_transformer.running.inputs import padded, require_pieces
from keras_transformer.running.runner import Runner
from keras_transformer.saved.folder import load_with_tokenizer, save_folder
from keras_transformer.saved.kinds import Kind, kinds_with
from keras_transformer.system.named_models import located
from keras_transformer.text.text_tokenizer import TextTokenizer


class EncoderTask:
    """Base class of the tasks: an encoder with its tokenizer.

    A subclass turns the encoder's outputs into the results of one task. Its class attribute `kind`
    says which head the model must have, and `families` which classes of models it accepts.

    Texts are sorted by length and processed in batches of a token budget. Padding is masked, so
    the result for a text does not depend on the others in its batch.

    Args:
        model: A `BERT`, an `ESM` or another `EncoderOnly` with the head that the class needs.
        tokenizer: Tokenizer that the model was trained with.

    Raises:
        ValueError: If the model has another head, or the tokenizer has more pieces than the model.
    """

    kind: ClassVar[Kind]
    families: ClassVar[tuple[type[keras.Model], ...]] = (EncoderOnly,)

    def __init__(self, model: EncoderOnly, tokenizer: TextTokenizer):
        config, kind = model.config, self.kind
        # A decoder, which only a `TextEmbedder` accepts, has none of these.
        stated = getattr(config, "head", "hidden")
        problem, labels = getattr(config, "problem_type", None), getattr(config, "labels", ())
        fitting = kinds_with(stated, len(labels) == 1, problem)
        use = f" (use {fitting[0].users})" if fitting else ""
        accepted = " or ".join(map(repr, kind.heads))
        accepted += f" with problem_type {kind.problem!r}" if kind.problem else ""
        head = " with problem_type ".join(filter(None, (stated, problem)))
        has_head = kind in kinds_with(stated, True, problem)
        require(has_head, "the model's head", head, accepted + use)
        require(not kind.one_label or len(labels) == 1, "the model's labels", labels, f"one{use}")
        require_pieces(tokenizer, config)
        self.model, self.tokenizer = model, tokenizer
        self.max_length = config.max_length  # maximum tokens of a text
        self._runner = Runner()

    def save(self, folder: str | os.PathLike, base: str | os.PathLike | None = None) -> None:
        """Write `model.keras`, `tokenizer.json`, `config.json` and a model card.

        Any backend can load them.

        Args:
            folder: Folder to write to; created if missing.
            base: Folder of the model that LoRA training started from: write only the adapter to it,
                `adapter.safetensors`, instead of `model.keras`. None: the whole model.
        """
        facts = {"task": self.kind.task, **self._facts()}
        save_folder(folder, self.model, self.tokenizer, facts, base=base)

    def _facts(self) -> dict[str, Any]:
        """Return the entries of `config.json` besides the task."""
        return {}

    @classmethod
    def load(cls, folder: str | os.PathLike, precision: str | None = None) -> Self:
        """Load a model that `save`, a training script or `keras-transformer import` wrote.

        Args:
            folder: Folder of the saved model.
            precision: See `Translator.load`; None: as saved.

        Raises:
            ValueError: If the folder has no model for this task, or a file in it is broken.
        """
        folder = located(folder)
        model, tokenizer = load_with_tokenizer(folder, cls.kind.what, cls.families, precision)
        try:
            return cls.of(folder, model, tokenizer)
        except ValueError as error:
            raise ValueError(f"{folder} is not a saved {cls.kind.what}: {error}") from error

    @classmethod
    def of(cls, folder: str | os.PathLike, model: EncoderOnly, tokenizer: TextTokenizer) -> Self:
        """Make the task's object from a model and a tokenizer that were loaded from `folder`."""
        return cls(model, tokenizer)

    def in_words(self, found: Any) -> str:
        """Return the result for one text as a line of text, with tabs between its values."""
        return "\t".join(map(str, found))

    def function(self) -> Callable:
        """Return the function from the model's inputs to result arrays (B, ...)."""
        return lambda inputs: ops.softmax(ops.cast(self.model(inputs), "float32"), axis=-1)

    def _encoded(
        self, texts: Sequence[str], strict: bool, special: Collection[str] = ()
    ) -> list[list[int]]:
        """Return the ids of texts; a text that is too long is cut, with a warning.

        Its last special tokens, such as [SEP], are kept, as in `transformers`. With `strict`, a
        text that is too long raises ValueError instead.
        """
        encoded = self.tokenizer.encode(texts, special=special)
        long = [i for i, text in enumerate(texts) if self._is_long(encoded[i], text, strict)]
        options: dict[str, Any] = dict(special=special, max_length=self.max_length)
        cut = self.tokenizer.encode([texts[i] for i in long], **options)
        for i, ids in zip(long, cut, strict=True):
            encoded[i] = ids
        return encoded

    def _encoded_pairs(
        self, pairs: Sequence[tuple[str, str]], strict: bool
    ) -> tuple[list[list[int]], list[list[int]]]:
        """Return the token ids and the token types of pairs.

        If a pair is too long, its longer text is cut, with a warning.

        Raises:
            ValueError: If the model does not take pairs, or a pair is too long and `strict` is set.
        """
        only = "strings, not pairs: the model has one token type"
        require(self.model.config.takes_pairs or not pairs, "texts", pairs[:1], only)
        encoded = self.tokenizer.encode_pairs(pairs, 1 << 30)
        long = [
            i for i, encoding in enumerate(encoded) if self._is_long(encoding[0], pairs[i], strict)
        ]
        if long:
            cut = self.tokenizer.encode_pairs(
                [pairs[i] for i in long], self.max_length, strategy="longest_first"
            )
            for i, encoding in zip(long, cut, strict=True):
                encoded[i] = encoding
        return [x[0] for x in encoded], [x[1] for x in encoded]

    def _is_long(self, ids: Sequence[int], text: Any, strict: bool) -> bool:
        """Return whether a text must be cut, and warn if so; with `strict`, raise ValueError."""
        limit = self.max_length
        if not len(ids):
            raise ValueError(f"texts must have one or more tokens each, got none in {text!r:.60}")
        if len(ids) <= limit:
            return False
        problem = (
            f"texts must have at most {limit} tokens each, the model's max_length, got "
            f"{len(ids)} in {text!r:.60}"
        )
        if strict:
            raise ValueError(problem)
        warnings.warn(f"{problem}: it is cut", stacklevel=4)
        return True

    def _run(
        self,
        ids: Sequence[Sequence[int]],
        tokens_per_batch: int,
        types: Sequence[Sequence[int]] | None = None,
        extra: Mapping[str, int] | None = None,
        with_lengths: bool = False,
    ) -> list[Any]:
        """Return the result of `function` for each text, padded to the length of its batch.

        Args:
            ids: Token ids of each text: at least one, at most `max_length`.
            tokens_per_batch: Maximum tokens in a batch, padding included.
            types: Token type of each id; None: all are 0.
            extra: Further inputs of the function by name: a number for each, which is the same for
                all texts.
            with_lengths: Whether the function also gets `lengths`, the number of ids of each text.
        """
        config, results = self.model.config, [None] * len(ids)
        lengths = [len(row) for row in ids]
        for chosen, rows, length in search_batches(
            lengths, tokens_per_batch, config.max_length, COMPILES_EACH_SHAPE
        ):
            shape = rows, length
            inputs = {"token_ids": padded([ids[i] for i in chosen], *shape, config.pad_id)}
            if getattr(config, "num_types", 1) > 1:
                batch_types = [types[i] for i in chosen] if types is not None else []
                inputs["type_ids"] = padded(batch_types, *shape, 0)
            more = {name: np.full(rows, x, "int32") for name, x in (extra or {}).items()}
            if with_lengths:
                more["lengths"] = np.ones(rows, "int32")
                more["lengths"][: len(chosen)] = [lengths[i] for i in chosen]
            key = ("outputs", *more)
            result = self._runner(self.model, key, self.function, [inputs | more])
            result = keras.tree.map_structure(ops.convert_to_numpy, result)
            if not all(np.isfinite(x).all() for x in _rows(result, len(chosen))):
                raise ValueError("model must give finite outputs, got none: are weights NaN?")
            for row, i in enumerate(chosen):
                results[i] = keras.tree.map_structure(lambda x, row=row: x[row], result)
        return results


def _rows(tree, count):
    return [x[:count] for x in keras.tree.flatten(tree)]
