"""Rotary positions (RoPE): queries and keys are rotated by angles proportional to position."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from keras_transformer.backend import quick
from keras_transformer.config import is_number, require
from keras_transformer.layers.layer import Layer

SCALINGS = {  # the required keys of each `rope_type`
    "linear": ("factor",),
    "llama3": (
        "factor",
        "low_freq_factor",
        "high_freq_factor",
        "original_max_position_embeddings",
    ),
    "yarn": ("factor", "original_max_position_embeddings"),
}
OPTIONAL = ("attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim")  # for "yarn"


def check_scaling(theta: float, scaling: Any) -> None:
    """Raise ValueError, which names the bad value, if `rates` cannot be computed."""
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
    """Return the angular rate of each pair of features, and a factor for sine and cosine.

    The rates are theta^(-2i/H) (Su et al. 2021, equation 15). For texts longer than in training,
    `scaling` lowers them: "linear" divides all by a factor (Chen et al. 2023); "llama3" divides
    the low rates and keeps the high ones (Llama 3.1); "yarn" does the same and sharpens attention
    (Peng et al. 2023, section 3). "dynamic" is not supported: its angles change with the current
    length, so cached keys would be wrong.

    Args:
        head_dim: H, even.
        theta: Base of the rates.
        scaling: `rope_type` and its values, with the key names of Hugging Face's
            `rope_parameters`; keys in `OPTIONAL` may be absent or None. None: no scaling.

    Returns:
        The rates (H / 2,) float64, and the factor of both sine and cosine.
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

    def place(turns):  # index of the pair that rotates so many times over the training length
        return head_dim * math.log(length / (turns * 2 * math.pi)) / (2 * math.log(theta))

    first = place(scaling.get("beta_fast") or 32)
    last = place(scaling.get("beta_slow") or 1)
    if scaling.get("truncate", True):
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, head_dim - 1)
    # `last` may be less than `first` if the training length is very short or very long.
    ramp = (np.arange(head_dim // 2) - first) / (last - first or 0.001)
    kept = 1 - np.clip(ramp, 0.0, 1.0)
    return kept * rate + (1 - kept) * slowed, _sharpening(scaling)


def _sharpening(scaling):
    """Return the factor of sine and cosine: the given one, or one from the log of `factor`."""
    given = scaling.get("attention_factor")
    if given is not None:
        return given
    logarithm = 0.1 * math.log(max(scaling["factor"], 1.0))
    both = scaling.get("mscale"), scaling.get("mscale_all_dim")
    if all(both):  # DeepSeek's models have both
        return (both[0] * logarithm + 1.0) / (both[1] * logarithm + 1.0)
    return logarithm + 1.0


@keras.saving.register_keras_serializable("keras_transformer")
class Rotary(Layer):
    """Cosine and sine of position times rate, for `rotate` (Su et al. 2021, section 3.2).

    Args:
        head_dim: H, even.
        theta: Base of the rates.
        scaling: Scaling of the rates, see `rates`; None: no scaling.

    Call arguments:
        positions: (T,) or (B, T) integers.

    Returns:
        Cos and sin, each (1 or B, 1, T, H / 2).

    Raises:
        ValueError: If H is odd, or `scaling` has an unknown `rope_type`, lacks a key, or has a
            value out of range.
    """

    def __init__(
        self,
        head_dim: int,
        theta: float = 10000.0,
        scaling: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        if head_dim % 2:
            raise ValueError(f"head_dim must be even for rotary positions, got {head_dim}")
        check_scaling(theta, scaling)
        self.options = dict(
            head_dim=head_dim, theta=theta, scaling=None if scaling is None else dict(scaling)
        )
        rate, self.factor = rates(**self.options)  # type: ignore[arg-type]
        self.rates = rate.astype("float32")
        self.built = True

    def call(self, positions: Any) -> tuple[Any, Any]:
        if len(positions.shape) == 1:
            positions = quick.expand_dims(positions, 0)
        angles = quick.expand_dims(quick.cast(positions, "float32"), (1, 3))
        angles = angles * keras.ops.convert_to_tensor(self.rates)
        both = keras.ops.cos(angles) * self.factor, keras.ops.sin(angles) * self.factor
        return tuple(quick.cast(x, self.compute_dtype) for x in both)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.options}


def rotate(x_BNTH: Any, rotation: tuple[Any, Any]) -> Any:
    """Rotate each pair (x_i, x_{i + H/2}) by its angle.

    The product of a query and a key then depends on their positions only by the distance.

    Args:
        x_BNTH: Queries or keys.
        rotation: Output of `Rotary` for their positions.
    """
    cos, sin = rotation
    first, second = quick.split(x_BNTH, 2, axis=-1)
    return quick.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)
