"""Tags of words, and the entities that they spell."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from keras_transformer.models import ESM
from keras_transformer.models.encoder_only import EncoderOnly
from keras_transformer.saved.folder import read_config, save_folder
from keras_transformer.tasks.encoder_task import EncoderTask
from keras_transformer.tasks.labels import Label
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.text.tokenizer import checked_texts

OUTSIDE = "O"
# Punctuation at the ends of a word is a word of its own; the signs of a user or a topic are not.
WORD = re.compile(r"[@#]?\w(?:\S*\w)?|[^\w\s]")
RESIDUE = re.compile(r"\S")


@dataclass(frozen=True)
class Entity:
    """Adjacent words with one label.

    Args:
        label: Kind of the entity, without "B-" or "I-".
        text: The characters of the text from `start` to `end`.
        start: Number of the first character.
        end: Number of the character after the last.
        score: Mean probability of its words' tags, in [0, 1].
    """

    label: str
    text: str
    start: int
    end: int
    score: float


class TokenTagger(EncoderTask):
    """Finds entities with what `training.token_classification` or `training.protein` saved.

    ```python
    tagger = TokenTagger.load("saved_models/entities")
    (entities,) = tagger.tag(["Ann Smith lives in Rome."])
    for entity in entities:
        print(entity.label, entity.text, entity.start, entity.end)
    ```

    Texts are sorted by length and processed in batches of a token budget. Padding is masked, so
    the result for a text does not depend on the others in its batch.

    Args:
        model: Encoder with the head "token_classification".
        tokenizer: Tokenizer that the model was trained with.
        spaced_words: Whether the model has read words with the spaces before them. Folders that
            were written before these were encoded do not say so, and are read as they were trained.

    Raises:
        ValueError: If the model has another head, or the tokenizer has more pieces than the model.
    """

    what, head, task = "token tagger", "token_classification", "token_classification"

    def __init__(self, model: EncoderOnly, tokenizer: TextTokenizer, spaced_words: bool = True):
        super().__init__(model, tokenizer)
        self.spaced_words = spaced_words

    def save(self, folder: str | os.PathLike, base: str | os.PathLike | None = None) -> None:
        """Write `model.keras`, `tokenizer.json` and `config.json`; see `EncoderTask.save`."""
        facts = {"task": self.task, "spaced_words": self.spaced_words}
        save_folder(folder, self.model, self.tokenizer, facts, base=base)

    @classmethod
    def load(cls, folder: str | os.PathLike, precision: str | None = None) -> Self:
        """Load what `save`, a training script or `keras-transformer import` wrote.

        Args:
            folder: Folder of the saved model.
            precision: See `Translator.load`; None: as saved.

        Raises:
            ValueError: If the folder is not such a model, or a file in it is broken.
        """
        found = super().load(folder, precision)
        spaced_words = read_config(folder, cls.what).get("spaced_words") is True
        return cls(found.model, found.tokenizer, spaced_words)

    def tag(
        self, texts: Sequence[str], *, tokens_per_batch: int = 8192, strict: bool = False
    ) -> list[list[Entity]]:
        """Return the entities of each text, in order.

        A text is split at spaces and before and after punctuation at the ends of words; for an ESM
        each letter is a word. "B-" begins an entity, "I-" of the same kind continues it; of labels
        without these prefixes, adjacent equal ones are one entity. "O" is none.

        Args:
            texts: Texts, or proteins for an ESM.
            tokens_per_batch: Maximum tokens in a batch, padding included.
            strict: Whether a text that is too long raises ValueError; else it is cut with a
                warning, and the words after the cut have no entities.

        Raises:
            ValueError: If an argument is out of range, or a text is too long and `strict`.
        """
        texts = checked_texts(texts)
        are_letters = isinstance(self.model, ESM)
        word = RESIDUE if are_letters else WORD
        places = [[match.span() for match in word.finditer(text)] for text in texts]
        words = [
            [text[start:end] for start, end in own] for text, own in zip(texts, places, strict=True)
        ]
        encode = functools.partial(self.tokenizer.encode_words, words, spaced=self.spaced_words)
        if self.spaced_words and not are_letters:  # as they are in the text
            encode = functools.partial(self.tokenizer.encode_places, texts, places)
        tags = self._tags(encode, words, tokens_per_batch, strict)
        return [list(_entities(*own)) for own in zip(texts, places, tags, strict=True)]

    def tag_words(
        self,
        sentences: Sequence[Sequence[str]],
        *,
        tokens_per_batch: int = 8192,
        strict: bool = False,
    ) -> list[list[Label]]:
        """Return the most probable tag of each word, from the word's first piece.

        Words are encoded as in training, each with a space before it.

        Args:
            sentences: The words of each sentence.
            tokens_per_batch, strict: See `tag`; words after a cut get "O" with probability 0.

        Raises:
            ValueError: See `tag`.
        """
        encode = functools.partial(self.tokenizer.encode_words, sentences, spaced=self.spaced_words)
        return self._tags(encode, sentences, tokens_per_batch, strict)

    def _tags(self, encode, sentences, tokens_per_batch, strict):
        """Return the tag of each word; `encode` returns the ids and the words' first ids."""
        encoded = encode()
        full = [i for i, words in enumerate(sentences) if len(words)]
        long = [self._is_long(encoded[i][0], " ".join(sentences[i]), strict) for i in full]
        if any(long):
            encoded = encode(max_length=self.model.config.max_length)
        ids = [encoded[i][0] for i in full]
        names, found = self.model.config.labels, [[] for _ in sentences]
        for i, row, table in zip(full, ids, self._run(ids, tokens_per_batch), strict=True):
            for start in encoded[i][1]:
                best = int(table[start].argmax()) if start < len(row) else None
                tag = (OUTSIDE, 0.0) if best is None else (names[best], float(table[start][best]))
                found[i].append(Label(*tag))
        return found


def _entities(
    text: str, places: Sequence[tuple[int, int]], tags: Sequence[Label]
) -> Iterator[Entity]:
    """Yield the entities that tags of words at these places spell."""
    open_: tuple[str, int, int, list[float]] | None = None
    for (start, end), tag in [*zip(places, tags, strict=True), ((0, 0), Label(OUTSIDE, 0.0))]:
        begins, kind = tag.label.startswith("B-"), re.sub("^[BI]-", "", tag.label)
        if open_ and (begins or kind != open_[0]):
            kept, first, last, scores = open_
            yield Entity(kept, text[first:last], first, last, sum(scores) / len(scores))
            open_ = None
        if kind != OUTSIDE:
            first, scores = (open_[1], open_[3]) if open_ else (start, [])
            open_ = kind, first, end, [*scores, tag.probability]
