"""The sizes that a config may ask for, by those of the weights beside it."""

from __future__ import annotations

import contextlib
import math
import typing
from collections.abc import Iterator

from keras_transformer.config import Config, require
from keras_transformer.layers.layer import skip_init

# Whole numbers of our configs that are the size of no array. All others are bounded: a new field
# is an axis of a weight with `d_model` or more as the other one, unless this file says otherwise.
SIZELESS = ("window", "global_tokens", "pad_id", "bos_id", "eos_id", "mask_id")
# Fields that are the length of a table of at most `d_model` wide rows, which may not be stored.
TABLES = ("max_length", "max_frames", "max_distance", "position_offset")
LEAST = 1 << 20  # numbers in a weight that any config may have
TABLE = 1 << 24  # numbers in all tables that are not stored, such as sinusoids
# A model that is quantized to 4 bits is made of floats first, and two of its numbers are stored as
# one.
TIMES = 4
MOST_BLOCKS = 100  # of a model with fewer tensors: blocks may be shared


@contextlib.contextmanager
def sized_by(config: Config, count: int, numbers: int) -> Iterator[None]:
    """Make a model in the context, with zeros as weights, if its weights are about that large.

    Args:
        config: Config of the model.
        count: Number of tensors in the file of its weights.
        numbers: Numbers in these tensors.

    Raises:
        ValueError: If a size of the config is too large, named before the model is made; or if
            all weights and tables together are, before the array that exceeds the room is made.
    """
    check_sizes(config, count, numbers)
    with skip_init(TIMES * numbers + TABLE):
        yield


def check_sizes(config: Config, count: int, numbers: int) -> None:
    """Refuse a config with a size that its weights do not have, before the model is made.

    Args:
        config: Config of a model.
        count: Number of tensors in the file of its weights.
        numbers: Numbers in these tensors.

    Raises:
        ValueError: If a size is too large; names it.
    """
    config = getattr(config, "base_config", config)  # of a reward model, the model below the score
    sizes = _sizes(config)
    most, width = max(numbers, LEAST), sizes["d_model"]
    has_table = not hasattr(config, "theta")  # rotary positions have none

    def check(name, value, limit, held):
        require(value <= limit, name, value, f"at most {limit}: the weights are {held}")

    check("d_model", width, math.isqrt(most), f"{numbers} numbers")  # it bounds the others
    for name, value in sizes.items():
        if name.endswith("layers"):
            check(name, value, max(count, MOST_BLOCKS), f"{count} tensors")
        elif name not in TABLES:
            check(name, value, most // _other_axis(name, sizes), f"{numbers} numbers")
        elif has_table:
            check(name, value, max(numbers, TABLE) // width, f"{numbers} numbers")
    rows, columns = getattr(config, "patches", (0, 0))
    accepted = f"of at most {most // width} patches: the weights are {numbers} numbers"
    size = getattr(config, "image_size", None)
    require(rows * columns * width <= most, "image_size", size, accepted)


def _sizes(config):
    """Return the fields that are declared as whole numbers, by name: 1000000 may be a `theta`."""
    hints = typing.get_type_hints(type(config))
    whole = {name for name, hint in hints.items() if int in (hint, *typing.get_args(hint))}
    values = config.to_dict().items()
    return {x: value for x, value in values if x in whole - {*SIZELESS} and type(value) is int}


def _other_axis(name, sizes):
    """Return the least length of the other axis of a weight that has a field as one axis."""
    width = sizes["d_model"]
    if "vocab" in name and "d_embedding" in sizes:
        return min(sizes["d_embedding"], width)
    return width * sizes.get("num_heads", 1) if name == "head_dim" else width
