"""The scaling of rotary positions in a GGUF file: keys of the metadata, or factors as tensors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from keras_transformer.config import require
from keras_transformer.hub.gguf.container import GGUFFile
from keras_transformer.layers.rotary import rates

_PREFIX = "rope.scaling."
_BETAS = ("beta_fast", "beta_slow")
ROTARY = (  # keys that an architecture with rotary positions may have
    "rope.freq_base",
    "rope.dimension_count",
    *(f"{_PREFIX}{x}" for x in ("type", "factor", "attn_factor", "original_context_length")),
    *(f"{_PREFIX}yarn_{x}" for x in _BETAS),
)
FACTORS, SHORT, LONG = (
    f"rope_{name}.weight" for name in ("freqs", "factors_short", "factors_long")
)
_KINDS = ("none", "linear", "yarn", "longrope")
_USUAL = dict(low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=8192)
_TOLERANCE = 1e-6  # relative, of factors in float32


def read_scaling(
    file: GGUFFile, facts: Mapping[str, Any], config: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the fields of a `config.json` that scale rotary positions; {} without scaling.

    Args:
        file: The file.
        facts: Its keys of the architecture, without the architecture's name.
        config: Its `config.json` without these fields.

    Raises:
        ValueError: If the scaling is unknown or incomplete; names it.
    """

    def check(is_accepted, key, accepted):
        require(is_accepted, f"{key} in {file.path}", facts.get(key), accepted)

    kind, factor, sharpening, original = (
        facts.get(f"{_PREFIX}{x}")
        for x in ("type", "factor", "attn_factor", "original_context_length")
    )
    longest = facts["context_length"]
    check(kind in (None, *_KINDS), f"{_PREFIX}type", f"one of {_KINDS}")
    lists = {x: file.read(x).tolist() for x in (FACTORS, SHORT, LONG) if x in file.tensors}
    if FACTORS in lists:
        check(kind in (None, "none"), f"{_PREFIX}type", f"'none' beside {FACTORS}")
        return dict(rope_scaling=_divided(lists[FACTORS], config))
    if lists:
        require(len(lists) == 2, f"factors in {file.path}", [*lists], f"{SHORT} and {LONG}")
        original = original or longest
        scaling = dict(rope_type="longrope", short_factor=lists[SHORT], long_factor=lists[LONG])
        scaling["attention_factor"] = sharpening or _sharpening(longest, original)
        return dict(rope_scaling=scaling, original_max_position_embeddings=original)
    check(kind != "longrope", f"{_PREFIX}type", f"another without {SHORT}")
    check(sharpening in (None, 1.0), f"{_PREFIX}attn_factor", "1.0")
    if kind == "none" or factor in (None, 0.0, 1.0):
        return {}
    if kind != "yarn":
        return dict(rope_scaling=dict(rope_type="linear", factor=factor))
    betas = {x: facts.get(f"{_PREFIX}yarn_{x}") for x in _BETAS}
    scaling = dict(rope_type="yarn", factor=factor, **{x: y for x, y in betas.items() if y})
    return dict(rope_scaling=scaling | dict(original_max_position_embeddings=original or longest))


def _sharpening(longest, original):
    """Return the default factor of sine and cosine of "longrope"."""
    growth = longest / original
    return math.sqrt(1 + math.log(growth) / math.log(original)) if growth > 1 else 1.0


def _divided(factors, config):
    """Return the scaling that divides the rates by these factors.

    It is that of Llama 3.1 if its parameters can be found. Else it is "longrope" with the same
    factors for all lengths.
    """
    head_dim, theta = config["head_dim"], config["rope_theta"]
    if len(factors) == head_dim // 2:
        expected = rates(head_dim, theta, None)[0] / np.array(factors)
        for scaling in _candidates(factors, head_dim, theta):
            if np.allclose(rates(head_dim, theta, scaling)[0], expected, _TOLERANCE, 0):
                return scaling
    longest = config["max_position_embeddings"]
    lists = dict(short_factor=factors, long_factor=factors, attention_factor=1.0)
    return dict(rope_type="longrope", original_max_position_embeddings=longest, **lists)


def _candidates(factors: Sequence[float], head_dim: int, theta: float) -> Iterator[dict[str, Any]]:
    """Yield scalings of "llama3" that may have these factors: the usual one, then a fitted one.

    With factors f and their maximum F, s = (1 / f - 1 / F) / (1 - 1 / F) is 1 for high rates, 0 for
    low rates, and between them (L * rate / (2 * pi) - low) / (high - low), with L the original
    length. This line determines only two of L, low and high, so low is 1, as in Llama 3.1.
    """
    largest = max(factors)
    kind = dict(rope_type="llama3", factor=float(largest))
    if largest <= 1:
        return
    yield kind | _USUAL
    rate, f = rates(head_dim, theta, None)[0], np.array(factors)
    between = (f > 1 + _TOLERANCE) & (f < largest * (1 - _TOLERANCE))
    if between.sum() < 2:
        return
    share = (1 / f[between] - 1 / largest) / (1 - 1 / largest)
    slope, start = np.polyfit(rate[between] / (2 * math.pi), share, 1)
    if start < 0 < slope:
        high, length = round(1 - 1 / start, 4), round(-slope / start)
        yield kind | dict(
            low_freq_factor=1.0, high_freq_factor=high, original_max_position_embeddings=length
        )


def write_scaling(
    config: Mapping[str, Any], head_dim: int
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the keys of the metadata and the tensors that scale rotary positions.

    Args:
        config: `config.json` of a checkpoint that our families wrote.
        head_dim: Width of a head.

    Raises:
        ValueError: If GGUF has no such scaling.
    """
    scaling = config["rope_parameters"]
    kind, theta = scaling["rope_type"], scaling["rope_theta"]
    if kind == "default":
        return {}, {}
    if kind in ("linear", "yarn"):
        keys = dict(type=kind, factor=float(scaling["factor"]))
        if kind == "yarn":
            others = [x for x in ("attention_factor", "mscale", "truncate") if x in scaling]
            require(not others, "scaling", scaling, f"without {others}, which GGUF lacks")
            keys["original_context_length"] = scaling["original_max_position_embeddings"]
            keys |= {f"yarn_{x}": float(scaling[x]) for x in _BETAS if scaling.get(x)}
        return {f"{_PREFIX}{x}": y for x, y in keys.items()}, {}
    is_fixed = kind == "longrope" and scaling["short_factor"] == scaling["long_factor"]
    is_fixed &= scaling.get("attention_factor") == 1.0
    accepted = "'linear', 'yarn' or 'llama3' in a GGUF file"
    require(kind == "llama3" or is_fixed, "rope_type of scaling", kind, accepted)
    plain, slowed = (rates(head_dim, theta, x)[0] for x in (None, {"factor": 1.0, **scaling}))
    return {}, {FACTORS: (plain / slowed).astype("float32")}
