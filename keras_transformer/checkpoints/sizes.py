"""The sizes that a config may ask for, by those of the weights beside it."""

from __future__ import annotations

import math

from keras_transformer.config import Config, require

# Fields of our configs that are an axis of a weight, with `d_model` or more as the other one.
WIDTHS = (
    "d_ff", "decoder_d_ff", "d_embedding", "head_dim", "num_heads", "num_kv_heads",
    "num_decoder_heads", "vocab_size", "source_vocab_size", "target_vocab_size", "num_classes",
    "num_mels", "num_channels", "patch_size", "num_types", "convolution", "num_buckets",
)  # fmt: skip
# Fields of our configs that are the length of a table of `d_model` numbers or fewer, with the
# numbers that it may have in any case.
TABLES = {"max_length": 1 << 26, "max_frames": 1 << 26, "max_distance": 1 << 26}
LEAST = 1 << 20  # numbers in a weight that any config may have


def check_sizes(config: Config, count: int, size: int) -> None:
    """Refuse a config of a model much larger than its weights, before the model is made.

    Args:
        config: Config of a model.
        count: Number of tensors in the file of its weights.
        size: Bytes of that file.

    Raises:
        ValueError: If a size is too large; names it.
    """
    values = config.to_dict()
    values |= values.get("base", {})  # of a reward model, the model below the score
    sizes = {name: x for name, x in values.items() if type(x) is int}
    most, width = max(size, LEAST), sizes["d_model"]
    accepted = f"at most {math.isqrt(most)}: the weights take {size} bytes"
    require(width**2 <= most, "d_model", width, accepted)
    for name, value in sizes.items():
        if name.endswith("layers"):
            accepted = f"at most {max(count, 100)}: the weights are {count} tensors"
            require(value <= max(count, 100), name, value, accepted)
        elif name in TABLES and not hasattr(config, "theta"):  # rotary positions have no table
            accepted = f"at most {max(size, TABLES[name]) // width}"
            require(value * width <= max(size, TABLES[name]), name, value, accepted)
        elif name in WIDTHS:
            other = sizes.get("d_embedding", width) if "vocab" in name else width
            if name == "head_dim":
                other *= sizes.get("num_heads", 1)
            accepted = f"at most {most // other}: the weights take {size} bytes"
            require(value * other <= most, name, value, accepted)
    rows, columns = getattr(config, "patches", (0, 0))
    accepted = f"at most {most // width} in weights of {size} bytes"
    require(rows * columns * width <= most, "number of patches", rows * columns, accepted)
