"""Split texts into sentences, and join the translations with the original white space.

Models are trained on sentences, so longer texts are split.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from keras_transformer.system.extras import missing

try:
    import sentencex
except ImportError as error:
    raise missing("splitting text", "serve") from error

# Maximum characters and punctuation marks of a line that are split in one call: sentencex 1.0.32
# takes quadratic time in the marks of a line and holds the interpreter's lock. 500 marks take 1 ms.
SLICE, MARKS = 4000, 500
_BREAKS = re.compile(r"(?<=[,;:،、，；：])(?P<comma>\s*)|\s+")
_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"  # ends of lines, as in str.splitlines
_LINE = re.compile(f"[^{_ENDS}]++(?:\r\n|[{_ENDS}])?")
_MARKS = "".join(
    re.escape(chr(x)) for x in range(0x10000) if unicodedata.category(chr(x)).startswith("P")
)
# All characters beyond the basic plane count as marks: they are rare, and listing those that are
# marks would be slow.
_MARKS += "\U00010000-\U0010ffff"
_FEW_MARKS = re.compile(f"(?:[^{_MARKS}]*+[{_MARKS}]){{0,{MARKS}}}+[^{_MARKS}]*+")


@dataclass(frozen=True)
class Sentences:
    """A text split into parts, of which every second is a sentence; joined, they are the text.

    ```python
    sentences = Sentences.of("One. Two.\\n", "en")
    sentences.texts  # ["One.", "Two."]
    sentences.joined(["Eins.", "Zwei."])  # "Eins. Zwei.\\n"
    ```

    Args:
        parts: Text around sentences, and sentences, alternately; the first and last are not
            sentences.
    """

    parts: tuple[str, ...]

    @classmethod
    def of(
        cls,
        text: str,
        language: str,
        fits: Callable[[str], bool] = lambda sentence: True,
        watch: Callable[[list[str]], None] = lambda sentences: None,
    ) -> Sentences:
        """Split a text, in time linear in its length.

        A line break always ends a sentence. A line of more than `SLICE` characters or `MARKS` marks
        is split slice by slice; a sentence of more than half a slice may then be cut, at white
        space if possible.

        Args:
            text: The text.
            language: Its language code, such as "en".
            fits: Function that tells whether a sentence is short enough. Longer ones are split at a
                comma, else at a space, else anywhere.
            watch: Called with the sentences of each slice; it may raise to end the work.
        """
        parts: list[str] = []
        done = 0
        for begin, segments in _slices(text, language):
            first = len(parts)
            for segment in segments:
                core = segment.strip()
                at = begin + len(segment) - len(segment.lstrip())
                begin += len(segment)
                for piece in _pieces(core, fits) if core else ():
                    body = piece.rstrip()
                    parts += [text[done:at], body]
                    done, at = at + len(body), at + len(piece)
            watch(parts[first + 1 :: 2])
        return cls((*parts, text[done:]))

    @property
    def texts(self) -> list[str]:
        """The sentences."""
        return list(self.parts[1::2])

    def joined(self, texts: Sequence[str]) -> str:
        """Return the text with `texts` in place of its sentences."""
        parts = list(self.parts)
        parts[1::2] = texts
        return "".join(parts)


def _slices(text: str, language: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (start, segments) of each slice of each line; a segment is a sentence or a part."""
    for line in _LINE.finditer(text):
        place, end = line.span()
        while place < end:
            until = _end_of_slice(text, place, end)
            segments = sentencex.segment(language, text[place:until])
            # The last segment may continue in the next slice, so it is read again there, unless it
            # is long: it could be read again in every slice.
            half = (until - place) // 2
            if until < end and len(segments) > 1 and len(segments[-1]) <= half:
                segments.pop()
            yield place, segments
            place += sum(map(len, segments))


def _end_of_slice(text, begin, end):
    """Return where to end a slice of a line that ends at `end`: after white space if possible."""
    until = next(_FEW_MARKS.finditer(text, begin, min(begin + SLICE, end))).end()
    if until == end:
        return end
    words = text[(begin + until) // 2 : until].rsplit(maxsplit=1)
    return until - len(words[-1]) if len(words) > 1 and not text[until - 1].isspace() else until


def _pieces(sentence, fits):
    """Halve a sentence until all pieces fit, at a comma or space near the middle if possible."""
    if fits(sentence):
        return [sentence]
    breaks = [*_BREAKS.finditer(sentence)]
    ends = [match.end() for match in breaks]
    commas = [match.end() for match in breaks if match["comma"] is not None]
    pieces = []

    def split(begin, end):
        core = sentence[begin:end].rstrip()
        if fits(core) or len(core) == 1:
            pieces.append(sentence[begin:end])
            return
        middle, reached = begin + len(core) // 2, begin + len(core)
        places = _near(commas, begin, middle, reached) or _near(ends, begin, middle, reached)
        at = min(places or [middle], key=lambda place: abs(place - middle))
        split(begin, at)
        split(at, end)

    split(0, len(sentence))
    return pieces


def _near(places, begin, middle, end):
    """Return the nearest place on each side of the middle, if inside (begin, end)."""
    i = bisect_left(places, middle)
    return [place for place in places[max(i - 1, 0) : i + 1] if begin < place < end]
