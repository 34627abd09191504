"""The `TokenTagger`, which tags words and joins them to entities, such as names."""

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
    """One or more adjacent words with the same label, such as the name of a person.

    Args:
        label: Kind of the entity, without "B-" or "I-".
        text: The entity: `text[start:end]` of the whole text.
        start: Index of its first character in the text.
        end: Index of the character after its last.
        score: Mean probability of its words' tags, in [0, 1].
    """

    label: str
    text: str
    start: int
    end: int
    score: float


class TokenTagger(WordTask):
    """A finder of entities that `training.token_classification` or `import` saved.

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

        A text is split into words at spaces, and each punctuation mark at the ends of a word is a
        word of its own, except "@" and "#" at its start; for an ESM each letter is a word. A label
        "B-x" begins an entity of the kind x. "I-x" continues it, or begins one after a word of
        another kind. Adjacent words with the same label without these prefixes are one entity.
        Words with the label "O" belong to no entity.

        Args:
            texts: Texts, or proteins for an ESM.
            tokens_per_batch: Maximum tokens in a batch, padding included.
            strict: Whether a text that is too long raises ValueError; else it is cut with a
                warning, and the words after the cut have no entities.

        Raises:
            ValueError: If an argument is out of range, or a text is too long and `strict` is set.
        """
        places, results = self._of_texts(texts, tokens_per_batch, strict)
        tags = self._tags(results)
        return [list(_entities(*row)) for row in zip(texts, places, tags, strict=True)]

    def tag_words(
        self,
        sentences: Sequence[Sequence[str]],
        *,
        tokens_per_batch: int = 8192,
        strict: bool = False,
    ) -> list[list[Label]]:
        """Return the most probable tag of each word, predicted from the word's first token.

        Words are encoded as in training: each with a space before it, if `spaced_words` is true.

        Args:
            sentences: The words of each sentence.
            tokens_per_batch, strict: See `tag`; words after a cut get "O" with probability 0.

        Raises:
            ValueError: See `tag`.
        """
        return self._tags(self._of_words(sentences, tokens_per_batch, strict))

    def in_words(self, found: Sequence[Entity]) -> str:
        """Return the entities of a text as a line of text: label=text, separated by tabs."""
        return "\t".join(f"{x.label}={' '.join(x.text.split())}" for x in found)

    def _tags(self, results):
        def tag(row):
            if row is None:
                return Label(OUTSIDE, 0.0)
            best = int(row.argmax())
            return Label(self.model.config.labels[best], float(row[best]))

        return [[tag(row) for row in rows] for rows in results]


def _entities(text: str, places: Places, tags: Sequence[Label]) -> Iterator[Entity]:
    """Yield the entities of a text.

    Args:
        text: The text.
        places: Start and end of each word.
        tags: The tag of each word.
    """
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
