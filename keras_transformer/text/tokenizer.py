"""`Tokenizer`, the base class of tokenizers of translators, which have a source and a target."""

from __future__ import annotations

import abc
import difflib
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_transformer.config import require
from keras_transformer.system.files import updating, write_json

MANIFEST = "tokenizer.json"
MAX_VOCAB_SIZE = 1_000_000


class Texts(list[str]):
    """A list of strings that `checked_texts` has validated; it is not checked again."""


def checked_texts(texts: Iterable[str], name: str = "texts") -> Texts:
    """Return `texts` as a list, after a check.

    Args:
        texts: The texts.
        name: Name of the argument in error messages.

    Raises:
        ValueError: If an item is not a string, or `texts` is itself one string.
    """
    if isinstance(texts, Texts):
        return texts
    if isinstance(texts, str | bytes):
        raise ValueError(f"{name} must be a sequence of strings, got the one string {texts!r:.80}")
    texts = Texts(texts)
    _require_strings(texts, name)
    return texts


def _require_strings(texts, name):
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(
                f"{name} must hold strings, got {type(text).__name__} at {name}[{index}]"
            )


def checked_pairs(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return `pairs` as a list; raise ValueError unless each item is a pair of strings."""
    pairs = list(pairs)
    for pair in pairs:
        is_pair = isinstance(pair, tuple | list) and len(pair) == 2
        require(is_pair, "pairs", pair, "pairs of a source and a target")
        checked_texts(pair, "pairs")
    return pairs


def round_up(size: int, multiple: int = 8) -> int:
    """Return `size` rounded up to a multiple of `multiple`.

    The default is 8 because hardware multiplies matrices fastest if their sizes are multiples of 8.
    """
    return -(-size // multiple) * multiple


class Frame(NamedTuple):
    """Special ids `before` and `after` the ids of a text."""

    before: tuple[int, ...]
    after: tuple[int, ...]

    def around(self, ids: Sequence[int], room: int | None = None) -> list[int]:
        """Return `ids` inside the frame.

        Args:
            ids: Ids of a text.
            room: Maximum number of ids in total: the text is cut if it has more, but not the frame.
                None: no limit.
        """
        if room is not None:
            ids = ids[: max(0, room - len(self.before) - len(self.after))]
        return [*self.before, *ids, *self.after]


class Tokenizer(abc.ABC):
    """A tokenizer: text to ids and back, for a translator's source and target language.

    Attributes:
        shared: Whether both languages share one vocabulary.
        source_vocab_size: Rows of the model's source embedding, a multiple of 8 for every
            tokenizer trained here; all ids are smaller.
        target_vocab_size: Rows of the target embedding; the same number if `shared`.
        pad_id: Padding id. It and the ids below are the same for both languages.
        unk_id: Id of text that the vocabulary cannot spell; None if there is no such id.
        bos_id: Id that begins the decoder's input.
        eos_id: Id that ends a target. In a source, a language's id may follow it.
        source_languages, target_languages: Language codes that `between` accepts; empty: any.
        source_frame, target_frame: Special ids around the ids of a text.
    """

    source_languages: tuple[str, ...] = ()
    target_languages: tuple[str, ...] = ()
    shared: bool
    source_vocab_size: int
    target_vocab_size: int
    pad_id: int
    unk_id: int | None
    bos_id: int
    eos_id: int

    @property
    def source_frame(self) -> Frame:
        """Special ids around the ids of a source text."""
        return Frame((), (self.eos_id,))

    @property
    def target_frame(self) -> Frame:
        """Special ids around the ids of a target text; every translation begins with `before`."""
        return Frame((), (self.eos_id,))

    def between(self, source_language: str | None, target_language: str | None) -> Tokenizer:
        """Return a tokenizer for a pair of languages; this object is not changed.

        Args:
            source_language: Code in `source_languages`; None: not chosen.
            target_language: Code in `target_languages`; None: not chosen.

        Raises:
            ValueError: If a code is not accepted; the message lists accepted ones that are similar.
        """
        for name, code in dict(source=source_language, target=target_language).items():
            known = getattr(self, f"{name}_languages")
            if code is not None and known and code not in known:
                near = _near(str(code), known)
                raise ValueError(
                    f"{name}_language must be one of {len(known)} codes{near}, got {code!r}"
                )
        return self._between(source_language, target_language)

    def _between(self, source_language: str | None, target_language: str | None) -> Tokenizer:
        return self

    def encode_source(
        self, texts: Sequence[str], *, sampling: float = 0.0, seed: int | None = None
    ) -> list[list[int]]:
        """Encode source texts as ids.

        Args:
            texts: Any texts. The ids of an empty text, or one of spaces only, are those of
                `source_frame`, mostly `[eos_id]`.
            sampling: Strength of subword regularization, from 0 (off) to 1. Only
                `SentencePieceTokenizer` and `WordTokenizer` accept more than 0.
            seed: Seed of the sampling, at least 0. The same seed and texts give the same ids in
                every thread and process, independent of earlier calls. None: different ids in each
                call.

        Returns:
            One list per text: its ids inside `source_frame`. `bos_id` is not added.

        Raises:
            ValueError: If `texts` are not strings, or `sampling` or `seed` is not accepted.
        """
        return self._encode(self._source, *_checked(texts, sampling, seed))

    def encode_target(
        self, texts: Sequence[str], *, sampling: float = 0.0, seed: int | None = None
    ) -> list[list[int]]:
        """Encode target texts as ids inside `target_frame`; see `encode_source`."""
        return self._encode(self._target, *_checked(texts, sampling, seed))

    def decode_source(self, ids: Iterable[Sequence[int]]) -> list[str]:
        """Decode source ids to texts, like `decode_target`."""
        return self._decode(self._source, [self._content(row) for row in ids])

    def decode_target(self, ids: Iterable[Sequence[int]]) -> list[str]:
        """Decode target ids to texts.

        Args:
            ids: One row per text, as lists or an integer array. `pad_id`, `bos_id`, the first
                `eos_id` and everything after it are left out.

        Returns:
            One text per row.

        Raises:
            ValueError: If `ids` is one row instead of several.
        """
        return self._decode(self._target, [self._content(row) for row in ids])

    def spans(self, language: str, text: str) -> list[tuple[int, int]]:
        """Return the start and end, in characters, of each id of a text.

        Args:
            language: "source" or "target": the vocabulary that encodes the text.
            text: Any text.

        Returns:
            Start and end of each id, without the ids of the frame. Starts never decrease from one
            id to the next, nor do ends. A span excludes white space at its ends; an id of white
            space only, or of no character, has an empty span. If a character has several ids, such
            as its bytes, each has the span of the character.

        Raises:
            ValueError: If `text` is not a string.
        """
        (text,) = checked_texts([text], "text")
        spans, start, end = [], 0, 0
        for first, last in self._spans(getattr(self, f"_{language}"), text):
            piece = text[first:last]
            first, last = last - len(piece.lstrip()), first + len(piece.rstrip())
            if first >= last:
                first = last = max(first, last)
            start, end = max(start, first), max(end, last)
            spans.append((start, end))
        return spans

    def fingerprint(self) -> str:
        """Return a SHA-256 (hex) of everything that determines the ids."""
        config = [type(self).__name__, self.shared, self._config()]
        digest = hashlib.sha256(json.dumps(config, sort_keys=True).encode())
        for name, content in sorted(self._files().items()):
            digest.update(name.encode() + hashlib.sha256(content).digest())
        return digest.hexdigest()

    def save(self, folder: str | os.PathLike) -> None:
        """Write tokenizer.json and the files that it needs; `load_tokenizer` reads them back.

        If an error occurs or the process is killed, the folder has the old or the new tokenizer,
        never a mixture.
        """
        Path(folder).mkdir(parents=True, exist_ok=True)
        manifest = {"class": type(self).__name__, "shared": self.shared, **self._config()}
        with updating(folder, MANIFEST) as new:
            for name, content in self._files().items():
                (new / name).parent.mkdir(parents=True, exist_ok=True)
                (new / name).write_bytes(content)
            write_json(new / MANIFEST, {**manifest, "fingerprint": self.fingerprint()})

    def skipped_ids(self) -> set[int]:
        """Return the special ids, which decoding leaves out."""
        return {self.pad_id, self.bos_id, self.eos_id}

    def pieces_of(self, language: str) -> list[str]:
        """Return the vocabulary of "source" or "target" in the order of its ids.

        Raises:
            ValueError: If this kind of tokenizer does not list its vocabulary.
        """
        raise ValueError(f"a {type(self).__name__} does not list its pieces")

    def _content(self, row: Sequence[int]) -> list[int]:
        row = np.asarray(row).tolist()
        if not isinstance(row, list):
            raise ValueError(f"ids must be a sequence of sequences of ids, got {row!r} as a row")
        if self.eos_id in row:
            row = row[: row.index(self.eos_id)]
        return [id_ for id_ in row if id_ not in (self.pad_id, self.bos_id)]

    # A subclass sets these objects, one per language (or the same if shared), and defines the
    # abstract methods below, which get one of them as `side`.
    _source: Any
    _target: Any

    @abc.abstractmethod
    def _encode(
        self, side: Any, texts: list[str], sampling: float, seed: int | None
    ) -> list[list[int]]: ...

    @abc.abstractmethod
    def _decode(self, side: Any, ids: list[list[int]]) -> list[str]: ...

    def _spans(self, side: Any, text: str) -> Sequence[tuple[int, int]]:
        """Return the span of each id, found by decoding; subclasses may know exact spans."""
        (ids,) = self._encode(side, [text], 0.0, None)
        return _spans_by_decoding(lambda row: self._decode(side, [list(row)])[0], ids[:-1], text)

    @abc.abstractmethod
    def _files(self) -> dict[str, bytes]: ...

    @abc.abstractmethod
    def _config(self) -> dict[str, Any]: ...


def _spans_by_decoding(
    decode: Callable[[Sequence[int]], str], ids: Sequence[int], text: str
) -> list[tuple[int, int]]:
    """Return the span of each id of a text, given only a function that decodes ids.

    An id ends where the decoded text of all ids up to it ends. The decoded text may differ from the
    original in case, spaces and everything else that normalization changes, so the two are aligned
    with `difflib`.
    """
    whole = decode(ids)
    steps = difflib.SequenceMatcher(None, _folded(whole), _folded(text), autojunk=False)
    places = [0] * (len(whole) + 1)
    for _, begin, end, first, last in steps.get_opcodes():
        for i in range(begin, end + 1):
            places[i] = first + (i - begin) * (last - first) // max(1, end - begin)
    decoded = [decode(ids[: i + 1]) for i in range(len(ids))]
    same = (os.path.commonprefix([whole, text]) for text in decoded)  # noqa: RUF071, by character
    ends = [places[len(prefix)] for prefix in same]
    return list(zip([0, *ends], ends, strict=False))


def _folded(text):
    return "".join(x.lower() if len(x.lower()) == 1 else x for x in text)


def _near(code: str, known: Sequence[str]) -> str:
    """Return the end of a message that lists codes similar to `code`, or all if at most 12."""
    if len(known) <= 12:
        return ": " + ", ".join(known)
    stems = [x for x in known if x.lower().startswith(code.lower()[:2])]
    near = dict.fromkeys(difflib.get_close_matches(code, known, 5, 0.5) + stems)
    return " such as " + ", ".join(list(near or known)[:8])


def _checked(
    texts: Sequence[str], sampling: float, seed: int | None
) -> tuple[list[str], float, int | None]:
    require(0 <= sampling <= 1, "sampling", sampling, "from 0 (off) to 1")
    require(seed is None or seed >= 0, "seed", seed, "None or not negative")
    return checked_texts(texts), sampling, None if seed is None else int(seed)
