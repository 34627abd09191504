"""A translator as TensorFlow functions of strings; `export.saved_model` runs this as a program."""

from __future__ import annotations

import dataclasses
import functools
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.decoding import IMPOSSIBLE
from keras_transformer.export.tf_tokenizers import side_of
from keras_transformer.export.warmup import WARMUP_FILE, write_warmup
from keras_transformer.running.runner import score_function
from keras_transformer.running.search_functions import listed_first, translation_function
from keras_transformer.search import Search
from keras_transformer.system.elsewhere import INVALID
from keras_transformer.text import MarianTokenizer
from keras_transformer.translate.pipeline import used_shortlist
from keras_transformer.translate.translator import Translator

TEXTS = tf.TensorSpec([None], tf.string)
IDS = tf.TensorSpec([None, None], tf.int32)
LENGTHS = tf.TensorSpec([None], tf.int32)
POWERS_OF_TWO = [1 << i for i in range(31)]

# AutoGraph rewrites Python control flow over tensors, which does not occur here. Exports are faster
# without it.
_function = functools.partial(tf.function, autograph=False)

WARMUP_TEXTS = (["Hello."], ["And so it went on and on. " * 8])


class TranslationModule(tf.Module):
    """Methods like a translator's `translate`, `nbest` and `score`, as functions of string tensors.

    Args:
        translator: A translator whose model is on the TensorFlow backend.
        search: The search options.
        jit_compile: Whether to compile the model with XLA; the tokenizer is never compiled.

    Raises:
        ValueError: If the tokenizer has no SentencePiece model.
    """

    def __init__(self, translator: Translator, search: Search, jit_compile: bool):
        super().__init__()
        model, tokenizer = translator.model, translator.tokenizer
        self._config = model.config
        self._beam_size = search.beam_size
        self._limit, self._max_length = search.limit, search.max_length
        self._jit_compile = jit_compile
        # An attribute, so that TensorFlow tracks and saves these variables, not the variables of
        # Keras that wrap them. If Keras's were tracked, both would be saved, and a session, as in
        # TensorFlow Serving, would restore only Keras's.
        self._weights = [weight.value for weight in model.weights]
        self._source = self._target = side_of(tokenizer, "source")
        if not tokenizer.shared or isinstance(tokenizer, MarianTokenizer):
            self._target = side_of(tokenizer, "target")
        self._frames = tokenizer.source_frame, tokenizer.target_frame
        # With an input signature, each function is traced once and shared by all signatures. The
        # search for only the best hypothesis is a separate one because it ends earlier.
        source, target = self._frames
        first = target.before if search.forced_first is None else search.forced_first
        self._begun = source, (first, target.after)  # frames of source and target in a search
        signature = [IDS, LENGTHS, IDS] if first else [IDS, LENGTHS]
        options = dict(input_signature=signature, jit_compile=jit_compile)
        best = dataclasses.replace(search, num_hypotheses=1)
        self._search = _function(_with_list(search, translator, jit_compile), **options)
        self._best = _function(_with_list(best, translator, jit_compile), **options)
        self._score = _function(
            score_function(model, len(target.before)),
            input_signature=[IDS, IDS],
            jit_compile=jit_compile,
        )

    def signatures(self) -> dict[str, Any]:
        """Return the functions of the SavedModel, by the names of their signatures."""
        functions = {name: getattr(self, name) for name in ("translate", "nbest", "score")}
        return {"serving_default": self.translate, **functions}

    @_function(input_signature=[TEXTS])
    def translate(self, texts: Any) -> dict[str, Any]:
        """Return the best translation of each text."""
        ids_BKL, _ = self._hypotheses(texts, self._best, *self._begun)
        return {"translations": self._decode(ids_BKL[:, 0])}

    @_function(input_signature=[TEXTS])
    def nbest(self, texts: Any) -> dict[str, Any]:
        """Return `beam_size` translations of each text with their scores, best first."""
        ids_BKL, scores_BK = self._hypotheses(texts, self._search, *self._begun)
        decoded = self._decode(tf.reshape(ids_BKL, [-1, tf.shape(ids_BKL)[2]]))
        return {"translations": tf.reshape(decoded, [-1, self._beam_size]), "scores": scores_BK}

    @_function(input_signature=[TEXTS, TEXTS])
    def score(self, sources: Any, targets: Any) -> dict[str, Any]:
        """Return log p(target | source) of each pair."""
        tf.debugging.assert_equal(
            tf.size(sources), tf.size(targets), "sources and targets must have the same length"
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
        """Search for translations; return ids (B, K, L) and scores (B, K), best first.

        A beam slot without a hypothesis has padding only, and the score `IMPOSSIBLE`.

        Args:
            texts: Source texts (B,).
            search: Function that searches, see `_with_list`.
            source_frame, target_frame: Special ids before and after each text: numbers, or tensors
                (B,).
        """
        config = self._config
        ids_BS = self._encode(self._source, texts, *source_frame)
        lengths_B = tf.reduce_sum(tf.cast(ids_BS != config.pad_id, tf.int32), axis=1)
        limits_B = self._limit(lengths_B)
        if self._max_length is not None:
            limits_B = tf.fill(tf.shape(lengths_B), self._max_length)
        limits_B = tf.minimum(limits_B, config.max_length - 1)
        is_empty_B = lengths_B <= sum(map(len, source_frame))  # true for rows of padding, too
        first = []
        if columns := _columns(target_frame[0], tf.size(texts)):
            rows = tf.shape(ids_BS)[0] - tf.size(texts)
            first = [tf.pad(tf.concat(columns, 1), [[0, rows], [0, 0]], "CONSTANT", config.pad_id)]
        ids_BKL, scores_BK = search(ids_BS, tf.where(is_empty_B, 1, limits_B), *first)
        is_real_BK = scores_BK > IMPOSSIBLE / 2
        ids_BKL = tf.where(is_real_BK[..., None], ids_BKL, config.pad_id)
        empty_scores_K = [0.0] + [IMPOSSIBLE] * (self._beam_size - 1)
        scores_BK = tf.where(is_real_BK, scores_BK, IMPOSSIBLE)
        ids_BKL = tf.where(is_empty_B[:, None, None], config.pad_id, ids_BKL)
        scores_BK = tf.where(is_empty_B[:, None], empty_scores_K, scores_BK)
        return ids_BKL[: tf.size(texts)], scores_BK[: tf.size(texts)]

    def _encode(self, side, texts, before, after):
        """Return the padded ids of texts, cut to `max_length` tokens, special tokens included."""
        config = self._config
        content = side.tokenize(texts)[:, : config.max_length - len(before) - len(after)]
        before, after = (_columns(ids, tf.size(texts)) for ids in (before, after))
        ids = tf.concat([*before, content, *after], axis=1)
        # At least one row, because reshaping an empty tensor to an unknown size is undefined.
        rows, length = tf.unstack(tf.maximum(ids.bounding_shape(out_type=tf.int32), 1))
        if self._jit_compile:
            rows = tf.gather(POWERS_OF_TWO, tf.searchsorted(POWERS_OF_TWO, [rows])[0])
            length = tf.minimum(-(-length // 16) * 16, config.max_length)
        return ids.to_tensor(config.pad_id, shape=tf.stack([rows, length]))

    def _decode(self, ids_RL):
        """Return the text of each row of ids (R, L), up to EOS."""
        config = self._config
        is_end_RL = tf.reduce_any([ids_RL == end for end in config.eos_ids], axis=0)
        is_text_RL = tf.cumsum(tf.cast(is_end_RL, tf.int32), axis=1) == 0
        is_text_RL &= (ids_RL != config.pad_id) & (ids_RL != config.bos_id)
        # An imported model may have more ids than its tokenizer, as its vocabulary is rounded up.
        is_text_RL &= ids_RL < self._target.size
        return self._target.detokenize(tf.ragged.boolean_mask(ids_RL, is_text_RL))


class ManyLanguagesModule(TranslationModule):
    """A `TranslationModule` that also has `translate_between`; see `module_class`.

    The arguments are those of `TranslationModule`.
    """

    def __init__(self, translator: Translator, search: Search, jit_compile: bool):
        super().__init__(translator, search, jit_compile)
        codes = translator.tokenizer.languages
        ids = tf.lookup.KeyValueTensorInitializer(
            tf.constant(list(codes)), tf.constant(list(codes.values()), tf.int32)
        )
        self._languages = tf.lookup.StaticHashTable(ids, -1, name="languages")

    def signatures(self) -> dict[str, Any]:
        """Return the signatures of `TranslationModule`, and `translate_between`."""
        return {**super().signatures(), "translate_between": self.translate_between}

    @_function(input_signature=[TEXTS, TEXTS, TEXTS])
    def translate_between(
        self, texts: Any, source_languages: Any, target_languages: Any
    ) -> dict[str, Any]:
        """Return the best translation of each text, from and into the languages of its row."""
        frames = []
        for frame, codes in zip(self._frames, (source_languages, target_languages), strict=True):
            tokens_B = self._languages.lookup(codes)
            tf.debugging.assert_non_negative(tokens_B, "a language is unknown to the model")
            tf.debugging.assert_equal(
                tf.size(codes), tf.size(texts), "languages and texts must have the same length"
            )
            # Replace the language token of the frame by the tokens of the rows' languages.
            before, after = ([*part] for part in frame)
            (before or after)[-1] = tokens_B
            frames.append((before, after))
        ids_BKL, _ = self._hypotheses(texts, self._best, *frames)
        return {"translations": self._decode(ids_BKL[:, 0])}


def _with_list(search, translator, jit_compile):
    """Return a function of source ids, limits and first ids that searches for translations.

    If the search uses the translator's shortlist, its arrays are constants of the function.
    """
    find = translation_function(search, translator.model)
    shortlist = used_shortlist(search, translator.shortlist)
    if shortlist is None:
        return find
    first_ids, num_special = listed_first(search, translator.model.config)
    size = max(translator.tokenizer.target_vocab_size, *(x + 1 for x in first_ids))

    def search_on_list(source, limits, first=None):
        listed = _listed(source, first, shortlist, first_ids, num_special, size, jit_compile)
        return find(source, limits, first, None, None, *listed)

    return search_on_list


def _listed(source_BS, prefix_BP, shortlist, first_ids, num_special, size, jit_compile):
    """Return the arrays of `Shortlist.tokens_of` for `size` target ids.

    With `jit_compile`, the list has all ids, because XLA needs to know its length.
    """
    rows = tf.shape(source_BS)[0]
    always = tf.constant([*first_ids[:num_special], *shortlist.frequent], tf.int32)
    candidates_VN = tf.constant(shortlist.candidates, tf.int32)
    parts = [tf.reshape(tf.gather(candidates_VN, source_BS), [rows, -1])]
    parts += [tf.tile(always[None], [rows, 1])] + ([] if prefix_BP is None else [prefix_BP])
    ids_BX = tf.concat(parts, axis=1)
    ids_BX = tf.where(ids_BX < 0, size, ids_BX)
    places_BX = tf.broadcast_to(tf.range(rows)[:, None], tf.shape(ids_BX))
    places_BX2 = tf.stack([places_BX, ids_BX], axis=-1)
    may_use_BV = tf.scatter_nd(places_BX2, tf.ones_like(ids_BX), [rows, size + 1])[:, :size] > 0
    others = np.setdiff1d(np.arange(size), first_ids).astype("int32")
    if not jit_compile:
        others = tf.boolean_mask(others, tf.gather(tf.reduce_any(may_use_BV, axis=0), others))
    ids_U = tf.concat([tf.constant(first_ids, tf.int32), others], axis=0)
    return ids_U, tf.gather(may_use_BV, ids_U, axis=1)


def _columns(ids, rows):
    """Return a column (B, 1) for each of `ids`.

    Args:
        ids: Ids, each a number for all rows or a tensor (B,).
        rows: B.
    """
    return [tf.broadcast_to(tf.reshape(id_, [-1, 1]), [rows, 1]) for id_ in ids]


def module_class(tokenizer: Any) -> type[TranslationModule]:
    """Return `ManyLanguagesModule` if source and target each contain a token of their language.

    SMaLL-100 only has a token of the target language, and mBART-25 only one of the source language.
    """
    has_both = getattr(tokenizer, "style", None) in ("prefix", "suffix")
    return ManyLanguagesModule if has_both else TranslationModule


def main() -> None:
    """Write the SavedModel that the first command-line argument describes in JSON."""
    task = json.loads(sys.argv[1])
    try:
        translator = Translator.load(task["folder"], **task["languages"]).require_direct()
        new_module = module_class(translator.tokenizer)
        module = new_module(translator, Search(**task["search"]), task["jit_compile"])
    except ValueError as error:
        print(error)
        sys.exit(INVALID)
    tf.saved_model.save(module, task["path"], module.signatures())
    write_warmup(Path(task["path"], WARMUP_FILE), task["model_name"], WARMUP_TEXTS)


if __name__ == "__main__":
    main()
