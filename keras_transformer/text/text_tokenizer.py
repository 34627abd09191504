"""`TextTokenizer`, the tokenizer of language models and encoders, which have one vocabulary."""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from keras_transformer.system.failures import readable
from keras_transformer.system.files import replacing
from keras_transformer.system.git_lfs import read_bytes
from keras_transformer.text.encodings import (
    cut,
    encoded,
    encoded_pairs,
    made,
    starts_of_places,
    starts_of_words,
    with_spaced_words,
)
from keras_transformer.text.special_tokens import renamed, replaced
from keras_transformer.text.text_tokenizer_training import library, trained
from keras_transformer.text.tokenizer import checked_texts
from keras_transformer.text.tokenizer_classes import class_of, tokenizer_of
from keras_transformer.text.tokenizer_options import CONFIG, json_object, options_of
from keras_transformer.text.vocabulary_files import read_vocabulary

FILE = "tokenizer.json"


class TextTokenizer:
    """A tokenizer of the library `tokenizers`, saved in its format `tokenizer.json`.

    ```python
    tokenizer = TextTokenizer.train(texts, kind="bytes", vocab_size=8000)
    tokenizer.decode(tokenizer.encode(["To be, or not to be"]))
    ```

    If a text spells a special token, such as "[SEP]" or "<|im_end|>", it is encoded as plain text.
    It becomes the token only if `special` of `encode` allows it, or if it is written with the
    token's name in `special_names`.

    Args:
        content: Contents of a `tokenizer.json`.
        add_special_tokens: Whether texts get the special tokens that the file defines, such as
            [CLS] and [SEP].
        control_tokens: Added tokens that are treated like special tokens, though the file does not
            call them special.

    Attributes:
        vocab_size: Number of pieces, added tokens included.
        added_ids: Ids of tokens that were added to the vocabulary, such as special tokens.
        special_names: For each special token, the text that `encode` encodes as this token. It is
            random in each process, so that no other text contains it.

    Raises:
        ImportError: If `tokenizers` is not installed.
        ValueError: If the content cannot be read.
    """

    def __init__(
        self,
        content: bytes,
        add_special_tokens: bool = False,
        control_tokens: Collection[str] = (),
    ):
        try:
            self._tokenizer = made(content)
            self._renamed, self.special_names = renamed(content, control_tokens)
            self._encoder = made(self._renamed)
        except ImportError:
            raise
        except Exception as error:  # the library raises plain Exception
            raise ValueError(f"{FILE} cannot be read: {error}") from error
        self.content = content
        self.add_special_tokens = add_special_tokens
        self.vocab_size = self._tokenizer.get_vocab_size(with_added_tokens=True)
        self.added_ids = frozenset(self._tokenizer.get_added_tokens_decoder())

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        kind: str = "bytes",
        vocab_size: int = 8000,
        lowercase: bool = True,
    ) -> TextTokenizer:
        """Train a tokenizer.

        Args:
            texts: Training texts.
            kind: "bytes": byte-pair encoding of bytes (Radford et al. 2019, section 2.2), which can
                encode any text; "characters": one piece per character of the texts, without
                regard to `vocab_size`; "wordpiece": BERT's pieces (Devlin et al. 2019, section 3).
            vocab_size: Maximum number of pieces, from 1 to 1,000,000. If it is too small for the
                special tokens and the single bytes ("bytes": 257 in all) or characters
                ("wordpiece"), the vocabulary has just these.
            lowercase: Whether "wordpiece" converts to lower case and removes accents.

        Raises:
            ValueError: If `kind` is unknown or `vocab_size` is out of range.
        """
        tokenizer = trained(texts, kind, vocab_size, lowercase)
        return cls(tokenizer.to_str().encode(), add_special_tokens=kind == "wordpiece")

    @classmethod
    def read(cls, folder: str | os.PathLike, kind: str | None = None) -> TextTokenizer:
        """Read a tokenizer from a folder in Hugging Face's layout, or one that `save` wrote.

        Args:
            folder: Folder with `tokenizer.json`; or with `vocab.json` and `merges.txt` (such as
                GPT-2, RoBERTa, Whisper), `vocab.txt` (such as BERT, ESM), `sentencepiece.bpe.model`
                (XLM-RoBERTa, CamemBERT) or `spm.model` (DeBERTa).
            kind: The `model_type` of the model. None: that of the folder's `config.json`.

        Raises:
            FileNotFoundError: If the folder has none of these files, or its tokenizer class needs a
                `tokenizer.json` that is missing.
            ValueError: If a file cannot be read, the files contradict each other, or the tokenizer
                class or an option is not supported.
        """
        with readable(f"the tokenizer in {folder}"):
            return cls._read(Path(folder), kind)

    @classmethod
    def _read(cls, folder, kind):
        """Read the tokenizer of a folder: `tokenizer.json`, or else its vocabulary files."""
        options, model = options_of(folder), json_object(folder / "config.json")
        kind, path = kind or model.get("model_type"), folder / CONFIG
        name = class_of(options, model, path, kind)
        if not (folder / FILE).is_file():
            content, name, framed = read_vocabulary(folder, name, kind)
            return cls(tokenizer_of(content, name, options, path, True), framed)
        content = read_bytes(folder / FILE)
        try:
            framed = json.loads(content).get("post_processor") is not None
        except (ValueError, RecursionError, AttributeError) as error:
            raise ValueError(f"{folder / FILE} cannot be read: {error}") from error
        framed &= options.get("add_special_tokens", True) is not False
        return cls(tokenizer_of(content, name, options, path, False), framed)

    def encode(
        self,
        texts: Sequence[str],
        framed: bool = True,
        special: Collection[str] = (),
        max_length: int | None = None,
    ) -> list[list[int]]:
        """Return the ids of each text.

        Args:
            texts: The texts.
            framed: Whether texts get the special tokens that the file defines (only with
                `add_special_tokens`); False for the text of a chat, which has them already.
            special: Special tokens that become tokens if a text spells them; others are encoded as
                plain text. Pass `special_names` to allow all.
            max_length: Maximum ids of a text, special tokens included; longer texts are truncated.
                None: no limit.

        Raises:
            ValueError: If a text is not a string of valid Unicode, or `max_length` leaves no room
                for the special tokens of a text that is too long.
        """
        framed = framed and self.add_special_tokens
        names = {token: name for token, name in self.special_names.items() if token in special}
        texts = [replaced(text, names) for text in checked_texts(texts)]
        return [cut(x, max_length)[0] for x in encoded(self._encoder, texts, framed)]

    def encode_words(
        self,
        texts: Sequence[Sequence[str]],
        max_length: int | None = None,
        spaced: bool = True,
    ) -> list[tuple[list[int], list[int]]]:
        """Return the ids of texts that are split into words, and the index of each word's first id.

        A word without pieces, such as a space, gets the index of the next word that has a piece, or
        the last index of the text if there is no such word. A word that is cut off gets
        `max_length`.

        Args:
            texts: The words of each text.
            max_length: See `encode`.
            spaced: Whether each word is encoded with a space before it (`add_prefix_space` in
                `transformers`).

        Raises:
            ValueError: If a text is not a sequence of strings, or none of its words has a piece
                and no special tokens are added.
        """
        texts = [checked_texts(words, f"texts[{i}]") for i, words in enumerate(texts)]
        encoder = self._spaced if spaced else self._encoder
        encodings = encoded(encoder, texts, self.add_special_tokens, is_pretokenized=True)
        results = []
        for words, encoding in zip(texts, encodings, strict=True):
            if words and not encoding.ids:
                raise ValueError(
                    f"texts must have at least one piece each, got none in {words!r:.80}"
                )
            results.append(cut(encoding, max_length, starts_of_words(encoding, len(words))))
        return results

    @functools.cached_property
    def _spaced(self):
        return made(with_spaced_words(self._renamed))

    def encode_places(
        self,
        texts: Sequence[str],
        places: Sequence[Sequence[tuple[int, int]]],
        max_length: int | None = None,
    ) -> list[tuple[list[int], list[int]]]:
        """Return the ids of whole texts, and the index of the first id of each of their words.

        Args:
            texts: The texts.
            places: Start and end of each word of each text, in characters.
            max_length: See `encode`. A word that is cut off gets the index `max_length`.

        Returns:
            For each text, its ids and the indices of its words; no indices if there are no ids.
        """
        encodings = encoded(self._encoder, checked_texts(texts), self.add_special_tokens)
        return [
            cut(
                encoding,
                max_length,
                starts_of_places(encoding, text, spans) if encoding.ids else [],
            )
            for text, spans, encoding in zip(texts, places, encodings, strict=True)
        ]

    def encode_pairs(
        self, pairs: Sequence[tuple[str, str]], max_length: int, strategy: str = "only_second"
    ) -> list[tuple[list[int], list[int], list[tuple[int, int]]]]:
        """Encode each pair of texts as one sequence.

        Args:
            pairs: Pairs of texts.
            max_length: Maximum ids of a pair, special tokens included.
            strategy: The text that is truncated if a pair is too long: "only_second"; or
                "longest_first": the longer text, and both as soon as they are equally long.

        Returns:
            For each pair: its ids; the token type of each id, from the file's template, mostly 0
            for the first text and 1 for the second; and the start and end of each id in the second
            text, in characters, or (-1, -1) for ids of the first text and special tokens.

        Raises:
            ValueError: If a pair is not two strings, or `max_length` leaves no room for a piece
                after the special tokens and, with "only_second", the longest first text.
        """
        tokenizer = made(self._renamed)
        return encoded_pairs(tokenizer, pairs, max_length, strategy)

    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        """Return the text of each list of ids, without special tokens."""
        return self._tokenizer.decode_batch([list(row) for row in ids], skip_special_tokens=True)

    def id_of(self, piece: str) -> int | None:
        """Return the id of a piece; None if there is no such piece."""
        return self._tokenizer.token_to_id(piece)

    def with_special_tokens(self, tokens: Sequence[str]) -> TextTokenizer:
        """Return a copy of the tokenizer with further special tokens; new ones get the next ids."""
        tokenizer = library().Tokenizer.from_buffer(self.content)
        tokenizer.add_special_tokens(list(tokens))
        return TextTokenizer(tokenizer.to_str().encode(), self.add_special_tokens)

    def with_control_tokens(self, template: str) -> TextTokenizer:
        """Return a tokenizer for chats, which treats the template's added tokens as special.

        These are the added tokens that occur in the template, such as "<tool_call>", except white
        space and tokens of letters and digits only. Some files do not call them special.

        Args:
            template: Source of the chat template.
        """
        added = (x.content for x in self._tokenizer.get_added_tokens_decoder().values())
        control = {x for x in added if x in template and not x.isspace() and not x.isalnum()}
        if control <= self.special_names.keys():
            return self
        return TextTokenizer(self.content, self.add_special_tokens, control)

    def pieces(self) -> dict[str, int]:
        """Return the id of each piece, added tokens included."""
        return self._tokenizer.get_vocab(with_added_tokens=True)

    def fingerprint(self) -> str:
        """Return the SHA-256 (hex) of the `tokenizer.json`."""
        return hashlib.sha256(self.content).hexdigest()

    def save(self, folder: str | os.PathLike) -> None:
        """Write `tokenizer.json`, which `read` and `transformers` can read."""
        with replacing(Path(folder) / FILE) as temporary:
            temporary.write_bytes(self.content)
