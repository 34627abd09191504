"""The translator as TensorFlow functions of strings: what `export.saved_model`'s process runs."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import tensorflow as tf
import tensorflow_text as tf_text

from keras_transformer.decoding import IMPOSSIBLE
from keras_transformer.export.saved_model import BAD_INPUT
from keras_transformer.export.warmup import WARMUP_FILE, write_warmup
from keras_transformer.search import Search, score_function
from keras_transformer.text import MarianTokenizer
from keras_transformer.text.marian import SPACE
from keras_transformer.translator import Translator

TEXTS = tf.TensorSpec([None], tf.string)
IDS = tf.TensorSpec([None, None], tf.int32)
LENGTHS = tf.TensorSpec([None], tf.int32)
POWERS_OF_TWO = [1 << i for i in range(31)]

WARMUP_TEXTS = (["Hello."], ["And so it went on and on. " * 8])


class SentencePieceSide(tf.Module):
    """A language of a tokenizer whose ids are those of its SentencePiece model.

    Args:
        model: the serialized model.
        name: a name of its own; without, two of them would be the first when they are loaded
            (tensorflow/text issue 1304, open as of 2.21).
    """

    def __init__(self, model: bytes, name: str):
        super().__init__()
        self._tokenizer = tf_text.SentencepieceTokenizer(model, tf.int32, name=name)
        self.size = int(self._tokenizer.vocab_size())

    def tokenize(self, texts):
        """Ids of each text, ragged, without EOS."""
        return self._tokenizer.tokenize(texts)

    def detokenize(self, ids):
        """Texts of ragged ids."""
        return self._tokenizer.detokenize(ids)


class MarianSide(tf.Module):
    """A language of a `MarianTokenizer`: pieces numbered by a vocabulary.

    Args:
        model: the serialized SentencePiece model.
        pieces: the vocabulary in the order of its ids.
        unk_id: the id of what the vocabulary lacks.
        name: as of `SentencePieceSide`.
    """

    def __init__(self, model: bytes, pieces: list[str], unk_id: int, name: str):
        super().__init__()
        self._tokenizer = tf_text.SentencepieceTokenizer(model, tf.string, name=name)
        self._pieces, self._unk_id, self.size = pieces, unk_id, len(pieces)
        ids = tf.lookup.KeyValueTensorInitializer(
            tf.constant(pieces), tf.range(len(pieces), dtype=tf.int32)
        )
        self._ids = tf.lookup.StaticHashTable(ids, unk_id, name=f"{name}_ids")

    def tokenize(self, texts):
        """Ids of each text, ragged, without EOS; a tag is the first."""
        tags = tf.strings.regex_replace(texts, r"(?s)^(>>.*?<<)?.*$", r"\1")
        rest = tf.strings.regex_replace(texts, r"(?s)^>>.*?<<", "", replace_global=False)
        pieces = self._tokenizer.tokenize(rest)
        tags = tf.RaggedTensor.from_row_lengths(
            tf.boolean_mask(tags, tags != ""), tf.cast(tags != "", tf.int64)
        )
        pieces = tf.concat([tags, pieces], axis=1)
        return pieces.with_flat_values(self._ids.lookup(pieces.flat_values))

    def detokenize(self, ids):
        """Texts of ragged ids; unknown ones are left out."""
        ids = tf.ragged.boolean_mask(ids, ids != self._unk_id)
        pieces = tf.ragged.map_flat_values(tf.gather, tf.constant(self._pieces), ids)
        texts = tf.strings.reduce_join(pieces, axis=1)
        return tf.strings.strip(tf.strings.regex_replace(texts, SPACE, " "))


def _side(tokenizer, language):
    """The source or target language of a tokenizer, in the graph."""
    model, name = getattr(tokenizer, f"{language}_model"), f"{language}_tokenizer"
    if isinstance(tokenizer, MarianTokenizer):
        return MarianSide(model, getattr(tokenizer, f"{language}_pieces"), tokenizer.unk_id, name)
    return SentencePieceSide(model, name)


class TranslationModule(tf.Module):
    """`translate`, `nbest` and `score` of a translator, as functions of tensors of strings.

    Args:
        translator: the translator, its model on the TensorFlow backend.
        search: the options of the search.
        jit_compile: whether XLA compiles what lies between ids and ids.

    Raises:
        ValueError: if the tokenizer has no SentencePiece model.
    """

    def __init__(self, translator: Translator, search: Search, jit_compile: bool):
        super().__init__()
        model, tokenizer = translator.model, translator.tokenizer
        self._config = model.config
        self._beam_size = search.beam_size
        self._max_extra_length = search.max_extra_length
        self._jit_compile = jit_compile
        # Tracked as an attribute, and so saved. Keras's own variables, which wrap these, would
        # be saved beside them, and in a session, as TensorFlow Serving has one, only they filled.
        self._weights = [weight.value for weight in model.weights]
        self._source = _side(tokenizer, "source")
        one = tokenizer.shared and tokenizer.source_model == tokenizer.target_model
        self._target = self._source if one else _side(tokenizer, "target")
        # With signatures of their own, they are traced once and shared by all that call them. A
        # search for the best alone ends earlier.
        options = dict(input_signature=[IDS, LENGTHS], jit_compile=jit_compile)
        best = dataclasses.replace(search, num_hypotheses=1)
        self._search = tf.function(search.function(model), **options)
        self._best = tf.function(best.function(model), **options)
        self._score = tf.function(
            score_function(model), input_signature=[IDS, IDS], jit_compile=jit_compile
        )

    @tf.function(input_signature=[TEXTS])
    def translate(self, texts):
        """The best translation of each text."""
        ids_BKL, _ = self._hypotheses(texts, self._best)
        return {"translations": self._decode(ids_BKL[:, 0])}

    @tf.function(input_signature=[TEXTS])
    def nbest(self, texts):
        """All `beam_size` translations of each text with their scores, best first."""
        ids_BKL, scores_BK = self._hypotheses(texts, self._search)
        decoded = self._decode(tf.reshape(ids_BKL, [-1, tf.shape(ids_BKL)[2]]))
        return {"translations": tf.reshape(decoded, [-1, self._beam_size]), "scores": scores_BK}

    @tf.function(input_signature=[TEXTS, TEXTS])
    def score(self, sources, targets):
        """log p(target | source) of each pair."""
        tf.debugging.assert_equal(
            tf.size(sources), tf.size(targets), "sources and targets must be as many"
        )
        ids = []
        for name, tokenizer, texts in (
            ("sources", self._source, sources),
            ("targets", self._target, targets),
        ):
            tf.debugging.assert_less(
                tokenizer.tokenize(texts).row_lengths(),
                tf.constant(self._config.max_length, tf.int64),
                f"{name} must have at most {self._config.max_length} tokens each, EOS included",
            )
            ids.append(self._encode(tokenizer, texts))
        return {"scores": self._score(*ids)[: tf.size(sources)]}

    def _hypotheses(self, texts, search):
        """Ids (B, K, L), all padding where there is no hypothesis, and scores (B, K)."""
        config = self._config
        ids_BS = self._encode(self._source, texts)
        lengths_B = tf.reduce_sum(tf.cast(ids_BS != config.pad_id, tf.int32), axis=1)
        limits_B = tf.minimum(lengths_B + self._max_extra_length, config.max_length - 1)
        is_empty_B = lengths_B < 2  # EOS alone, or a row of padding
        ids_BKL, scores_BK = search(ids_BS, tf.where(is_empty_B, 1, limits_B))
        is_real_BK = scores_BK > IMPOSSIBLE / 2
        ids_BKL = tf.where(is_real_BK[..., None], ids_BKL, config.pad_id)
        empty_scores_K = [0.0] + [IMPOSSIBLE] * (self._beam_size - 1)
        scores_BK = tf.where(is_real_BK, scores_BK, IMPOSSIBLE)
        scores_BK = tf.where(is_empty_B[:, None], empty_scores_K, scores_BK)
        return ids_BKL[: tf.size(texts)], scores_BK[: tf.size(texts)]

    def _encode(self, tokenizer, texts):
        """Ids of at most `max_length` tokens, EOS the last of them, padded."""
        config = self._config
        content = tokenizer.tokenize(texts)[:, : config.max_length - 1]
        eos = tf.fill([tf.size(texts), 1], config.eos_id)
        ids = tf.concat([content, eos], axis=1)
        # One row at least: reshaping nothing to an unknown size is undefined.
        rows, length = tf.unstack(tf.maximum(ids.bounding_shape(out_type=tf.int32), 1))
        if self._jit_compile:
            rows = tf.gather(POWERS_OF_TWO, tf.searchsorted(POWERS_OF_TWO, [rows])[0])
            length = tf.minimum(-(-length // 16) * 16, config.max_length)
        return ids.to_tensor(config.pad_id, shape=tf.stack([rows, length]))

    def _decode(self, ids_RL):
        """Texts of rows of ids up to their EOS."""
        config = self._config
        is_end_RL = tf.cast(ids_RL == config.eos_id, tf.int32)
        is_text_RL = tf.cumsum(is_end_RL, axis=1) == 0
        is_text_RL &= (ids_RL != config.pad_id) & (ids_RL != config.bos_id)
        # The model's vocabulary may be larger, rounded up, than a foreign tokenizer's.
        is_text_RL &= ids_RL < self._target.size
        return self._target.detokenize(tf.ragged.boolean_mask(ids_RL, is_text_RL))


def main() -> None:
    """Does the task that the first argument describes in JSON."""
    task = json.loads(sys.argv[1])
    try:
        translator = Translator.load(task["folder"])
        module = TranslationModule(translator, Search(**task["search"]), task["jit_compile"])
    except ValueError as error:
        print(error)
        sys.exit(BAD_INPUT)
    signatures = {
        "serving_default": module.translate,
        "translate": module.translate,
        "nbest": module.nbest,
        "score": module.score,
    }
    tf.saved_model.save(module, task["path"], signatures)
    write_warmup(Path(task["path"], WARMUP_FILE), task["model_name"], WARMUP_TEXTS)


if __name__ == "__main__":
    main()
