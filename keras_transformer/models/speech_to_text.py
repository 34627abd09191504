"""Speech to text: an encoder-decoder over log-mel features (Whisper; Radford et al. 2022, 2.2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras

from keras_transformer.backend import quick
from keras_transformer.config import ACTIVATIONS, Config, require
from keras_transformer.layers import (
    AudioEmbedding,
    Decoder,
    Encoder,
    PositionalEmbedding,
    length_mask,
)
from keras_transformer.layers.block_options import BlockOptions
from keras_transformer.models.encoder_decoder import EncoderDecoder, Parts


@dataclass(frozen=True)
class SpeechConfig(Config):
    """Config of a speech model (defaults: Whisper tiny, Radford et al. 2022, Table 1).

    Args:
        vocab_size: Number of token ids.
        num_mels: Number of mel features per frame.
        d_model: Width of the residual stream, even; a multiple of `num_heads`.
        d_ff: Width inside the feed-forward; None: 4 `d_model`.
        num_encoder_layers: Number of encoder blocks.
        num_decoder_layers: Number of decoder blocks.
        num_heads: Number of attention heads per block.
        decoder_d_ff: Width inside the feed-forward of the decoder; None: `d_ff`.
        num_decoder_heads: Number of attention heads per block of the decoder; None: `num_heads`.
        dropout: Dropout rate in [0, 1) on sub-layer outputs and embeddings.
        activation: Activation of the feed-forward, one of `ACTIVATIONS`.
        epsilon: Epsilon of the norms.
        max_frames: Longest clip in frames, two per encoder position.
        max_length: Longest text in tokens.
        pad_id: Id of the padding token. In Whisper it equals `eos_id`, which is sufficient except
            in training.
        bos_id: Id that the decoder's input begins with.
        eos_id: Id of the token that ends a text; a tuple if several tokens do.

    Raises:
        ValueError: If a value is out of range.
    """

    vocab_size: int
    num_mels: int = 80
    d_model: int = 384
    d_ff: int | None = None
    num_encoder_layers: int = 4
    num_decoder_layers: int = 4
    num_heads: int = 6
    decoder_d_ff: int | None = None
    num_decoder_heads: int | None = None
    dropout: float = 0.0
    activation: str = "gelu"
    epsilon: float = 1e-5
    max_frames: int = 3000
    max_length: int = 448
    pad_id: int = 0
    bos_id: int = 2
    eos_id: int | tuple[int, ...] = 3

    def __post_init__(self):
        self._fill_d_ff()
        self._check_whole("vocab_size", "num_mels", "d_model", "d_ff", "num_heads")
        self._check_whole("num_encoder_layers", "num_decoder_layers", "max_frames", "max_length")
        require(self.d_model % 2 == 0, "d_model", self.d_model, "even for sinusoidal positions")
        self._check_multiple("d_model", "num_heads")
        self._check_decoder_sizes()
        self._check_rates()
        self._check_choice("activation", ACTIVATIONS)
        self._check_ids(self.vocab_size, "pad_id", "bos_id", "eos_id")


class _SpeechParts(Parts):
    """Parts whose source is audio features instead of token ids."""

    def embed_source(self, inputs: dict[str, Any]) -> tuple[Any, Any]:
        num_frames = inputs.get("num_frames")
        x = self.source_embedding(inputs["features"], num_frames=num_frames)
        if num_frames is None:
            return x, None
        return x, length_mask((num_frames + 1) // 2, quick.shape(x)[1])


@keras.saving.register_keras_serializable("keras_transformer")
class Speech(EncoderDecoder):
    """A Whisper: a functional model from `features` and `target_ids` to logits.

    Args:
        config: The model's config.
        dtype: Keras dtype policy such as "mixed_bfloat16"; None: the global one.

    Call arguments:
        inputs: Dict of `features` (B, frames, mels), floats from `data.audio.log_mel`, and
            `target_ids` (B, T), int32, which begin with `config.bos_id`. If clips are padded,
            also `num_frames` (B,), int32, the number of frames of each; the logits of a clip are
            then the same as for the clip alone. Leave `num_frames` out for pretrained Whispers:
            their clips were filled with silence to 30 seconds, and the silence was not masked.

    Returns:
        Logits (B, T, V).

    Raises:
        ValueError: If features have another shape, or clips are longer than `config.max_frames`.
    """

    config_class = SpeechConfig
    source_name, source_dtype = "features", "float32"
    optional_inputs = frozenset({"num_frames"})

    def __init__(self, config: SpeechConfig, dtype: Any = None, **kwargs: Any):
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        stack = BlockOptions.fields_of(config) | dict(norm_first=True, dtype=policy)
        source_embedding = AudioEmbedding(
            config.d_model,
            config.max_frames,
            dropout=config.dropout,
            dtype=policy,
            name="source_embedding",
        )
        target_embedding = PositionalEmbedding(
            config.vocab_size,
            config.d_model,
            positions="learned",
            max_length=config.max_length,
            dropout=config.dropout,
            scale=False,
            dtype=policy,
            name="target_embedding",
        )

        parts = _SpeechParts(
            config.pad_id,
            source_embedding,
            target_embedding,
            Encoder(config.num_encoder_layers, **stack, name="encoder"),
            Decoder(config.num_decoder_layers, **stack | config.decoder_sizes, name="decoder"),
            target_embedding.tokens,
        )
        super().__init__(config, policy, parts, source_shape=(None, config.num_mels), **kwargs)
        self.input_spec = None  # `call` raises a clearer error

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        """Return the logits (B, T, V) of features and target ids."""
        inputs = self.named_inputs(inputs)
        self._check(inputs["features"])
        return super().call(inputs, training=training, mask=mask)

    def target_length(self, source_length: Any) -> int:
        """Return 0: the frames do not tell the length of the text."""
        return 0

    def prefill(
        self,
        features: Any,
        first_ids: Any,
        length: Any,
        beam_size: int = 1,
        num_frames: Any = None,
    ) -> tuple[Any, Any, Callable]:
        """Encode `features` and prefill the decoder, like `EncoderDecoder.prefill`.

        Raises:
            ValueError: If the features have another shape, or `length` is above `max_length`.
        """
        self._check(features)
        if isinstance(length, int) and length > self.config.max_length:
            raise ValueError(f"length must be at most {self.config.max_length}, got {length}")
        inputs = {"features": features}
        if num_frames is not None:
            inputs["num_frames"] = keras.ops.convert_to_tensor(num_frames, dtype="int32")
        return self._prefill(inputs, first_ids, length, beam_size)

    def _check(self, features):
        shape, most = tuple(features.shape), self.config.max_frames
        has_mels = len(shape) == 3 and shape[2] == self.config.num_mels
        if not has_mels or (shape[1] is not None and shape[1] > most):
            raise ValueError(
                f"features must be (batch, at most {most} frames, {self.config.num_mels} mels), "
                f"got {shape}"
            )
