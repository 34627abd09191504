"""Caches of the keys and values of sequences that run side by side: one row per sequence."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

import keras
import numpy as np
from keras import ops

from keras_transformer.backend import (
    COMPILES_EACH_SHAPE,
    IS_EAGER,
    copy_row,
    gather,
    put_rows,
    quick,
    swap_rows,
    take_rows,
)
from keras_transformer.models import DecoderOnly
from keras_transformer.models.continuation import extend, new_caches
from keras_transformer.running.runner import Runner
from keras_transformer.running.search_functions import next_tokens

MOST_TOP = 20  # number of most probable tokens that a step returns, if any are asked for
FIRST_PLACES = 256  # tokens per row of new caches; doubled whenever a sequence needs more


class SlotCaches:
    """The caches of a model's sequences, with compiled functions that read and change them.

    The caller keeps the number of tokens of each row; entries after these are arbitrary.

    Args:
        model: The model.
        rows: Number of sequences.
        length: Maximum number of tokens of a sequence.
        chunk: Maximum number of tokens per call of `read`.

    Raises:
        NotImplementedError: If the model has relative positions, or linear attention.
    """

    def __init__(self, model: DecoderOnly, rows: int, length: int, chunk: int):
        self.model, self.rows = model, rows
        # On JAX a chunk is padded, and its padding may reach beyond `length`.
        self._most = length + (_width(chunk) if COMPILES_EACH_SHAPE else 0)
        self._runner = Runner()
        self.clear()

    def clear(self) -> None:
        """Replace the caches by empty ones; compiled functions are kept."""
        self._places = min(FIRST_PLACES, self._most)
        self._caches = new_caches(self.model, self.rows, self._places)

    def read(self, row: int, token_ids: Sequence[int], index: int) -> None:
        """Append tokens to a row that has `index` tokens."""
        width = _width(len(token_ids)) if COMPILES_EACH_SHAPE else len(token_ids)
        ids_1T = np.full((1, width), self.model.config.pad_id, "int32")
        ids_1T[0, : len(token_ids)] = token_ids
        self._grow(index + width)

        def read(caches, ids_1T, index_1, row, places):
            part = _each(take_rows, caches, row, 1, places)
            _, part = extend(self.model, ids_1T, part, index_1, predicts=False)
            return _put(caches, part, row)

        self._change("read", read, ids_1T, np.array([index], "int32"), _number(row), index + width)

    def copy(self, source: int, target: int, length: int) -> None:
        """Copy the first `length` tokens of a row to another."""
        copy = functools.partial(_each, copy_row)
        self._change("copy", copy, _number(source), _number(target), length)

    def swap(self, one: int, other: int, length: int) -> None:
        """Exchange two rows, each of at most `length` tokens."""
        swap = functools.partial(_each, swap_rows)
        self._change("swap", swap, _number(one), _number(other), length)

    def step(
        self,
        token_ids: Sequence[int],
        lengths: Sequence[int],
        choice: Mapping[str, np.ndarray],
        top: bool = False,
    ) -> list[np.ndarray]:
        """Append one token to each of the first A rows, and choose the next token of each.

        Args:
            token_ids: The tokens to append (A,).
            lengths: Number of tokens of every row before the step.
            choice: Arrays (A, ...) of options, see `search_functions.next_tokens`.
            top: Whether to return the most probable tokens.

        Returns:
            The chosen tokens (A,); their log-probabilities (A,) before any penalty or temperature;
            and with `top` the 20 highest log-probabilities (A, 20) and their tokens (A, 20), fewer
            if the vocabulary is smaller.
        """
        active = len(token_ids)
        rows = min(_round_up(active), self.rows)

        def filled(x, value=0):
            return np.concatenate([x, np.full((rows - active, *x.shape[1:]), value, x.dtype)])

        token_R = filled(np.array(token_ids, "int32"))
        index_R = np.array(lengths[:rows], "int32")
        places = int(index_R.max()) + 1
        self._grow(places)
        choice = {name: filled(x, 1) for name, x in choice.items()}
        key = "step", *sorted(choice), top
        arguments = [self._caches, token_R, index_R, choice, _view(places)]
        self._caches, outputs = self._runner(
            self.model, key, lambda: _step_function(self.model, top), arguments, donates=(0,)
        )
        return [ops.convert_to_numpy(x)[:active] for x in outputs]

    def _change(self, key, function, *arguments):
        *others, places = arguments
        inputs = [self._caches, *others, _view(places)]
        self._caches = self._runner(self.model, key, lambda: function, inputs, donates=(0,))

    def _grow(self, places):
        """Enlarge the caches, if needed, for sequences of `places` tokens."""
        if places <= self._places:
            return
        size = min(max(2 * self._places, 1 << (places - 1).bit_length()), self._most)
        more = ((0, 0), (0, 0), (0, size - self._places), (0, 0))
        self._caches = _each(lambda cache: ops.pad(cache, more), self._caches)
        self._places = size


def _step_function(model: DecoderOnly, top: bool) -> Callable:
    """Return the function that appends a token to each row and chooses the next one."""
    eos_ids, most = model.config.eos_ids, min(MOST_TOP, model.config.vocab_size)

    def step(caches, token_R, index_R, choice, places):
        part = _each(take_rows, caches, 0, quick.shape(token_R)[0], places)
        logits_R1V, part = extend(model, quick.expand_dims(token_R, 1), part, index_R)
        logits_RV = quick.cast(logits_R1V[:, 0], "float32")
        log_probs_RV = logits_RV - quick.logsumexp(logits_RV, axis=-1, keepdims=True)
        chosen_R = next_tokens(logits_RV, choice, eos_ids)
        value_R = gather(log_probs_RV, chosen_R[:, None], axis=1)[:, 0]
        outputs = [chosen_R, value_R, *(quick.top_k(log_probs_RV, most) if top else ())]
        return _put(caches, part, 0), outputs

    return step


def _each(function, caches, *arguments):
    """Return the caches with a function applied to each tensor of keys or values."""
    return keras.tree.map_structure(lambda cache: function(cache, *arguments), caches)


def _put(caches, part, row):
    return keras.tree.map_structure(lambda whole, rows: put_rows(whole, rows, row), caches, part)


def _number(number):
    """Return a number as an array on backends that would compile each Python number anew."""
    return number if IS_EAGER else np.array(number, "int32")


def _view(places):
    """Return the number of tokens to slice the caches to; None on backends that would copy them."""
    return places if IS_EAGER else None


def _width(tokens):
    """Return the padded length of a chunk: a power of 2, at least 16, to compile few shapes."""
    return max(16, 1 << (tokens - 1).bit_length())


def _round_up(rows):
    """Return the padded number of rows: a power of 4 if each shape is compiled, else unchanged."""
    return 1 << ((rows - 1).bit_length() + 1) // 2 * 2 if COMPILES_EACH_SHAPE else rows
