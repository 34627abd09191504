"""Windows by layer in a `config.json`: `layer_types` and `sliding_window`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from keras_transformer.hub.families.fields import Field

FULL, SLIDING = "full_attention", "sliding_attention"


def layer_types() -> Field:
    """Return the field for the kind of attention of each layer."""

    def are_kinds(value):
        return isinstance(value, list) and all(kind in (FULL, SLIDING) for kind in value)

    return Field(f"a list of {FULL!r} and {SLIDING!r}, or null", are_kinds, None)


def read_windows(
    theirs: Mapping[str, Any], usual: Sequence[bool], used: bool = True
) -> tuple[int | None, tuple[int, ...] | None]:
    """Return the window in tokens and the indices of the layers that have it.

    The indices are None if all layers have the window; both values are None if no layer has it.

    Args:
        theirs: Content of the `config.json`, with defaults filled in.
        usual: Whether each layer has the window if `layer_types` is null.
        used: Whether windows are used, as `use_sliding_window` says.

    Raises:
        ValueError: If `layer_types` does not have one entry per layer, or has windows although
            `sliding_window` is null or `used` is False.
    """
    count, types = theirs["num_hidden_layers"], theirs["layer_types"]
    window = theirs["sliding_window"] if used else None
    if types is not None and len(types) != count:
        raise ValueError(f"layer_types must have num_hidden_layers={count} entries, got {types}")
    if types is not None:
        usual = [kind == SLIDING for kind in types]
        if any(usual) and window is None:
            raise ValueError(f"layer_types must be {FULL!r} without a sliding_window, got {types}")
    layers = tuple(i for i in range(count) if usual[i])
    if window is None or not layers:
        return None, None
    return window, None if len(layers) == count else layers


def window_fields(config: Any) -> dict[str, Any]:
    """Return `sliding_window` and `layer_types`, which `read_windows` reads."""
    layers = range(config.num_layers)
    has_window = [config.window is not None and config.has_window(i) for i in layers]
    types = [SLIDING if has else FULL for has in has_window]
    return dict(sliding_window=config.window, layer_types=types)
