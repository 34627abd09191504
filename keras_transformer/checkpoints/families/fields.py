"""The fields of a `config.json`: what each may hold, and what an absent one means.

A family lists those that it reads. Defaults are those of `transformers` (5.23); sizes that the
weights must agree with anyway have none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from keras_transformer.config import is_number, require

ACTIVATIONS = {  # theirs -> ours
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}
OF_SIDES = tuple(  # sizes of an encoder-decoder, as BART's and Whisper's configs have them
    f"{side}_{name}"
    for side in ("encoder", "decoder")
    for name in ("layers", "attention_heads", "ffn_dim")
)
# Numbers of heads, which no shape of a weight shows, and other names that `transformers` takes.
HEADS = ("encoder_attention_heads", "n_head", "num_heads")
HEADS_TOO = ("num_attention_heads", "num_key_value_heads")
REQUIRED = object()


@dataclass(frozen=True)
class Field:
    """The values that one field may hold.

    Args:
        accepted: the same in words.
        fits: whether a value is accepted.
        default: what an absent field means; `REQUIRED`: it must not be absent. With a default of
            None a null is accepted, too.
        null: whether a null is accepted where the default is another.
    """

    accepted: str
    fits: Callable[[Any], bool]
    default: Any = REQUIRED
    null: bool = False

    def read(self, name: str, theirs: Mapping[str, Any]) -> Any:
        """The value of this field in a `config.json`.

        Raises:
            KeyError: if it is absent and has no default.
            ValueError: if it holds what is not accepted.
        """
        value = theirs[name] if self.default is REQUIRED else theirs.get(name, self.default)
        if value is None and (self.null or self.default is None):
            return None
        require(self.fits(value), name, value, self.accepted)
        return value


def complete(theirs: Mapping[str, Any], fields: Mapping[str, Field]) -> dict[str, Any]:
    """A `config.json` with all of these fields, checked.

    Raises:
        KeyError, ValueError: as of `Field.read`, or if two fields give two numbers of heads.
    """
    found = {name: field.read(name, theirs) for name, field in fields.items()}
    for name in HEADS:
        for other in HEADS_TOO:
            if name in found and theirs.get(other, found[name]) != found[name]:
                both = [found[name], theirs[other]]
                raise ValueError(f"{name} and {other} must be equal, got {both}")
    return {**theirs, **found}


def is_size(value: Any) -> bool:
    """Whether it is a whole number of at least 1."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def size(default: Any = REQUIRED, null: bool = False) -> Field:
    """A number of things."""
    return Field("a whole number of at least 1", is_size, default, null)


def rate(default: Any = REQUIRED) -> Field:
    """A share of numbers that are dropped."""
    return Field("a number in [0, 1)", lambda x: is_number(x) and 0 <= x < 1, default)


def positive(default: Any = REQUIRED) -> Field:
    """A number above 0."""
    return Field("a number above 0", lambda x: is_number(x) and x > 0, default)


def flag(default: Any = REQUIRED) -> Field:
    """True or false."""
    return Field("true or false", lambda x: isinstance(x, bool), default)


def mapping() -> Field:
    """Fields of fields."""
    return Field("an object or null", lambda x: isinstance(x, Mapping), None)


def activation(default: Any = REQUIRED) -> Field:
    """The name of an activation, for `ACTIVATIONS`."""
    names = sorted(ACTIVATIONS)
    return Field(f"one of {names}", lambda x: x in names, default)


def token(default: Any) -> Field:
    """The number of a token, which `base.token_id` looks at."""
    return Field("a token's number", lambda x: True, default, null=True)


def exactly(value: Any, default: Any = REQUIRED) -> Field:
    """A field with one accepted value; if absent it means that value, or another default."""
    default = value if default is REQUIRED else default
    return Field(repr(value), lambda x: type(x) is type(value) and x == value, default)
