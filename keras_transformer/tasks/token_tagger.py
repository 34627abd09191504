"""Tags of words, and the entities that they spell."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from keras_transformer.saved.kinds import kind_of
from keras_transformer.tasks.labels import Label
from keras_transformer.tasks.word_task import Places, WordTask

OUTSIDE = "O"


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


class TokenTagger(WordTask):
    """Finds entities with what `training.token_classification` or `training.protein` saved.

    ```python
    tagger = TokenTagger.load("saved_models/entities")
    (entities,) = tagger.tag(["Ann Smith lives in Rome."])
    for entity in entities:
        print(entity.label, entity.text, entity.start, entity.end)
    ```

    Texts are sorted by length and processed in batches of a token budget. Padding is masked, so
    the result for a text does not depend on the others in its batch. Arguments: see `WordTask`.
    """

    kind = kind_of("TokenTagger")

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
        places, results = self._of_texts(texts, tokens_per_batch, strict)
        tags = self._tags(results)
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
        return self._tags(self._of_words(sentences, tokens_per_batch, strict))

    def in_words(self, found: Sequence[Entity]) -> str:
        """Return the entities of a text as a line of text: each as label=text."""
        return "\t".join(f"{x.label}={' '.join(x.text.split())}" for x in found)

    def _tags(self, results):
        def tag(row):
            if row is None:
                return Label(OUTSIDE, 0.0)
            best = int(row.argmax())
            return Label(self.model.config.labels[best], float(row[best]))

        return [[tag(row) for row in rows] for rows in results]


def _entities(text: str, places: Places, tags: Sequence[Label]) -> Iterator[Entity]:
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
