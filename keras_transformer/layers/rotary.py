"""Rotary positions (RoPE): queries and keys are rotated by angles proportional to position."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from keras_transformer.backend import constant, quick
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
    "dynamic": ("factor", "original_max_position_embeddings"),
    "longrope": ("factor", "short_factor", "long_factor", "original_max_position_embeddings"),
}
# Optional keys of "yarn"; the first is also one of "longrope".
OPTIONAL = ("attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim")


def check_scaling(theta: float, scaling: Any, head_dim: int | None = None) -> None:
    """Raise ValueError, which names the bad value, if the function `rates` cannot use a scaling.

    Args:
        theta: Base of the rates.
        scaling: Scaling of the rates, see `rates`; None is valid.
        head_dim: H, to check the number of factors and the smallest width; None: no check.
    """
    if scaling is None:
        return
    require(isinstance(scaling, Mapping), "scaling", scaling, "a dictionary or None")
    kind = scaling.get("rope_type")
    accepted = f"one of {sorted(SCALINGS)}"
    require(kind in tuple(SCALINGS), "rope_type of scaling", kind, accepted)
    if missing := [name for name in SCALINGS[kind] if name not in scaling]:
        raise ValueError(f"scaling of rope_type {kind!r} must have {missing}")
    for name in SCALINGS[kind]:
        if name in ("short_factor", "long_factor"):
            _check_factors(name, scaling[name], head_dim)
            continue
        value = scaling[name]
        is_positive = is_number(value) and value > 0
        require(is_positive, f"{name} of scaling", value, "a number above 0")
    if kind == "llama3":
        low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
        require(high > low, "high_freq_factor of scaling", high, f"above low_freq_factor={low}")
    if kind == "yarn":
        require(theta > 1, "theta", theta, "a number above 1 for a scaling of rope_type 'yarn'")
        for name in OPTIONAL:
            value = scaling.get(name)
            in_range = value is None or (is_number(value) and value >= 0)
            require(in_range, f"{name} of scaling", value, "a number of at least 0 or None")
        rounds = scaling.get("truncate", True)
        accepted = "True, False or None"
        require(isinstance(rounds, bool | None), "truncate of scaling", rounds, accepted)
    if kind == "longrope":
        length = scaling["original_max_position_embeddings"]
        factor = scaling.get("attention_factor")
        name = "original_max_position_embeddings of scaling"
        require(length > 1, name, length, "above 1 for rope_type 'longrope'")
        in_range = factor is None or (is_number(factor) and factor >= 0)
        require(in_range, "attention_factor of scaling", factor, "a number of at least 0 or None")
    if kind == "dynamic" and head_dim is not None:
        require(head_dim > 2, "head_dim", head_dim, "above 2 for rope_type 'dynamic'")


def _check_factors(name, factors, head_dim):
    """Raise ValueError unless `factors` are numbers above 0, one per pair of features."""
    is_list = isinstance(factors, list | tuple)
    are_positive = is_list and all(is_number(x) and x > 0 for x in factors)
    require(are_positive, f"{name} of scaling", factors, "a list of numbers above 0")
    if head_dim is not None and len(factors) != head_dim // 2:
        raise ValueError(
            f"{name} of scaling must have {head_dim // 2} numbers, half of the width of a head, "
            f"got {len(factors)}"
        )


def rates(
    head_dim: int, theta: float, scaling: Mapping[str, Any] | None, length: int = 0
) -> tuple[Any, float]:
    """Return the angular rate of each pair of features, and a factor for sine and cosine.

    The rates are theta^(-2i/H) (Su et al. 2021, equation 15). For texts longer than in training,
    `scaling` lowers them: "linear" divides all by a factor (Chen et al. 2023); "llama3" divides
    the low rates and keeps the high ones (Llama 3.1); "yarn" does the same and sharpens attention
    (Peng et al. 2023, section 3). The rates of "dynamic" and "longrope" depend on the length of the
    sequence: beyond the original length, "dynamic" raises theta with each token (Peng et al. 2023,
    section 3.3), and "longrope" divides the rates by other factors (Ding et al. 2024).

    Args:
        head_dim: H, even.
        theta: Base of the rates.
        scaling: `rope_type` and its values, with the key names of Hugging Face's
            `rope_parameters`; keys in `OPTIONAL` may be absent or None. "yarn" may have `truncate`:
            whether the indices of the first and last mixed pair are rounded; True if absent. None:
            no scaling.
        length: Number of tokens of the sequence, for "dynamic" and "longrope".

    Returns:
        The rates (H / 2,) float64, and the factor of both sine and cosine.
    """
    rate = theta ** (-np.arange(0, head_dim, 2) / head_dim)
    if scaling is None:
        return rate, 1.0
    slowed, kind = rate / scaling["factor"], scaling["rope_type"]
    if kind == "linear":
        return slowed, 1.0
    original = scaling["original_max_position_embeddings"]
    if kind == "dynamic":
        growth = scaling["factor"] * max(length / original, 1.0) - scaling["factor"] + 1
        return rate * growth ** _exponents(head_dim), 1.0
    if kind == "longrope":
        factors = scaling["long_factor" if length > original else "short_factor"]
        return rate / np.array(factors), _sharpening_by_length(scaling)
    if kind == "llama3":
        low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
        turns = original * rate / (2 * math.pi)
        kept = np.clip((turns - low) / (high - low), 0.0, 1.0)
        return kept * rate + (1 - kept) * slowed, 1.0
    return _yarn(head_dim, theta, scaling, rate, slowed), _sharpening(scaling)


def _exponents(head_dim):
    """Return -2i / (H - 2), the power of g in rate i if theta is multiplied by g^(H / (H - 2))."""
    return -np.arange(0, head_dim, 2) / (head_dim - 2)


def _yarn(head_dim, theta, scaling, rate, slowed):
    """Return the rates of "yarn": `rate` for fast pairs, `slowed` for slow ones, a mix between."""
    original = scaling["original_max_position_embeddings"]

    def pair_index(turns):  # index of the pair that rotates so many times over the training length
        return head_dim * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(theta))

    first = pair_index(scaling.get("beta_fast") or 32)
    last = pair_index(scaling.get("beta_slow") or 1)
    if scaling.get("truncate", True):
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, head_dim - 1)
    # `last` may be less than `first` if the training length is very short or very long.
    ramp = (np.arange(head_dim // 2) - first) / (last - first or 0.001)
    kept = 1 - np.clip(ramp, 0.0, 1.0)
    return kept * rate + (1 - kept) * slowed


def _sharpening_by_length(scaling):
    """Return the factor of sine and cosine of "longrope" (Ding et al. 2024)."""
    sharpening, factor = scaling.get("attention_factor"), scaling["factor"]
    if sharpening is not None:
        return sharpening
    original = scaling["original_max_position_embeddings"]
    return math.sqrt(1 + math.log(factor) / math.log(original)) if factor > 1 else 1.0


def _sharpening(scaling):
    """Return the factor of sine and cosine of "yarn": given, or from the logarithm of `factor`."""
    sharpening = scaling.get("attention_factor")
    if sharpening is not None:
        return sharpening
    logarithm = 0.1 * math.log(max(scaling["factor"], 1.0))
    scales = scaling.get("mscale"), scaling.get("mscale_all_dim")
    if all(scales):  # DeepSeek's models have both
        return (scales[0] * logarithm + 1.0) / (scales[1] * logarithm + 1.0)
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
        lengths: (1 or B, 1 or T) integers, the number of tokens of each token's sequence, for a
            scaling that depends on it; None: the highest position of the row plus one.

    Returns:
        Cos and sin, each (1 or B, 1, T, H / 2).

    Attributes:
        limit: Maximum length of a sequence that has the rates of short sequences; None: the rates
            do not depend on the length.

    Raises:
        ValueError: If H is odd, or `scaling` has an unknown `rope_type`, lacks a key, or has a
            value out of range.
    """

    whole_arguments = ("positions", "lengths")

    def __init__(
        self,
        head_dim: int,
        theta: float = 10000.0,
        scaling: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        require(not head_dim % 2, "head_dim", head_dim, "even for rotary positions")
        check_scaling(theta, scaling, head_dim)
        self.head_dim, self.theta = head_dim, theta
        self.scaling = None if scaling is None else dict(scaling)
        self.kind = (self.scaling or {}).get("rope_type")
        self.limit = None
        if self.scaling and self.kind in ("dynamic", "longrope"):
            self.limit = int(self.scaling["original_max_position_embeddings"])
        rate, self.factor = rates(head_dim, theta, scaling)
        self.rates = rate.astype("float32")
        self.built = True

    def call(self, positions: Any, lengths: Any = None) -> tuple[Any, Any]:
        if len(positions.shape) == 1:
            positions = quick.expand_dims(positions, 0)
        angles = quick.expand_dims(quick.cast(positions, "float32"), (1, 3))
        if self.limit is None:
            angles = angles * constant(self.rates)
        else:
            if lengths is None:
                lengths = keras.ops.max(positions, axis=1, keepdims=True) + 1
            angles = angles * self._rates_of(quick.expand_dims(lengths, (1, 3)))
        pair = keras.ops.cos(angles) * self.factor, keras.ops.sin(angles) * self.factor
        return tuple(quick.cast(x, self.compute_dtype) for x in pair)

    def _rates_of(self, lengths_B1T1):
        """Return the rates (B, 1, T, H / 2) of tokens in sequences of these lengths."""
        assert self.limit and self.scaling, "other kinds have one set of rates"
        rates_of_short = constant(self.rates)
        if self.kind == "longrope":
            long, _ = rates(self.head_dim, self.theta, self.scaling, self.limit + 1)
            long = keras.ops.convert_to_tensor(long.astype("float32"))
            return quick.where(lengths_B1T1 > self.limit, long, rates_of_short)
        factor = self.scaling["factor"]
        growth = quick.cast(lengths_B1T1, "float32") * (factor / self.limit) - (factor - 1)
        exponents = keras.ops.convert_to_tensor(_exponents(self.head_dim).astype("float32"))
        return rates_of_short * keras.ops.exp(exponents * keras.ops.log(quick.maximum(growth, 1.0)))

    def get_config(self) -> dict[str, Any]:
        settings = {"head_dim": self.head_dim, "theta": self.theta, "scaling": self.scaling}
        return {**super().get_config(), **settings}


def rotate(x_BNTH: Any, rotation: tuple[Any, Any]) -> Any:
    """Rotate each pair (x_i, x_{i + R/2}) of the first R features by its angle.

    The product of a query and a key then depends on their positions only by the distance.

    Args:
        x_BNTH: Queries or keys.
        rotation: Output of `Rotary` for their positions; its `head_dim` is R, at most H.
    """
    cos, sin = rotation
    rotary_dim = 2 * cos.shape[-1]
    if rotary_dim < x_BNTH.shape[-1]:
        rotated, rest = quick.split(x_BNTH, [rotary_dim], axis=-1)
        return quick.concatenate([rotate(rotated, rotation), rest], axis=-1)
    first, second = quick.split(x_BNTH, 2, axis=-1)
    return quick.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)
