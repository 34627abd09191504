"""Interface of tokenizers: ids of both languages of a translation model, a saved folder."""

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

from keras_transformer.system.files import replacing, write_json

MANIFEST = "tokenizer.json"
MAX_VOCAB_SIZE = 1_000_000


def checked_texts(texts: Iterable[str], name: str = "texts") -> list[str]:
    """Lists `texts`; ValueError names `name` when that is one string or holds anything else."""
    if isinstance(texts, str | bytes):
        raise ValueError(f"{name} must be a sequence of strings, got the one string {texts!r:.80}")
    texts = list(texts)
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(
                f"{name} must hold strings, got {type(text).__name__} at {name}[{index}]"
            )
    return texts


def round_up(size: int, multiple: int = 8) -> int:
    """The next multiple: matrices of such sizes are multiplied at the hardware's full speed."""
    return -(-size // multiple) * multiple


class Frame(NamedTuple):
    """The ids that stand before and after those of a text."""

    before: tuple[int, ...]
    after: tuple[int, ...]

    def around(self, ids: Sequence[int], room: int | None = None) -> list[int]:
        """The ids, cut for all to be at most `room` tokens, in their frame."""
        if room is not None:
            ids = ids[: max(0, room - len(self.before) - len(self.after))]
        return [*self.before, *ids, *self.after]


class Tokenizer(abc.ABC):
    """Text to ids and back, for the source and the target language of a translation model.

    Attributes:
        shared: Whether both languages have one vocabulary.
        source_vocab_size: Rows of the model's source embedding, a multiple of 8 for every
            tokenizer made here; the ids are below it.
        target_vocab_size: The same of the target; equal to it when `shared`.
        pad_id: Fills sequences up; one for both languages, as are the following.
        unk_id: Stands for what the vocabulary cannot spell; None if it can spell everything.
        bos_id: Begins the decoder's input.
        eos_id: Ends every sequence.
        source_languages, target_languages: Codes that `between` takes; none if any will do.
        source_frame, target_frame: What stands around the ids of a text.
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
        """The special tokens around the ids of a source text."""
        return Frame((), (self.eos_id,))

    @property
    def target_frame(self) -> Frame:
        """The special tokens around the ids of a target text; a search is given those before it."""
        return Frame((), (self.eos_id,))

    def between(self, source_language: str | None, target_language: str | None) -> Tokenizer:
        """This tokenizer for two of its languages; itself where it has no choice of them.

        Raises:
            ValueError: If a code is none of `source_languages` or `target_languages`; names those
                that look like it.
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
        """Source texts as ids.

        Args:
            texts: Any texts; one that is empty or only spaces becomes `[eos_id]`.
            sampling: Strength of subword regularization, from 0 (off) to 1.
            seed: Not negative. The same seed and texts give the same ids, in every thread and
                process and whatever was sampled before. None: other ids at each call.

        Returns:
            One list a text: its ids and `eos_id`, without `bos_id`.

        Raises:
            ValueError: If `texts` are not strings, or `sampling` or `seed` are out of range.
        """
        return self._encode(self._source, *_checked(texts, sampling, seed))

    def encode_target(
        self, texts: Sequence[str], *, sampling: float = 0.0, seed: int | None = None
    ) -> list[list[int]]:
        """Target texts as ids, as `encode_source` does; the batcher adds `bos_id` where it must."""
        return self._encode(self._target, *_checked(texts, sampling, seed))

    def decode_source(self, ids: Iterable[Sequence[int]]) -> list[str]:
        """Texts of source ids, as `decode_target` does."""
        return self._decode(self._source, [self._content(row) for row in ids])

    def decode_target(self, ids: Iterable[Sequence[int]]) -> list[str]:
        """Texts of target ids.

        Args:
            ids: One row a text, lists or an integer array; `pad_id` and `bos_id` are left out,
                and so is everything from the first `eos_id` on.

        Returns:
            One text a row.

        Raises:
            ValueError: If `ids` is one row instead of several.
        """
        return self._decode(self._target, [self._content(row) for row in ids])

    def spans(self, language: str, text: str) -> list[tuple[int, int]]:
        """Where in a text each of its ids stands.

        Args:
            language: "source" or "target", whose ids are meant.
            text: any text.

        Returns:
            The first character of each id and the one after its last, those of the frame left
            out. Neither ever falls from one id to the next. White space at a span's ends is not
            of it; an id that stands for nothing else, or for no character, has an empty span.
            Several ids of one character, such as its bytes, all have its span.

        Raises:
            ValueError: If `text` is no string.
        """
        (text,) = checked_texts([text], "text")
        found, start, end = [], 0, 0
        for first, last in self._spans(getattr(self, f"_{language}"), text):
            piece = text[first:last]
            first, last = last - len(piece.lstrip()), first + len(piece.rstrip())
            if first >= last:
                first = last = max(first, last)
            start, end = max(start, first), max(end, last)
            found.append((start, end))
        return found

    def fingerprint(self) -> str:
        """SHA-256 (hex) over what determines the ids: two tokenizers that share it are the same."""
        config = [type(self).__name__, self.shared, self._config()]
        digest = hashlib.sha256(json.dumps(config, sort_keys=True).encode())
        for name, content in sorted(self._files().items()):
            digest.update(name.encode() + hashlib.sha256(content).digest())
        return digest.hexdigest()

    def save(self, folder: str | os.PathLike) -> None:
        """Writes tokenizer.json and the files that it needs; `load_tokenizer` reads them back.

        Each file is replaced whole or not at all, tokenizer.json last: its fingerprint tells a
        folder in which a killed process left files of two tokenizers.
        """
        folder = Path(folder)
        for name, content in self._files().items():
            with replacing(folder / name) as temporary:
                temporary.write_bytes(content)
        manifest = {"class": type(self).__name__, "shared": self.shared, **self._config()}
        write_json(folder / MANIFEST, {**manifest, "fingerprint": self.fingerprint()})

    def skipped_ids(self) -> set[int]:
        """Ids that are no text."""
        ids = {self.pad_id, self.unk_id, self.bos_id, self.eos_id}
        return {i for i in ids if i is not None}

    def pieces_of(self, language: str) -> list[str]:
        """The vocabulary of the "source" or the "target" in the order of its ids.

        Raises:
            ValueError: If there is none to be had.
        """
        raise ValueError(f"a {type(self).__name__} does not list its pieces")

    def _content(self, row: Sequence[int]) -> list[int]:
        row = np.asarray(row).tolist()
        if not isinstance(row, list):
            raise ValueError(f"ids must be a sequence of sequences of ids, got {row!r} as a row")
        if self.eos_id in row:
            row = row[: row.index(self.eos_id)]
        return [id_ for id_ in row if id_ not in (self.pad_id, self.bos_id)]

    # What a kind of tokenizer adds: its two sides (the same object if shared) and these.
    _source: Any
    _target: Any

    @abc.abstractmethod
    def _encode(
        self, side: Any, texts: list[str], sampling: float, seed: int | None
    ) -> list[list[int]]: ...

    @abc.abstractmethod
    def _decode(self, side: Any, ids: list[list[int]]) -> list[str]: ...

    def _spans(self, side: Any, text: str) -> Sequence[tuple[int, int]]:
        """Where the ids of a text stand in it; what knows better than by decoding, overrides it."""
        (ids,) = self._encode(side, [text], 0.0, None)
        return _spans_by_decoding(lambda row: self._decode(side, [list(row)])[0], ids[:-1], text)

    @abc.abstractmethod
    def _files(self) -> dict[str, bytes]: ...

    @abc.abstractmethod
    def _config(self) -> dict[str, Any]: ...


def _spans_by_decoding(
    decode: Callable[[Sequence[int]], str], ids: Sequence[int], text: str
) -> list[tuple[int, int]]:
    """Where the ids of a text stand in it, of which nothing is known but how they decode.

    An id ends where the text of all ids up to it ends; that text is laid beside the original,
    from which it may differ in case, spaces and whatever else normalization changes.
    """
    whole = decode(ids)
    steps = difflib.SequenceMatcher(None, _folded(whole), _folded(text), autojunk=False)
    places = [0] * (len(whole) + 1)
    for _, begin, end, first, last in steps.get_opcodes():
        for i in range(begin, end + 1):
            places[i] = first + (i - begin) * (last - first) // max(1, end - begin)
    decoded = [decode(ids[: i + 1]) for i in range(len(ids))]
    same = (os.path.commonprefix([whole, text]) for text in decoded)  # noqa: RUF071, of characters
    ends = [places[len(prefix)] for prefix in same]
    return list(zip([0, *ends], ends, strict=False))


def _folded(text):
    return "".join(x.lower() if len(x.lower()) == 1 else x for x in text)


def _near(code: str, known: Sequence[str]) -> str:
    """Return the known codes that a user may have meant; all of them if they are few."""
    if len(known) <= 12:
        return ": " + ", ".join(known)
    stems = [x for x in known if x.lower().startswith(code.lower()[:2])]
    found = dict.fromkeys(difflib.get_close_matches(code, known, 5, 0.5) + stems)
    return " such as " + ", ".join(list(found or known)[:8])


def _checked(
    texts: Sequence[str], sampling: float, seed: int | None
) -> tuple[list[str], float, int | None]:
    if not 0 <= sampling <= 1:
        raise ValueError(f"sampling must be from 0 (off) to 1, got {sampling!r}")
    if seed is not None and seed < 0:
        raise ValueError(f"seed must be None or not negative, got {seed!r}")
    return checked_texts(texts), sampling, None if seed is None else int(seed)
