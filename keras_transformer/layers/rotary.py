"""Rotary positions: queries and keys turned by an angle that grows with their place (RoPE)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from keras_transformer.backend import quick
from keras_transformer.config import is_number, require
from keras_transformer.layers.layer import Layer

SCALINGS = {  # what each form of scaling must say
    "linear": ("factor",),
    "llama3": (
        "factor",
        "low_freq_factor",
        "high_freq_factor",
        "original_max_position_embeddings",
    ),
    "yarn": ("factor", "original_max_position_embeddings"),
}
OPTIONAL = ("attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim")  # of "yarn"


def check_scaling(theta: float, scaling: Any) -> None:
    """Raises ValueError unless `rates` can be computed of these; names the number."""
    if scaling is None:
        return
    require(isinstance(scaling, Mapping), "scaling", scaling, "a dictionary or None")
    kind = scaling.get("rope_type")
    accepted = f"one of {sorted(SCALINGS)}"
    require(kind in tuple(SCALINGS), "rope_type of scaling", kind, accepted)
    if missing := [name for name in SCALINGS[kind] if name not in scaling]:
        raise ValueError(f"scaling of rope_type {kind!r} must have {missing}")
    for name in SCALINGS[kind]:
        value = scaling[name]
        fits = is_number(value) and value > 0
        require(fits, f"{name} of scaling", value, "a number above 0")
    if kind == "llama3":
        low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
        require(high > low, "high_freq_factor of scaling", high, f"above low_freq_factor={low}")
    if kind == "yarn":
        require(theta > 1, "theta", theta, "a number above 1 for a scaling of rope_type 'yarn'")
        for name in OPTIONAL:
            value = scaling.get(name)
            fits = value is None or (is_number(value) and value >= 0)
            require(fits, f"{name} of scaling", value, "a number of at least 0 or None")


def rates(head_dim: int, theta: float, scaling: Mapping[str, Any] | None) -> tuple[Any, float]:
    """Return the angular rate of each pair of numbers, and a factor of the result.

    theta^(-2i/H) (Su et al. 2021, equation 15), slowed for texts longer than those of training:
    "linear" all by a factor (Chen et al. 2023); "llama3" the slow ones, the fast ones not at all
    (Llama 3.1); "yarn" likewise, and it sharpens attention (Peng et al. 2023, section 3). "dynamic"
    is none of them: its angles change with the length so far, and cached keys would be wrong.

    Args:
        head_dim: H, even.
        theta: the base.
        scaling: `rope_type` and its numbers, by the names of Hugging Face's `rope_parameters`; of
            those in `OPTIONAL` None is as absent. None: none.

    Returns:
        (H / 2,) float64, and the factor of both sine and cosine.
    """
    rate = theta ** (-np.arange(0, head_dim, 2) / head_dim)
    if scaling is None:
        return rate, 1.0
    slowed, kind = rate / scaling["factor"], scaling["rope_type"]
    if kind == "linear":
        return slowed, 1.0
    length = scaling["original_max_position_embeddings"]
    if kind == "llama3":
        low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
        turns = length * rate / (2 * math.pi)
        kept = np.clip((turns - low) / (high - low), 0.0, 1.0)
        return kept * rate + (1 - kept) * slowed, 1.0

    def place(turns):  # of the pair that turns so often over the length of training
        return head_dim * math.log(length / (turns * 2 * math.pi)) / (2 * math.log(theta))

    first = place(scaling.get("beta_fast") or 32)
    last = place(scaling.get("beta_slow") or 1)
    if scaling.get("truncate", True):
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, head_dim - 1)
    # The last may lie before the first, where the length of training is very short or very long.
    ramp = (np.arange(head_dim // 2) - first) / (last - first or 0.001)
    kept = 1 - np.clip(ramp, 0.0, 1.0)
    return kept * rate + (1 - kept) * slowed, _sharpening(scaling)


def _sharpening(scaling):
    """The factor of sine and cosine: as given, or by the logarithm of how much longer texts are."""
    given = scaling.get("attention_factor")
    if given is not None:
        return given
    logarithm = 0.1 * math.log(max(scaling["factor"], 1.0))
    both = scaling.get("mscale"), scaling.get("mscale_all_dim")
    if all(both):  # as DeepSeek's models have them
        return (both[0] * logarithm + 1.0) / (both[1] * logarithm + 1.0)
    return logarithm + 1.0


@keras.saving.register_keras_serializable("keras_transformer")
class Rotary(Layer):
    """cos and sin of position x rate, for `rotate` (Su et al. 2021, section 3.2).

    Args:
        head_dim: H, even.
        theta: base of the rates.
        scaling: as of `rates`; None: none.

    Call arguments:
        positions: (T,) or (B, T) whole numbers.

    Returns:
        cos and sin, each (1 or B, 1, T, H / 2).

    Raises:
        ValueError: if H is odd, or a form of scaling is unknown, lacks a number, or has one that
            is out of range.
    """

    def __init__(self, head_dim, theta=10000.0, scaling=None, **kwargs):
        super().__init__(**kwargs)
        if head_dim % 2:
            raise ValueError(f"head_dim must be even for rotary positions, got {head_dim}")
        check_scaling(theta, scaling)
        self.options = dict(
            head_dim=head_dim, theta=theta, scaling=None if scaling is None else dict(scaling)
        )
        rate, self.factor = rates(**self.options)
        self.rates = rate.astype("float32")
        self.built = True

    def call(self, positions):
        if len(positions.shape) == 1:
            positions = quick.expand_dims(positions, 0)
        angles = quick.expand_dims(quick.cast(positions, "float32"), (1, 3))
        angles = angles * keras.ops.convert_to_tensor(self.rates)
        both = keras.ops.cos(angles) * self.factor, keras.ops.sin(angles) * self.factor
        return tuple(quick.cast(x, self.compute_dtype) for x in both)

    def get_config(self):
        return {**super().get_config(), **self.options}


def rotate(x_BNTH: Any, rotation: tuple[Any, Any]) -> Any:
    """Each pair (x_i, x_{i + H/2}) turned by its angle: products of two depend on distance alone.

    Args:
        x_BNTH: queries or keys.
        rotation: what `Rotary` gives for their positions.
    """
    cos, sin = rotation
    first, second = quick.split(x_BNTH, 2, axis=-1)
    return quick.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)
