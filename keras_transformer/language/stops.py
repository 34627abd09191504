"""Incremental search for stop texts in a text that grows."""

from __future__ import annotations

from collections.abc import Sequence


class Stops:
    """Texts that end a reply, found part by part in linear time (Knuth, Morris and Pratt 1977).

    Args:
        texts: The stop texts.
    """

    def __init__(self, texts: Sequence[str] = ()):
        self._texts = [(text, _borders(text)) for text in texts]

    def search(self, matched: Sequence[int], part: str) -> tuple[int | None, list[int]]:
        """Search the next part of a text.

        Args:
            matched: For each stop text, the number of its first characters that the earlier parts
                end with; empty before the first part.
            part: The next part.

        Returns:
            The index in `part` at which the first stop text begins: negative if it begins in an
            earlier part, None if no stop text was found. And `matched` for the next call.
        """
        begins, after = [], []
        pairs = zip(matched or [0] * len(self._texts), self._texts, strict=True)
        for length, (text, borders) in pairs:
            for i, character in enumerate(part):
                if length == len(text):  # an empty stop text
                    begins.append(i)
                    break
                while length and text[length] != character:
                    length = borders[length - 1]
                length += text[length] == character
                if length == len(text):
                    begins.append(i + 1 - length)
                    break
            after.append(length)
        return min(begins, default=None), after


def _borders(text):
    """Return, for each prefix of a text, the length of its longest proper prefix that ends it."""
    borders: list[int] = []
    length = 0
    for i, character in enumerate(text):
        while length and text[length] != character:
            length = borders[length - 1]
        length += i > 0 and text[length] == character
        borders.append(length)
    return borders
