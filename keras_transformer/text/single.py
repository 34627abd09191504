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
from keras_transformer.text.vocabularies import from_vocabulary

FILE = "tokenizer.json"
KINDS = ("bytes", "characters", "wordpiece")


class TextTokenizer:
    """Text to ids and back by the library `tokenizers`, in the format of its `tokenizer.json`.

    ```python
    tokenizer = TextTokenizer.train(texts, kind="bytes", vocab_size=8000)
    tokenizer.decode(tokenizer.encode(["To be, or not to be"]))
    ```

    Args:
        content: of a `tokenizer.json`.
        add_special_tokens: whether a text is framed as the file says, such as by [CLS] and [SEP].

    Raises:
        ImportError: without `tokenizers`.
        ValueError: if the content cannot be read.
    """

    def __init__(self, content: bytes, add_special_tokens: bool = False):
        try:
            self._tokenizer = _library().Tokenizer.from_buffer(content)
        except ImportError:
            raise
        except Exception as error:  # the library's own, without a class
            raise ValueError(f"{FILE} cannot be read: {error}") from error
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self.content = content
        self.add_special_tokens = add_special_tokens
        self.vocab_size = self._tokenizer.get_vocab_size(with_added_tokens=True)

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        kind: str = "bytes",
        vocab_size: int = 8000,
        lowercase: bool = True,
    ) -> TextTokenizer:
        """Learns the pieces.

        Args:
            texts: to learn from.
            kind: "bytes": byte-pair encoding of bytes (Radford et al. 2019, section 2.2), which
                spells any text; "characters": those of the texts, whatever `vocab_size`;
                "wordpiece": BERT's (Devlin et al. 2019, section 3).
            vocab_size: pieces, at most.
            lowercase: whether word pieces are of texts without case and accents.

        Raises:
            ValueError: for another kind, or a vocabulary of none or of more than a million pieces.
        """
        require(kind in KINDS, "kind", kind, f"one of {KINDS}")
        require_whole("vocab_size", vocab_size, 1)
        # The library takes memory for all of them at once.
        most = f"at most {MAX_VOCAB_SIZE:,}"
        require(vocab_size <= MAX_VOCAB_SIZE, "vocab_size", vocab_size, most)
        library = _library()
        if kind == "characters":
            characters = sorted(set().union(*texts))
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
    def read(cls, folder: str | os.PathLike) -> TextTokenizer:
        """Read a folder in Hugging Face's layout, or one that `save` wrote.

        It has a `tokenizer.json`; or `vocab.json` and `merges.txt`, as GPT-2, RoBERTa and Whisper
        have; or `vocab.txt`, as BERT and ESM have. Which of these, its `config.json` says.

        Raises:
            FileNotFoundError: if none of these is there.
            ValueError: if a file cannot be read.
        """
        folder, library = Path(folder), _library()
        options, config = (
            read_json(folder / name) if (folder / name).is_file() else {}
            for name in ("tokenizer_config.json", "config.json")
        )
        if (folder / FILE).is_file():
            content = (folder / FILE).read_bytes()
            try:
                framed = json.loads(content).get("post_processor") is not None
            except ValueError as error:
                raise ValueError(f"{folder / FILE} cannot be read: {error}") from error
            return cls(content, framed and options.get("add_special_tokens", True))
        try:
            found = from_vocabulary(library, folder, options, config.get("model_type"))
        except Exception as error:  # the library's own, without a class
            raise ValueError(f"the vocabulary in {folder} cannot be read: {error}") from error
        if found is None:
            raise FileNotFoundError(
                f"{folder} holds no tokenizer: there is neither {FILE}, nor vocab.json with "
                "merges.txt, nor vocab.txt"
            )
        tokenizer, framed = found
        return cls(tokenizer.to_str().encode(), add_special_tokens=framed)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of each text."""
        found = _encoded(self._tokenizer, checked_texts(texts), self.add_special_tokens)
        return [encoding.ids for encoding in found]

    def encode_words(self, texts: Sequence[Sequence[str]]) -> list[tuple[list[int], list[int]]]:
        """Ids of texts that are split into words, and the place in `ids` where each word begins.

        A word without any piece, such as a space, has that of the next, and where there is no next
        one, the last place.

        Raises:
            ValueError: if a text is no sequence of strings, or none of its words has a piece and
                nothing frames it.
        """
        texts = [checked_texts(words, f"texts[{i}]") for i, words in enumerate(texts)]
        found = _encoded(self._tokenizer, texts, self.add_special_tokens, is_pretokenized=True)
        results = []
        for words, encoding in zip(texts, found, strict=True):
            if words and not encoding.ids:
                raise ValueError(f"texts must have a piece each, got none in {words!r:.80}")
            owners = np.array([-1 if x is None else x for x in encoding.word_ids])
            last = len(owners) - 1
            later = [np.flatnonzero(owners >= i) for i in range(len(words))]
            results.append((encoding.ids, [int(x[0]) if len(x) else last for x in later]))
        return results

    def encode_pairs(
        self, pairs: Sequence[tuple[str, str]], max_length: int
    ) -> list[tuple[list[int], list[int], list[tuple[int, int]]]]:
        """Ids of two texts in a row, which text each is of, and where it stands in the second.

        Args:
            pairs: of texts; the second is cut where both are too long together.
            max_length: most ids.

        Returns:
            For each pair: ids; 0 for the first text and 1 for the second; and the first character
            of each piece in the second text and the one after its last, (-1, -1) for all others.

        Raises:
            ValueError: if a pair is not two strings, or its first text leaves no room for a piece
                of the second.
        """
        pairs = [
            # Which of them are pairs is checked below.
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
        """The text of each list of ids, special tokens left out."""
        return self._tokenizer.decode_batch([list(row) for row in ids], skip_special_tokens=True)

    def id_of(self, piece: str) -> int | None:
        """The id of a piece; None if there is no such piece."""
        return self._tokenizer.token_to_id(piece)

    def pieces(self) -> dict[str, int]:
        """All pieces and their ids."""
        return self._tokenizer.get_vocab(with_added_tokens=True)

    def fingerprint(self) -> str:
        """SHA-256 (hex) over what determines the ids."""
        return hashlib.sha256(self.content).hexdigest()

    def save(self, folder: str | os.PathLike) -> None:
        """Writes `tokenizer.json`, which `read` and `transformers` read."""
        with replacing(Path(folder) / FILE) as temporary:
            temporary.write_bytes(self.content)


def _encoded(tokenizer, texts, add_special_tokens=True, **options):
    try:
        return tokenizer.encode_batch(texts, add_special_tokens=add_special_tokens, **options)
    except TypeError as error:  # of strings it refuses nothing else
        raise ValueError("texts must be valid Unicode, got a lone surrogate") from error


def _library():
    try:
        import tokenizers
    except ImportError as error:
        raise missing("the tokenizer of a language model", "pretrained") from error
    return tokenizers
