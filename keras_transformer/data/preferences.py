"""Preferences (a prompt with a preferred and a rejected answer): files and batches."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from keras_transformer.config import require, require_whole
from keras_transformer.data.buckets import Buckets
from keras_transformer.data.epochs import Epochs
from keras_transformer.data.prefetching import Stream, for_keras
from keras_transformer.data.ragged import Ragged
from keras_transformer.data.text_files import iterate_lines
from keras_transformer.data.windows import NO_LABEL


@dataclass(frozen=True)
class Preference:
    """A prompt with two answers, one of which is preferred.

    Args:
        prompt: The prompt, or the text to translate.
        chosen: The preferred answer.
        rejected: The other answer.
    """

    prompt: str
    chosen: str
    rejected: str


def read_preferences(path: str | os.PathLike) -> list[Preference]:
    """Return the preferences in a file of JSON lines with `prompt`, `chosen` and `rejected`.

    Args:
        path: The file; decompressed if its name ends in `.gz` or `.zst`.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If a line is not a JSON object, lacks a text, or has an empty answer or equal
            answers (the message names file and line), or the file has no lines.
    """
    preferences = []
    for number, line in enumerate(iterate_lines(path), 1):
        where = f"{path}, line {number}"
        try:
            record = json.loads(line)
        except (json.JSONDecodeError, RecursionError) as error:
            raise ValueError(f"{where}: malformed JSON ({error})") from error
        values = []
        for name in ("prompt", "chosen", "rejected"):
            value: Any = record.get(name) if isinstance(record, dict) else None
            require(isinstance(value, str), f"{where}: {name}", value, "a text")
            values.append(value)
        _, chosen, rejected = values
        for name, value in (("chosen", chosen), ("rejected", rejected)):
            require(value.strip() != "", f"{where}: {name}", value, "not empty")
        require(chosen != rejected, f"{where}: rejected", rejected, "another text than chosen")
        preferences.append(Preference(*values))
    require(len(preferences) > 0, str(path), preferences, "a file with at least one line")
    return preferences


class PreferenceBatches:
    """Batches of pairs of answers for `PreferenceLoss`: two rows per pair, the preferred one first.

    The batch of a step depends only on the step and the seed.

    Args:
        prompts: Token ids of each prompt, or of each text to translate.
        chosen, rejected: Token ids of the preferred and the other answers, with EOS.
        bos_id: Id that begins the decoder's input of an encoder-decoder model; None: the model is
            decoder-only, and prompt and answer share a row.
        tokens_per_batch: Maximum cells per side of a batch, padding included; at least twice
            `max_length`, because a pair has two rows.
        max_length: Maximum tokens of a row.
        num_buckets: Maximum number of batch shapes.
        pad_id: Padding id.
        last: Whether the inputs include `last` (2B,), the position of the last label of each row,
            which a `RewardModel` needs.
        shuffle: Whether to reshuffle in each epoch.
        seed: Seed of the order.

    Attributes:
        reference: Log-probabilities of both answers of each pair under the reference model: (N, 2),
            float32; zeros until they are set.

    Raises:
        ValueError: If there are no texts or their numbers differ, an answer or a prompt is empty, a
            row is longer than `max_length`, or a number is out of range.
    """

    def __init__(
        self,
        prompts: Sequence[Sequence[int]],
        chosen: Sequence[Sequence[int]],
        rejected: Sequence[Sequence[int]],
        bos_id: int | None = None,
        tokens_per_batch: int = 4096,
        max_length: int = 512,
        num_buckets: int = 6,
        pad_id: int = 0,
        last: bool = False,
        shuffle: bool = True,
        seed: int = 0,
    ):
        require_whole("max_length", max_length, 1)
        require_whole("tokens_per_batch", tokens_per_batch, 2 * max_length)
        require_whole("num_buckets", num_buckets, 1)
        sides = {"prompts": prompts, "chosen": chosen, "rejected": rejected}
        sizes = {name: len(side) for name, side in sides.items()}
        if len(set(sizes.values())) > 1 or not len(prompts):
            raise ValueError(f"prompts, chosen and rejected must be equally many, got {sizes}")
        self.bos_id, self.pad_id, self.last = bos_id, pad_id, last
        self._prompts, self._chosen, self._rejected = map(Ragged.pack, sides.values())
        answer = np.maximum(self._chosen.lengths, self._rejected.lengths)
        shortest = np.minimum(self._chosen.lengths, self._rejected.lengths)
        source = self._prompts.lengths
        require(shortest.min() > 0, f"answers of pair {shortest.argmin()}", 0, "at least 1 token")
        least = int(source.argmin())
        require(source[least] > 0, f"prompts[{least}]", 0, "at least 1 token")
        if bos_id is None:
            source = answer = source + answer - 1
        longest = np.maximum(source, answer)
        at = int(longest.argmax())
        accepted = f"at most max_length={max_length} tokens"
        require(longest[at] <= max_length, f"pair {at}", int(longest[at]), accepted)
        buckets = Buckets(source, answer, tokens_per_batch // 2, num_buckets, max_length)
        self._epochs = Epochs(buckets, shuffle, seed)
        self.reference = np.zeros((len(prompts), 2), np.float32)

    def __len__(self) -> int:
        return len(self._epochs)

    def pairs(self, step: int) -> np.ndarray:
        """Return the indices of the pairs in the batch of a step; steps count over all epochs."""
        return self._epochs.rows(step)[0]

    def batch(self, step: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Return the batch of a step: inputs of the model, and `y_true` of `PreferenceLoss`.

        The inputs are `token_ids` (2B, T), or `source_ids` (2B, S) and `target_ids` (2B, T) for an
        encoder-decoder model. `y_true` (2B, 1 + T) float32 has the log-probability of the answer
        under the reference model in the first column. The other columns are the labels: the ids of
        the answer, and `NO_LABEL` elsewhere.
        """
        chosen, S, T = self._epochs.rows(step)
        rows = [(at, side[at]) for at in chosen.tolist() for side in (self._chosen, self._rejected)]
        make = self._joined if self.bos_id is None else self._apart
        inputs, labels_RT = make(rows, S, T)
        if self.last:
            places_T = np.arange(T, dtype="int32")
            inputs["last"] = np.max(np.where(labels_RT >= 0, places_T, 0), axis=1)
        reference_R1 = self.reference[chosen].reshape(-1, 1)
        return inputs, np.concatenate([reference_R1, labels_RT.astype("float32")], axis=1)

    def _joined(self, rows, S, T):
        """Return inputs with prompt and answer in one row, and labels of the answers only."""
        ids_RT = np.full((len(rows), T), self.pad_id, "int32")
        labels_RT = np.full_like(ids_RT, NO_LABEL)
        for row, (at, answer) in enumerate(rows):
            prompt = self._prompts[at]
            whole = np.concatenate([prompt, answer])
            ids_RT[row, : len(whole) - 1] = whole[:-1]
            labels_RT[row, len(prompt) - 1 : len(whole) - 1] = answer
        return {"token_ids": ids_RT}, labels_RT

    def _apart(self, rows, S, T):
        """Return inputs with prompts as sources and answers as targets, and the labels."""
        prompts = self._prompts.take(np.array([at for at, _ in rows]))
        target_ids = np.full((len(rows), T), self.pad_id, "int32")
        labels_RT = np.full_like(target_ids, NO_LABEL)
        for row, (_, answer) in enumerate(rows):
            labels_RT[row, : len(answer)] = answer
            target_ids[row, : len(answer)] = [self.bos_id, *answer[:-1]]
        source_ids = prompts.padded(len(rows), S, self.pad_id)
        return {"source_ids": source_ids, "target_ids": target_ids}, labels_RT

    def dataset(self, first_step: int = 0, steps: int | None = None, num_workers: int = 0) -> Any:
        """Return the batches of preferences for `fit`, see `TokenBatches.dataset`."""
        return for_keras(Stream(self.batch, first_step, steps, num_workers))
