"""Rotary positions in a `config.json`: the base theta and its scaling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keras_transformer.hub.families.fields import is_size, positive
from keras_transformer.layers.rotary import check_scaling

_OUTER = "original_max_position_embeddings"
ROTARY = ("rope_theta", "partial_rotary_factor", _OUTER)  # fields that `read_rotary` checks


def read_rotary(
    theirs: Mapping[str, Any], default_theta: float = 10000.0
) -> tuple[float, dict[str, Any] | None]:
    """Return the base theta and its scaling, with the precedence of `transformers` (5.23).

    `rope_scaling` is preferred to `rope_parameters`, a `rope_theta` inside it to the outer one, but
    the outer `original_max_position_embeddings` to the inner one.

    Args:
        theirs: Complete `config.json`.
        default_theta: Base where the file has none.

    Raises:
        ValueError: If a field has a value that is not accepted; names it.
    """
    name = "rope_scaling" if theirs["rope_scaling"] else "rope_parameters"
    found = dict(theirs[name] or {})
    if any(isinstance(value, Mapping) for value in found.values()):
        raise ValueError(f"{name} must hold one set of numbers for all layers, got {found}")
    theta = positive(default_theta).read("rope_theta", {**theirs, **found})
    found.pop("rope_theta", None)
    part = found.pop("partial_rotary_factor", theirs.get("partial_rotary_factor"))
    if part not in (None, 1):
        raise ValueError(f"partial_rotary_factor must be 1, got {part!r}")
    kind = found.pop("rope_type", found.get("type", "default"))
    found.pop("type", None)
    if kind == "default":
        return float(theta), None
    longest = theirs["max_position_embeddings"]
    if kind in ("llama3", "yarn", "longrope"):
        found[_OUTER] = theirs.get(_OUTER, found.get(_OUTER, longest))
        if kind == "longrope":
            found.setdefault("factor")
        if kind != "llama3" and found.get("factor", 0) is None and is_size(found[_OUTER]):
            found["factor"] = longest / found[_OUTER]
    if kind == "dynamic":
        found[_OUTER] = longest
    scaling = {"rope_type": kind, **found}
    try:
        check_scaling(theta, scaling)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    return float(theta), scaling


def longest_of(theirs: Mapping[str, Any], scaling: Mapping[str, Any] | None) -> int:
    """Return the longest sequence: of "dynamic" scaling, the original length times the factor."""
    longest = theirs["max_position_embeddings"]
    if scaling and scaling["rope_type"] == "dynamic":
        return max(longest, int(longest * scaling["factor"]))
    return longest


def rotary_fields(theta: float, scaling: Mapping[str, Any] | None, longest: int) -> dict[str, Any]:
    """Return `rope_parameters` and `max_position_embeddings`, which `read_rotary` reads.

    Args:
        theta: Base of the rates.
        scaling: Scaling of the rates, see `layers.rotary.rates`.
        longest: Longest sequence of the model in tokens.
    """
    parameters = {"rope_type": "default", **(scaling or {}), "rope_theta": theta}
    if parameters["rope_type"] == "dynamic":
        longest = parameters.pop(_OUTER)
    return dict(rope_parameters=parameters, max_position_embeddings=longest)
