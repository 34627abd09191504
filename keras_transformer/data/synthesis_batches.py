"""Batches of texts with the log-mel frames of their speech, for training a synthesizer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from keras_transformer.config import require, require_whole

# Weight of a clip's last step in the loss of "stop" (Li et al. 2019, section 3.7). Its other steps
# have the weight 1, padding has 0.
STOP_WEIGHT = 5.0


class SynthesisBatches:
    """Endless batches of texts and their speech, reshuffled in each epoch.

    Args:
        features: Log-mel features (F, mels) of each clip, F at least 1.
        ids: Ids of each text, at least one.
        batch_size: Clips per batch; an incomplete last batch of an epoch is dropped.
        frames_per_step: Frames per decoder position (step); a clip's last frame is repeated to fill
            its last step.
        pad_id: Padding id of texts.
        shape: The number of steps of a batch is padded to a multiple of this.
        seed: Seed of the order.

    Attributes:
        max_steps: Number of steps of the longest possible batch.

    Raises:
        ValueError: If a number is out of range, there are fewer clips than `batch_size`, or the
            numbers of texts and clips differ.
    """

    def __init__(
        self,
        features: Sequence[np.ndarray],
        ids: Sequence[Sequence[int]],
        batch_size: int,
        frames_per_step: int,
        pad_id: int,
        shape: int = 8,
        seed: int = 0,
    ):
        require_whole("batch_size", batch_size, 1)
        accepted = f"a whole number from 1 to {len(features)}, the number of training clips"
        require(batch_size <= len(features), "batch_size", batch_size, accepted)
        require(len(ids) == len(features), "ids", len(ids), f"{len(features)}, one per clip")
        require_whole("frames_per_step", frames_per_step, 1)
        self.batch_size, self.frames_per_step, self.shape = batch_size, frames_per_step, shape
        self._features = list(features)
        self._steps = np.array([-(-len(x) // frames_per_step) for x in features])
        self.max_steps = self._rounded(self._steps.max())
        self._ids = np.full((len(ids), max(map(len, ids))), pad_id, "int32")
        for row, text in zip(self._ids, ids, strict=True):
            row[: len(text)] = text
        self._rng = np.random.default_rng(seed)

    def __len__(self) -> int:
        """Return the number of batches per epoch."""
        return len(self._features) // self.batch_size

    def __iter__(self) -> Iterator[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
        """Yield (inputs, outputs, sample weights) of a `TextToSpeech` for `model.fit`.

        Inputs: `source_ids` (B, S), and `previous_frames` (B, T, mels): the last frame of the
        previous step, zeros for the first step. Outputs: `frames` (B, T, frames_per_step * mels),
        and `stop` (B, T, 1): 1 at a clip's last step. Both outputs have weights (B, T).
        """
        while True:
            order = self._rng.permutation(len(self._features))
            for batch in range(len(self)):
                yield self._batch(order[batch * self.batch_size : (batch + 1) * self.batch_size])

    def _rounded(self, steps):
        return int(-(-steps // self.shape) * self.shape)

    def _batch(self, rows):
        """Return inputs, outputs and sample weights of the clips with these indices."""
        mels, steps_B = self._features[rows[0]].shape[1], self._steps[rows]
        shape = len(rows), self._rounded(steps_B.max()), self.frames_per_step
        frames = np.zeros((*shape, mels), "float32")
        for clip_frames, row, steps in zip(frames, rows, steps_B, strict=True):
            clip, length = self._features[row], steps * self.frames_per_step
            clip_frames[:steps] = np.pad(clip, ((0, length - len(clip)), (0, 0)), "edge").reshape(
                steps, self.frames_per_step, mels
            )
        previous = np.zeros((*shape[:2], mels), "float32")
        previous[:, 1:] = frames[:, :-1, -1]
        places_T = np.arange(shape[1])
        is_last_BT = (places_T == steps_B[:, None] - 1).astype("float32")
        is_step_BT = (places_T < steps_B[:, None]).astype("float32")
        inputs = {"source_ids": self._ids[rows], "previous_frames": previous}
        outputs = {"frames": frames.reshape(*shape[:2], -1), "stop": is_last_BT[..., None]}
        stop_weights = is_step_BT + (STOP_WEIGHT - 1) * is_last_BT
        return inputs, outputs, {"frames": is_step_BT, "stop": stop_weights}
