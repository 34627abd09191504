"""The translator as TensorFlow functions of strings: what `export.saved_model`'s process runs."""

from __future__ import annotations

import dataclasses
import functools
import json
import sys
from pathlib import Path

import tensorflow as tf

from keras_transformer.decoding import IMPOSSIBLE
from keras_transformer.export.saved_model import BAD_INPUT
from keras_transformer.export.sides import side_of
from keras_transformer.export.warmup import WARMUP_FILE, write_warmup
from keras_transformer.inference.runner import score_function
from keras_transformer.inference.searching import translation_function
from keras_transformer.inference.translator import Translator
from keras_transformer.search import Search
from keras_transformer.text import MarianTokenizer

TEXTS = tf.TensorSpec([None], tf.string)
IDS = tf.TensorSpec([None, None], tf.int32)
LENGTHS = tf.TensorSpec([None], tf.int32)
POWERS_OF_TWO = [1 << i for i in range(31)]

# AutoGraph rewrites Python's control flow, of which there is none over tensors here, and takes half
# the time of an export.
_function = functools.partial(tf.function, autograph=False)

WARMUP_TEXTS = (["Hello."], ["And so it went on and on. " * 8])


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
        self._source = self._target = side_of(tokenizer, "source")
        if not tokenizer.shared or isinstance(tokenizer, MarianTokenizer):
            self._target = side_of(tokenizer, "target")
        self._frames = tokenizer.source_frame, tokenizer.target_frame
        # With signatures of their own, they are traced once and shared by all that call them. A
        # search for the best alone ends earlier.
        given = len(self._frames[1].before)
        signature = [IDS, LENGTHS, IDS] if given else [IDS, LENGTHS]
        options = dict(input_signature=signature, jit_compile=jit_compile)
        best = dataclasses.replace(search, num_hypotheses=1)
        self._search = _function(translation_function(search, model), **options)
        self._best = _function(translation_function(best, model), **options)
        self._score = _function(
            score_function(model, given), input_signature=[IDS, IDS], jit_compile=jit_compile
        )

    def signatures(self):
        """The functions by the names that they are served under."""
        functions = {name: getattr(self, name) for name in ("translate", "nbest", "score")}
        return {"serving_default": self.translate, **functions}

    @_function(input_signature=[TEXTS])
    def translate(self, texts):
        """The best translation of each text."""
        ids_BKL, _ = self._hypotheses(texts, self._best, *self._frames)
        return {"translations": self._decode(ids_BKL[:, 0])}

    @_function(input_signature=[TEXTS])
    def nbest(self, texts):
        """All `beam_size` translations of each text with their scores, best first."""
        ids_BKL, scores_BK = self._hypotheses(texts, self._search, *self._frames)
        decoded = self._decode(tf.reshape(ids_BKL, [-1, tf.shape(ids_BKL)[2]]))
        return {"translations": tf.reshape(decoded, [-1, self._beam_size]), "scores": scores_BK}

    @_function(input_signature=[TEXTS, TEXTS])
    def score(self, sources, targets):
        """log p(target | source) of each pair."""
        tf.debugging.assert_equal(
            tf.size(sources), tf.size(targets), "sources and targets must be as many"
        )
        ids = []
        for name, side, texts, frame in (
            ("sources", self._source, sources, self._frames[0]),
            ("targets", self._target, targets, self._frames[1]),
        ):
            room = self._config.max_length - sum(map(len, frame))
            tf.debugging.assert_less_equal(
                side.tokenize(texts).row_lengths(),
                tf.constant(room, tf.int64),
                f"{name} must have at most {self._config.max_length} tokens each, EOS included",
            )
            ids.append(self._encode(side, texts, *frame))
        return {"scores": self._score(*ids)[: tf.size(sources)]}

    def _hypotheses(self, texts, search, source_frame, target_frame):
        """Ids (B, K, L), all padding where there is no hypothesis, and scores (B, K)."""
        config = self._config
        ids_BS = self._encode(self._source, texts, *source_frame)
        lengths_B = tf.reduce_sum(tf.cast(ids_BS != config.pad_id, tf.int32), axis=1)
        limits_B = tf.minimum(lengths_B + self._max_extra_length, config.max_length - 1)
        is_empty_B = lengths_B <= sum(map(len, source_frame))  # or a row of padding
        first = []
        if given := _columns(target_frame[0], tf.size(texts)):
            rows = tf.shape(ids_BS)[0] - tf.size(texts)
            first = [tf.pad(tf.concat(given, 1), [[0, rows], [0, 0]], "CONSTANT", config.pad_id)]
        ids_BKL, scores_BK = search(ids_BS, tf.where(is_empty_B, 1, limits_B), *first)
        is_real_BK = scores_BK > IMPOSSIBLE / 2
        ids_BKL = tf.where(is_real_BK[..., None], ids_BKL, config.pad_id)
        empty_scores_K = [0.0] + [IMPOSSIBLE] * (self._beam_size - 1)
        scores_BK = tf.where(is_real_BK, scores_BK, IMPOSSIBLE)
        ids_BKL = tf.where(is_empty_B[:, None, None], config.pad_id, ids_BKL)
        scores_BK = tf.where(is_empty_B[:, None], empty_scores_K, scores_BK)
        return ids_BKL[: tf.size(texts)], scores_BK[: tf.size(texts)]

    def _encode(self, side, texts, before, after):
        """Ids of at most `max_length` tokens with those of the frame around them, padded."""
        config = self._config
        content = side.tokenize(texts)[:, : config.max_length - len(before) - len(after)]
        before, after = (_columns(ids, tf.size(texts)) for ids in (before, after))
        ids = tf.concat([*before, content, *after], axis=1)
        # One row at least: reshaping nothing to an unknown size is undefined.
        rows, length = tf.unstack(tf.maximum(ids.bounding_shape(out_type=tf.int32), 1))
        if self._jit_compile:
            rows = tf.gather(POWERS_OF_TWO, tf.searchsorted(POWERS_OF_TWO, [rows])[0])
            length = tf.minimum(-(-length // 16) * 16, config.max_length)
        return ids.to_tensor(config.pad_id, shape=tf.stack([rows, length]))

    def _decode(self, ids_RL):
        """Texts of rows of ids up to their EOS."""
        config = self._config
        is_end_RL = tf.reduce_any([ids_RL == end for end in config.eos_ids], axis=0)
        is_text_RL = tf.cumsum(tf.cast(is_end_RL, tf.int32), axis=1) == 0
        is_text_RL &= (ids_RL != config.pad_id) & (ids_RL != config.bos_id)
        # The model's vocabulary may be larger, rounded up, than a foreign tokenizer's.
        is_text_RL &= ids_RL < self._target.size
        return self._target.detokenize(tf.ragged.boolean_mask(ids_RL, is_text_RL))


class ManyLanguagesModule(TranslationModule):
    """Besides `translate_between`, for a tokenizer whose languages are tokens.

    Args: as of `TranslationModule`.
    """

    def __init__(self, translator: Translator, search: Search, jit_compile: bool):
        super().__init__(translator, search, jit_compile)
        codes = translator.tokenizer.languages
        ids = tf.lookup.KeyValueTensorInitializer(
            tf.constant(list(codes)), tf.constant(list(codes.values()), tf.int32)
        )
        self._languages = tf.lookup.StaticHashTable(ids, -1, name="languages")

    def signatures(self):
        """Return the signatures of `TranslationModule`, and `translate_between`."""
        return {**super().signatures(), "translate_between": self.translate_between}

    @_function(input_signature=[TEXTS, TEXTS, TEXTS])
    def translate_between(self, texts, source_languages, target_languages):
        """The best translation of each text, from and into a language of its own."""
        frames = []
        for frame, codes in zip(self._frames, (source_languages, target_languages), strict=True):
            tokens_B = self._languages.lookup(codes)
            tf.debugging.assert_non_negative(tokens_B, "a language is not one of this model's")
            tf.debugging.assert_equal(
                tf.size(codes), tf.size(texts), "languages and texts must be as many"
            )
            # The one token of the frame that is a language gives way to another's, row by row.
            before, after = ([*part] for part in frame)
            (before or after)[-1] = tokens_B
            frames.append((before, after))
        ids_BKL, _ = self._hypotheses(texts, self._best, *frames)
        return {"translations": self._decode(ids_BKL[:, 0])}


def _columns(ids, rows):
    """Columns (B, 1), each of one id or of a tensor of them."""
    return [tf.broadcast_to(tf.reshape(id_, [-1, 1]), [rows, 1]) for id_ in ids]


def main() -> None:
    """Does the task that the first argument describes in JSON."""
    task = json.loads(sys.argv[1])
    try:
        translator = Translator.load(task["folder"], **task["languages"])
        has_languages = getattr(translator.tokenizer, "languages", None)
        kind = ManyLanguagesModule if has_languages else TranslationModule
        module = kind(translator, Search(**task["search"]), task["jit_compile"])
    except ValueError as error:
        print(error)
        sys.exit(BAD_INPUT)
    tf.saved_model.save(module, task["path"], module.signatures())
    write_warmup(Path(task["path"], WARMUP_FILE), task["model_name"], WARMUP_TEXTS)


if __name__ == "__main__":
    main()
