"""Text to speech: an encoder-decoder to log-mel frames (Li et al. 2019)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras

from keras_transformer.backend import mask_bias, quick
from keras_transformer.config import ACTIVATIONS, Config, require
from keras_transformer.layers import (
    Decoder,
    Encoder,
    FramePrenet,
    PositionalEmbedding,
    padding_mask,
)
from keras_transformer.layers.basic import Dense
from keras_transformer.layers.block_options import BlockOptions
from keras_transformer.layers.layer import direct_calls
from keras_transformer.models.caches import with_room
from keras_transformer.models.configured import ConfiguredModel


@dataclass(frozen=True)
class TextToSpeechConfig(Config):
    """Config of a speech synthesizer (defaults: Li et al. 2019, section 4.1).

    Args:
        vocab_size: Number of text ids, including those of speakers.
        num_mels: Number of mel features per frame.
        frames_per_step: Frames that one decoder position predicts (Wang et al. 2017, 3.3).
        d_model: Width of the residual stream, even; a multiple of `num_heads`.
        d_ff: Width inside the feed-forward; None: 4 `d_model`.
        num_encoder_layers: Number of encoder blocks.
        num_decoder_layers: Number of decoder blocks.
        num_heads: Number of attention heads per block.
        prenet_size: Width of the decoder's prenet.
        prenet_dropout: Dropout rate in [0, 1) of the prenet, in training only.
        dropout: Dropout rate in [0, 1) on sub-layer outputs and embeddings.
        activation: Activation of the feed-forward, one of `ACTIVATIONS`.
        epsilon: Epsilon of the norms.
        max_length: Longest text in ids.
        max_frames: Longest speech in frames, a multiple of `frames_per_step`.
        pad_id: Id of the padding token.

    Raises:
        ValueError: If a value is out of range.
    """

    vocab_size: int
    num_mels: int = 80
    frames_per_step: int = 1
    d_model: int = 512
    d_ff: int | None = None
    num_encoder_layers: int = 6
    num_decoder_layers: int = 6
    num_heads: int = 8
    prenet_size: int = 256
    prenet_dropout: float = 0.5
    dropout: float = 0.1
    activation: str = "relu"
    epsilon: float = 1e-6
    max_length: int = 256
    max_frames: int = 1000
    pad_id: int = 0

    def __post_init__(self):
        self._fill_d_ff()
        self._check_whole("vocab_size", "num_mels", "frames_per_step", "d_model", "d_ff")
        self._check_whole("num_encoder_layers", "num_decoder_layers", "num_heads", "prenet_size")
        self._check_whole("max_length", "max_frames")
        require(self.d_model % 2 == 0, "d_model", self.d_model, "even for sinusoidal positions")
        self._check_multiple("d_model", "num_heads")
        self._check_multiple("max_frames", "frames_per_step")
        self._check_rates("prenet_dropout")
        self._check_choice("activation", ACTIVATIONS)
        self._check_ids(self.vocab_size, "pad_id")

    @property
    def max_steps(self) -> int:
        """Maximum number of decoder positions."""
        return self.max_frames // self.frames_per_step


@keras.saving.register_keras_serializable("keras_transformer")
class TextToSpeech(ConfiguredModel):
    """A functional model from `source_ids` and `previous_frames` to frames and stop logits.

    It differs from the model of Li et al. 2019, section 3: blocks are pre-norm, the encoder's input
    is that of the paper's Transformer, without convolutions, and there is no postnet. Train it with
    a loss for each output, and sample weights that leave out padding.

    Args:
        config: The model's config.
        dtype: Keras dtype policy such as "mixed_bfloat16"; None: the global one.

    Call arguments:
        inputs: Dict of `source_ids` (B, S), int32, padded with `config.pad_id`, and
            `previous_frames` (B, T, mels): a frame of zeros, then the last frame of each step
            except the final one.

    Returns:
        A dict of `frames` (B, T, frames_per_step * mels), the log-mel features of each step, and
        `stop` (B, T, 1), the logit that a step is the last one.
    """

    config_class = TextToSpeechConfig

    def __init__(self, config: TextToSpeechConfig, dtype: Any = None, **kwargs: Any):
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        stack = BlockOptions.fields_of(config) | dict(norm_first=True, dtype=policy)
        source_embedding = PositionalEmbedding(
            config.vocab_size,
            config.d_model,
            max_length=config.max_length,
            dropout=config.dropout,
            dtype=policy,
            name="source_embedding",
        )
        prenet = FramePrenet(
            config.d_model,
            config.max_steps,
            hidden=config.prenet_size,
            dropout=config.prenet_dropout,
            dtype=policy,
            name="prenet",
        )
        encoder = Encoder(config.num_encoder_layers, **stack, name="encoder")
        decoder = Decoder(config.num_decoder_layers, **stack, name="decoder")
        width = config.frames_per_step * config.num_mels
        frames = Dense(width, dtype=policy, name="frames")
        stop = Dense(1, dtype=policy, name="stop")

        source_ids = keras.Input((None,), dtype="int32", name="source_ids")
        previous = keras.Input((None, config.num_mels), name="previous_frames")
        mask = padding_mask(source_ids, config.pad_id)
        memory = encoder(source_embedding(source_ids), attention_mask=mask)
        x, _ = decoder(prenet(previous), memory=memory, cross_attention_mask=mask)
        inputs = {"source_ids": source_ids, "previous_frames": previous}
        super().__init__(inputs=inputs, outputs={"frames": frames(x), "stop": stop(x)}, **kwargs)
        self.config, self._policy = config, policy
        self.source_embedding, self.prenet = source_embedding, prenet
        self.encoder, self.decoder = encoder, decoder
        self.frames, self.stop = frames, stop

    def prefill(self, source_ids: Any, length: Any) -> tuple[Any, Any, Any, Callable]:
        """Process the text and the first, empty frame; return what `decode_frames` needs.

        Args:
            source_ids: (B, S) int32, padded.
            length: Maximum number of steps, at most `config.max_steps`.

        Returns:
            Frames (B, frames_per_step * mels) and stop logits (B,) of the first step; the state, a
            tree of tensors whose first axis is B; and `step`.

        Raises:
            ValueError: If `length` is out of range.
        """
        most = self.config.max_steps
        in_range = not isinstance(length, int) or 1 <= length <= most
        require(in_range, "length", length, f"from 1 to {most}, the model's max_steps")
        mask = padding_mask(source_ids, self.config.pad_id)
        memory = self.encoder(self.source_embedding(source_ids), attention_mask=mask)
        first = quick.zeros((quick.shape(source_ids)[0], 1, self.config.num_mels), dtype="float32")
        x, caches = self.decoder(self.prenet(first), memory=memory, cross_attention_mask=mask)
        for cache in caches:
            cache["self"] = with_room(cache["self"], length)
        state = {"caches": caches, "source_mask": mask_bias(mask, x.dtype)}
        return *self._predicted(x), state, self.step

    def step(self, frames_BR: Any, state: Any, index: Any) -> tuple[Any, Any, Any]:
        """Predict step `index + 1`; return its frames, stop logits and the new state.

        Args:
            frames_BR: The frames of step `index`, (B, frames_per_step * mels).
            state: State that `prefill` or an earlier step returned.
            index: Number of the last predicted step, from 0.
        """
        last_B1M = quick.expand_dims(frames_BR[:, -self.config.num_mels :], 1)
        with direct_calls(self.decoder):
            x, caches = self.decoder(
                self.prenet(last_B1M, index=index + 1),
                cross_attention_mask=state["source_mask"],
                cache=state["caches"],
                index=index + 1,
            )
            return *self._predicted(x), {**state, "caches": caches}

    def _predicted(self, x):
        frames_B1R, stop_B11 = (quick.cast(y(x), "float32") for y in (self.frames, self.stop))
        return frames_B1R[:, 0], stop_B11[:, 0, 0]
