"""Tokenizers as TensorFlow modules, one per side (source or target), made with tensorflow-text."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tensorflow_text as tf_text

from keras_transformer.text import MarianTokenizer, MultilingualTokenizer, Tokenizer
from keras_transformer.text.pieces import SPACE, SentencePieces


class SentencePieceSide(tf.Module):
    """One side of a tokenizer, source or target, with the ids of its SentencePiece model.

    Args:
        model: The serialized SentencePiece model.
        name: A unique name. Without names, loading gives the first of two tokenizers twice
            (tensorflow/text issue 1304, open in 2.21).
    """

    def __init__(self, model: bytes, name: str):
        super().__init__()
        self._tokenizer = tf_text.SentencepieceTokenizer(model, tf.int32, name=name)
        self.size = int(self._tokenizer.vocab_size())

    def tokenize(self, texts: Any) -> Any:
        """Return the ids of each text, ragged, without EOS."""
        return self._tokenizer.tokenize(texts)

    def detokenize(self, ids: Any) -> Any:
        """Return the text of each row of ragged ids."""
        return self._tokenizer.detokenize(ids)


class PiecesSide(tf.Module):
    """One side of a tokenizer with a vocabulary besides its SentencePiece model, as in OPUS-MT.

    Args:
        pieces: The vocabulary of this side, with its SentencePiece model.
        skipped: Ids that `detokenize` leaves out.
        name: A unique name, see `SentencePieceSide`.
    """

    def __init__(self, pieces: SentencePieces, skipped: set[int], name: str):
        super().__init__()
        self._tokenizer = tf_text.SentencepieceTokenizer(pieces.model, tf.string, name=name)
        self._surfaces, self._symbols = pieces.surfaces(), pieces.symbols
        self.size = len(pieces.pieces)
        self._is_text = [i not in skipped for i in range(self.size)]
        ids = tf.lookup.KeyValueTensorInitializer(
            tf.constant(pieces.pieces), tf.range(self.size, dtype=tf.int32)
        )
        self._ids = tf.lookup.StaticHashTable(ids, pieces.unk_id, name=f"{name}_ids")

    def tokenize(self, texts: Any) -> Any:
        """Return the ids of each text, ragged, without special tokens around them."""
        if not self._symbols:
            pieces = self._tokenizer.tokenize(texts)
            return pieces.with_flat_values(self._ids.lookup(pieces.flat_values))
        # Put \0 around symbols and split there: each segment is then a symbol or plain text.
        marked = tf.strings.regex_replace(texts, f"(?s)({self._symbols})", "\0\\1\0")
        segments = tf.strings.split(marked, "\0")
        flat = segments.flat_values
        is_symbol = tf.strings.regex_full_match(flat, f"(?s){self._symbols}")
        pieces = self._tokenizer.tokenize(tf.where(is_symbol, "", flat))
        symbols = tf.RaggedTensor.from_row_lengths(
            tf.boolean_mask(flat, is_symbol), tf.cast(is_symbol, tf.int64)
        )
        pieces = segments.with_flat_values(tf.concat([symbols, pieces], axis=1)).merge_dims(1, 2)
        return pieces.with_flat_values(self._ids.lookup(pieces.flat_values))

    def detokenize(self, ids: Any) -> Any:
        """Return the text of each row of ragged ids, without skipped ids."""
        is_text = tf.ragged.map_flat_values(tf.gather, tf.constant(self._is_text), ids)
        ids = tf.ragged.boolean_mask(ids, is_text)
        pieces = tf.ragged.map_flat_values(tf.gather, tf.constant(self._surfaces), ids)
        texts = tf.strings.reduce_join(pieces, axis=1)
        # Byte tokens may form invalid UTF-8, which transcoding replaces by U+FFFD.
        texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8")
        return tf.strings.strip(tf.strings.regex_replace(texts, SPACE, " "))


def side_of(tokenizer: Tokenizer, language: str) -> tf.Module:
    """Return one side of a tokenizer as a TensorFlow module.

    Args:
        tokenizer: The tokenizer.
        language: "source" or "target".

    Raises:
        ValueError: If the tokenizer has no SentencePiece model.
    """
    name = f"{language}_tokenizer"
    if not isinstance(tokenizer, MarianTokenizer | MultilingualTokenizer):
        return SentencePieceSide(getattr(tokenizer, f"{language}_model"), name)
    tokenizer.source_model  # noqa: B018, raises if there is none
    pieces = tokenizer.side(language)
    assert isinstance(pieces, SentencePieces)
    return PiecesSide(pieces, tokenizer.skipped_ids(), name)
