"""Tokenizers of models that read one text: language models and encoders."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from keras_transformer.config import require, require_whole
from keras_transformer.system.extras import missing
from keras_transformer.system.files import read_json, replacing
from keras_transformer.text.tokenizer import MAX_VOCAB_SIZE, checked_texts
from keras_transformer.text.vocabulary_files import from_vocabulary

FILE = "tokenizer.json"
KINDS = ("bytes", "characters", "wordpiece")
MOST_GAPS = 100_000  # ids without a piece


class TextTokenizer:
    """A tokenizer of the library `tokenizers`, saved in its format `tokenizer.json`.

    ```python
    tokenizer = TextTokenizer.train(texts, kind="bytes", vocab_size=8000)
    tokenizer.decode(tokenizer.encode(["To be, or not to be"]))
    ```

    Args:
        content: Contents of a `tokenizer.json`.
        add_special_tokens: Whether texts get the special tokens that the file defines, such as
            [CLS] and [SEP].

    Attributes:
        vocab_size: Number of pieces.
        added_ids: Ids of tokens that were added to the vocabulary, such as special tokens.

    Raises:
        ImportError: If `tokenizers` is not installed.
        ValueError: If the content cannot be read.
    """

    def __init__(self, content: bytes, add_special_tokens: bool = False):
        try:
            self._tokenizer = _library().Tokenizer.from_buffer(content)
        except ImportError:
            raise
        except Exception as error:  # the library raises Exception itself
            raise ValueError(f"{FILE} cannot be read: {error}") from error
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
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
            kind: "bytes": byte-pair encoding of bytes (Radford et al. 2019, section 2.2), which
                spells any text; "characters": all characters of the texts, whatever `vocab_size`;
                "wordpiece": BERT's pieces (Devlin et al. 2019, section 3).
            vocab_size: Most pieces of the vocabulary, from 1 to 1,000,000.
            lowercase: Whether "wordpiece" removes case and accents.

        Raises:
            ValueError: If `kind` is unknown or `vocab_size` is out of range.
        """
        require(kind in KINDS, "kind", kind, f"one of {KINDS}")
        require_whole("vocab_size", vocab_size, 1)
        # The library allocates memory for all pieces at once.
        most = f"at most {MAX_VOCAB_SIZE:,}"
        require(vocab_size <= MAX_VOCAB_SIZE, "vocab_size", vocab_size, most)
        library = _library()
        if kind == "characters":
            characters = sorted({x for text in texts for x in set(text)})
            vocabulary = {x: i for i, x in enumerate(["<|endoftext|>", *characters])}
            model = library.models.WordLevel(vocabulary, unk_token="<|endoftext|>")
            tokenizer = library.Tokenizer(model)
            split = library.pre_tokenizers.Split(library.Regex(r"[\s\S]"), "isolated")
            tokenizer.pre_tokenizer = split
            tokenizer.decoder = library.decoders.Fuse()
            tokenizer.add_special_tokens(["<|endoftext|>"])
        elif kind == "bytes":
            tokenizer = library.Tokenizer(library.models.BPE())
            tokenizer.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
            tokenizer.decoder = library.decoders.ByteLevel()
            trainer = library.trainers.BpeTrainer(
                vocab_size=vocab_size,
                special_tokens=["<|endoftext|>"],
                initial_alphabet=library.pre_tokenizers.ByteLevel.alphabet(),
                show_progress=False,
            )
            tokenizer.train_from_iterator(texts, trainer)
        else:
            special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
            tokenizer = library.Tokenizer(library.models.WordPiece(unk_token="[UNK]"))
            tokenizer.normalizer = library.normalizers.BertNormalizer(lowercase=lowercase)
            tokenizer.pre_tokenizer = library.pre_tokenizers.BertPreTokenizer()
            tokenizer.decoder = library.decoders.WordPiece()
            trainer = library.trainers.WordPieceTrainer(
                vocab_size=vocab_size, special_tokens=special, show_progress=False
            )
            tokenizer.train_from_iterator(texts, trainer)
            ids = {name: tokenizer.token_to_id(name) for name in ("[CLS]", "[SEP]")}
            tokenizer.post_processor = library.processors.BertProcessing(
                ("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"])
            )
        return cls(tokenizer.to_str().encode(), add_special_tokens=kind == "wordpiece")

    @classmethod
    def read(cls, folder: str | os.PathLike, kind: str | None = None) -> TextTokenizer:
        """Read a folder in Hugging Face's layout, or one that `save` wrote.

        It has a `tokenizer.json`; or `vocab.json` and `merges.txt`, like GPT-2, RoBERTa and
        Whisper; or `vocab.txt`, like BERT and ESM; or `sentencepiece.bpe.model` of an XLM-RoBERTa;
        or `spm.model` of a DeBERTa.

        Args:
            folder: The folder.
            kind: The `model_type` of its model. None: that in its `config.json`.

        Raises:
            FileNotFoundError: If the folder has none of these.
            ValueError: If a file cannot be read.
        """
        folder, library = Path(folder), _library()
        options, config = (
            read_json(folder / name) if (folder / name).is_file() else {}
            for name in ("tokenizer_config.json", "config.json")
        )
        for name, found in {"tokenizer_config.json": options, "config.json": config}.items():
            require(isinstance(found, dict), f"the content of {folder / name}", found, "an object")
        if (folder / FILE).is_file():
            content = (folder / FILE).read_bytes()
            try:
                framed = json.loads(content).get("post_processor") is not None
            except (ValueError, RecursionError, AttributeError) as error:
                raise ValueError(f"{folder / FILE} cannot be read: {error}") from error
            return cls(content, framed and options.get("add_special_tokens", True) is not False)
        try:
            found = from_vocabulary(library, folder, options, kind or config.get("model_type"))
        except Exception as error:  # the library raises Exception itself
            raise ValueError(f"the vocabulary in {folder} cannot be read: {error}") from error
        if found is None:
            raise FileNotFoundError(
                f"{folder} holds no tokenizer: there is neither {FILE}, nor vocab.json with "
                "merges.txt, nor vocab.txt, nor sentencepiece.bpe.model of an XLM-RoBERTa, nor "
                "spm.model of a DeBERTa"
            )
        tokenizer, framed = found
        ids = tokenizer.get_vocab().values()
        largest, most = max(ids, default=0), len(ids) + MOST_GAPS
        require(largest < most, f"ids of the vocabulary in {folder}", largest, f"below {most:,}")
        return cls(tokenizer.to_str().encode(), add_special_tokens=framed)

    def encode(self, texts: Sequence[str], framed: bool = True) -> list[list[int]]:
        """Return the ids of each text; text that spells a special token becomes this token.

        Args:
            texts: The texts.
            framed: Whether texts get the special tokens that the file defines; False for the text
                of a chat, which has them already.
        """
        framed = framed and self.add_special_tokens
        found = _encoded(self._tokenizer, checked_texts(texts), framed)
        return [encoding.ids for encoding in found]

    def encode_words(self, texts: Sequence[Sequence[str]]) -> list[tuple[list[int], list[int]]]:
        """Return the ids of texts that are split into words, and the index of each word's first id.

        A word without pieces, such as a space, gets the index of the next word that has one; if
        there is none, the last index.

        Raises:
            ValueError: If a text is not a sequence of strings, or none of its words has a piece
                and no special tokens are added.
        """
        texts = [checked_texts(words, f"texts[{i}]") for i, words in enumerate(texts)]
        found = _encoded(self._tokenizer, texts, self.add_special_tokens, is_pretokenized=True)
        results = []
        for words, encoding in zip(texts, found, strict=True):
            if words and not encoding.ids:
                raise ValueError(
                    f"texts must have at least one piece each, got none in {words!r:.80}"
                )
            owners = np.array([-1 if x is None else x for x in encoding.word_ids])
            last = len(owners) - 1
            later = [np.flatnonzero(owners >= i) for i in range(len(words))]
            results.append((encoding.ids, [int(x[0]) if len(x) else last for x in later]))
        return results

    def encode_pairs(
        self, pairs: Sequence[tuple[str, str]], max_length: int
    ) -> list[tuple[list[int], list[int], list[tuple[int, int]]]]:
        """Encode each pair of texts as one sequence, with the spans of its ids in the second text.

        Args:
            pairs: Pairs of texts; the second is truncated if both together are too long.
            max_length: Most ids of a pair.

        Returns:
            For each pair: its ids; for each id 0 for the first text or 1 for the second; and for
            each id its first character in the second text and the one after its last, or
            (-1, -1) if it is not of the second text.

        Raises:
            ValueError: If a pair is not two strings, or a first text leaves no room for a piece
                of the second.
        """
        pairs = [
            # The number of texts in each is checked below.
            tuple(checked_texts(pair, f"pairs[{i}]"))  # type: ignore[misc]
            for i, pair in enumerate(pairs)
        ]
        for i, pair in enumerate(pairs):
            require(len(pair) == 2, f"pairs[{i}]", pair, "two texts")
        tokenizer = _library().Tokenizer.from_buffer(self.content)
        tokenizer.no_padding()
        tokenizer.no_truncation()
        least = tokenizer.num_special_tokens_to_add(True) + 1
        firsts = _encoded(tokenizer, [first for first, _ in pairs], False)
        least += max((len(encoding.ids) for encoding in firsts), default=0)
        require_whole("max_length", max_length, least)
        tokenizer.enable_truncation(max_length, strategy="only_second")
        results = []
        for encoding in _encoded(tokenizer, pairs):
            owners = zip(encoding.sequence_ids, encoding.offsets, strict=True)
            places = [offsets if owner == 1 else (-1, -1) for owner, offsets in owners]
            results.append((encoding.ids, encoding.type_ids, places))
        return results

    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        """Return the text of each list of ids, without special tokens."""
        return self._tokenizer.decode_batch([list(row) for row in ids], skip_special_tokens=True)

    def id_of(self, piece: str) -> int | None:
        """Return the id of a piece; None if there is no such piece."""
        return self._tokenizer.token_to_id(piece)

    def with_special_tokens(self, tokens: Sequence[str]) -> TextTokenizer:
        """Return a tokenizer that has these special tokens, too; new ones get the next ids."""
        tokenizer = _library().Tokenizer.from_buffer(self.content)
        tokenizer.add_special_tokens(list(tokens))
        return TextTokenizer(tokenizer.to_str().encode(), self.add_special_tokens)

    def pieces(self) -> dict[str, int]:
        """Return all pieces and their ids."""
        return self._tokenizer.get_vocab(with_added_tokens=True)

    def fingerprint(self) -> str:
        """Return a SHA-256 (hex) of all that determines the ids."""
        return hashlib.sha256(self.content).hexdigest()

    def save(self, folder: str | os.PathLike) -> None:
        """Write `tokenizer.json`, which `read` and `transformers` can read."""
        with replacing(Path(folder) / FILE) as temporary:
            temporary.write_bytes(self.content)


def _encoded(tokenizer, texts, add_special_tokens=True, **options):
    try:
        return tokenizer.encode_batch(texts, add_special_tokens=add_special_tokens, **options)
    except TypeError as error:  # for strings there is no other cause
        raise ValueError("texts must be valid Unicode, got a lone surrogate") from error
    except Exception as error:
        if type(error) is not Exception:  # the library's own
            raise
        raise ValueError(f"texts must be ones that the tokenizer can encode: {error}") from error


def _library():
    try:
        import tokenizers
    except ImportError as error:
        raise missing("the tokenizer of a language model", "pretrained") from error
    return tokenizers
