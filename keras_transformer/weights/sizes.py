"""Limits on the sizes in a config, from the weights that are stored with it."""

from __future__ import annotations

import contextlib
import math
import typing
from collections.abc import Iterator

from keras_transformer.config import Config, require
from keras_transformer.layers.layer import skip_init

# Integer fields of configs that are not the size of an array. All other integer fields are bounded:
# each is taken as an axis of a weight whose other axis is at least `d_model`, except those that the
# code below treats in another way.
SIZELESS = ("window", "encoder_window", "global_tokens", "pad_id", "bos_id", "eos_id", "mask_id")
# Fields that are the length of a table with rows of at most `d_model`, which is not always stored.
TABLES = ("max_length", "max_frames", "max_distance", "position_offset")
LEAST = 1 << 20  # number of elements that a weight may always have
TABLE = 1 << 24  # elements of all tables that are not stored, such as sinusoids
# Elements that may be allocated per stored element: a file of a 4-bit model stores two weights as
# one element, and the model is first made with floats.
TIMES = 4
MOST_BLOCKS = 100  # layers that are allowed even with fewer tensors: they may share weights


@contextlib.contextmanager
def sized_by(config: Config, count: int, numbers: int) -> Iterator[None]:
    """Limit the size of a model that is made in the context; its weights are zeros.

    Args:
        config: Config of the model.
        count: Number of tensors in the file of its weights.
        numbers: Number of elements of these tensors.

    Raises:
        ValueError: If a size of the config is too large (before the model is made), or all weights
            and tables together are (before the array that exceeds the limit is allocated).
    """
    check_sizes(config, count, numbers)
    with skip_init(TIMES * numbers + TABLE):
        yield


def check_sizes(config: Config, count: int, numbers: int) -> None:
    """Check the sizes in a config against its stored weights, before the model is made.

    Args:
        config: Config of a model.
        count: Number of tensors in the file of its weights.
        numbers: Number of elements of these tensors.

    Raises:
        ValueError: If a size is too large; the message names it.
    """
    config = getattr(config, "base_config", config)  # a reward model has the sizes of its base
    sizes = _sizes(config)
    most, width = max(numbers, LEAST), sizes["d_model"]
    has_table = not hasattr(config, "theta")  # not with rotary positions

    def check(name, value, limit, held):
        require(value <= limit, name, value, f"at most {limit}: the weights are {held}")

    check("d_model", width, math.isqrt(most), f"{numbers} numbers")  # the other limits divide by it
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
    """Return the values of integer fields by name; not of float fields, such as `theta=10000`."""
    hints = typing.get_type_hints(type(config))
    whole = {name for name, hint in hints.items() if int in (hint, *typing.get_args(hint))}
    values = config.to_dict().items()
    return {x: value for x, value in values if x in whole - {*SIZELESS} and type(value) is int}


def _other_axis(name, sizes):
    """Return the minimum length of the other axis of a weight that has the size `name`."""
    width = sizes["d_model"]
    if "vocab" in name and "d_embedding" in sizes:
        return min(sizes["d_embedding"], width)
    return width * sizes.get("num_heads", 1) if name == "head_dim" else width
