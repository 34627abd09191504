"""Tags of words, and the entities that they spell."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from keras_transformer.inference.encoder_task import EncoderTask
from keras_transformer.inference.labels import Label
from keras_transformer.models import ESM
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

    Raises:
        ValueError: If the model has another head, or the tokenizer has more pieces than the model.
    """

    what, head, task = "token tagger", "token_classification", "token_classification"

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
        word = RESIDUE if isinstance(self.model, ESM) else WORD
        places = [[match.span() for match in word.finditer(text)] for text in texts]
        words = [
            [text[start:end] for start, end in own] for text, own in zip(texts, places, strict=True)
        ]
        options = dict(tokens_per_batch=tokens_per_batch, strict=strict)
        tags = self.tag_words(words, **options)  # type: ignore[arg-type]
        return [list(_entities(*own)) for own in zip(texts, places, tags, strict=True)]

    def tag_words(
        self,
        sentences: Sequence[Sequence[str]],
        *,
        tokens_per_batch: int = 8192,
        strict: bool = False,
    ) -> list[list[Label]]:
        """Return the most probable tag of each word, from the word's first piece.

        Args:
            sentences: The words of each sentence.
            tokens_per_batch, strict: See `tag`; words after a cut get "O" with probability 0.

        Raises:
            ValueError: See `tag`.
        """
        encoded = self.tokenizer.encode_words(sentences)
        full = [i for i, words in enumerate(sentences) if len(words)]
        ids = [self._cut(encoded[i][0], " ".join(sentences[i]), strict) for i in full]
        names, found = self.model.config.labels, [[] for _ in sentences]  # type: ignore[var-annotated]
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
