"""Split long texts into sentences, as in training data, and join them with their white space."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from keras_transformer.system.extras import missing

try:
    import sentencex
except ImportError as error:
    raise missing("splitting text", "serve") from error

_BREAKS = re.compile(r"(?<=[,;:،、，；：])(?P<comma>\s*)|\s+")


@dataclass(frozen=True)
class Sentences:
    """A text split into parts, some of which are sentences; the parts joined are the text.

    ```python
    sentences = Sentences.of("One. Two.\\n", "en")
    sentences.texts  # ["One.", "Two."]
    sentences.joined(["Eins.", "Zwei."])  # "Eins. Zwei.\\n"
    ```

    Args:
        parts: Sentences and the white space around them.
        numbers: Indices of the parts that are sentences.
    """

    parts: tuple[str, ...]
    numbers: tuple[int, ...]

    @classmethod
    def of(
        cls, text: str, language: str, fits: Callable[[str], bool] = lambda sentence: True
    ) -> Sentences:
        """Split a text; a line break always ends a sentence.

        Args:
            text: The text.
            language: Its language code, such as "en".
            fits: Predicate: whether a sentence is short enough. Longer ones are split at a comma,
                else at a space, else anywhere.
        """
        parts, numbers = [], []
        for line in text.splitlines(keepends=True):
            for sentence in sentencex.segment(language, line):
                core = sentence.strip()
                before = sentence[: len(sentence) - len(sentence.lstrip())]
                if not core:
                    parts.append(sentence)
                    continue
                parts.append(before)
                for piece in _pieces(core, fits):
                    body = piece.rstrip()
                    numbers.append(len(parts))
                    parts += [body, piece[len(body) :]]
                parts.append(sentence[len(before) + len(core) :])
        return cls(tuple(parts), tuple(numbers))

    @property
    def texts(self) -> list[str]:
        """Return the sentences."""
        return [self.parts[i] for i in self.numbers]

    def joined(self, texts: Sequence[str]) -> str:
        """Return the text with `texts` in place of its sentences."""
        parts = list(self.parts)
        for i, text in zip(self.numbers, texts, strict=True):
            parts[i] = text
        return "".join(parts)


def _pieces(sentence, fits):
    """Split a sentence into pieces that fit, as near to the middle as possible."""
    core = sentence.rstrip()
    if fits(core) or len(core) == 1:
        return [sentence]
    breaks = [found for found in _BREAKS.finditer(sentence) if 0 < found.end() < len(core)]
    ends = [found.end() for found in breaks]
    commas = [found.end() for found in breaks if found["comma"] is not None]
    middle = len(core) // 2
    at = min(commas or ends or [middle], key=lambda end: abs(end - middle))
    return [*_pieces(sentence[:at], fits), *_pieces(sentence[at:], fits)]
