"""Rotary positions in a `config.json`: the base theta and its scaling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keras_transformer.config import is_number, require
from keras_transformer.hub.families.fields import is_size, positive
from keras_transformer.hub.families.window_fields import FULL, SLIDING
from keras_transformer.layers.rotary import check_scaling

_OUTER = "original_max_position_embeddings"
# Fields that `read_rotary` and `read_rotary_dim` check.
ROTARY = ("rope_theta", "partial_rotary_factor", _OUTER)


def read_rotary_dim(theirs: Mapping[str, Any], head_dim: int, default: float) -> int | None:
    """Return how many features of a head rotate; None: all of them.

    Args:
        theirs: Content of the `config.json`, with defaults filled in.
        head_dim: Width of a head.
        default: Share of the features if the file has none.

    Raises:
        ValueError: If `partial_rotary_factor` is out of range.
    """
    name = "partial_rotary_factor"
    fields = {**theirs, **(theirs["rope_scaling"] or theirs["rope_parameters"] or {})}
    share = fields.get(name, default)
    require(is_number(share) and 0 < share <= 1, name, share, "a number above 0 and at most 1")
    return None if share == 1 else int(head_dim * share)


def read_rotary(
    theirs: Mapping[str, Any], default_theta: float = 10000.0, partial: bool = False
) -> tuple[float, dict[str, Any] | None]:
    """Return the base theta and its scaling (None: not scaled), as read by `transformers` (5.23).

    `rope_scaling` takes precedence over `rope_parameters`, and a `rope_theta` inside it over the
    outer one. The outer `original_max_position_embeddings` takes precedence over the inner one.

    Args:
        theirs: Content of the `config.json`, with defaults filled in.
        default_theta: Base if the file has none.
        partial: Whether `partial_rotary_factor` may differ from 1; see `read_rotary_dim`.

    Raises:
        ValueError: If a field has a value that is not accepted; names it.
    """
    name = "rope_scaling" if theirs["rope_scaling"] else "rope_parameters"
    parameters = dict(theirs[name] or {})
    if any(isinstance(value, Mapping) for value in parameters.values()):
        raise ValueError(f"{name} must hold one set of numbers for all layers, got {parameters}")
    theta = positive(default_theta).read("rope_theta", {**theirs, **parameters})
    parameters.pop("rope_theta", None)
    part = parameters.pop("partial_rotary_factor", theirs.get("partial_rotary_factor"))
    require(partial or part in (None, 1), "partial_rotary_factor", part, "1")
    kind = parameters.pop("rope_type", parameters.get("type", "default"))
    parameters.pop("type", None)
    if kind == "default":
        return float(theta), None
    longest = theirs["max_position_embeddings"]
    if kind in ("llama3", "yarn", "longrope"):
        parameters[_OUTER] = theirs.get(_OUTER, parameters.get(_OUTER, longest))
        if kind == "longrope":
            parameters.setdefault("factor")
        if kind != "llama3" and parameters.get("factor", 0) is None and is_size(parameters[_OUTER]):
            parameters["factor"] = longest / parameters[_OUTER]
    if kind == "dynamic":
        parameters[_OUTER] = longest
    scaling = {"rope_type": kind, **parameters}
    try:
        check_scaling(theta, scaling)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    return float(theta), scaling


def parameters_by_type(theirs: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the rotary parameters of layers with a window, and of those without.

    Raises:
        ValueError: If `rope_parameters` has other entries than these two, or they are no objects.
    """
    rotary = theirs["rope_parameters"] or {}
    for name in (SLIDING, FULL):
        is_object = rotary.get(name) is None or isinstance(rotary[name], Mapping)
        require(is_object, f"{name} of rope_parameters", rotary.get(name), "an object or null")
    if strange := sorted(rotary.keys() - {SLIDING, FULL}):
        raise ValueError(f"rope_parameters must have only {SLIDING} and {FULL}, got {strange}")
    local, full = ({"rope_type": "default", **(rotary.get(x) or {})} for x in (SLIDING, FULL))
    return local, full


def longest_of(theirs: Mapping[str, Any], scaling: Mapping[str, Any] | None) -> int:
    """Return the maximum length in tokens; "dynamic" scaling multiplies it by its factor."""
    longest = theirs["max_position_embeddings"]
    if scaling and scaling["rope_type"] == "dynamic":
        return max(longest, int(longest * scaling["factor"]))
    return longest


def rotary_fields(
    theta: float, scaling: Mapping[str, Any] | None, longest: int, share: float = 1.0
) -> dict[str, Any]:
    """Return `rope_parameters` and `max_position_embeddings`, which `read_rotary` reads.

    Args:
        theta: Base of the rates.
        scaling: Scaling of the rates, see `layers.rotary.rates`.
        longest: Longest sequence of the model in tokens.
        share: Share of the features of a head that rotate.
    """
    parameters = {"rope_type": "default", **(scaling or {}), "rope_theta": theta}
    if share != 1:
        parameters["partial_rotary_factor"] = share
    if parameters["rope_type"] == "dynamic":
        longest = parameters.pop(_OUTER)
    return dict(rope_parameters=parameters, max_position_embeddings=longest)
