"""The fields of a `config.json`: their accepted values and defaults.

A family lists the fields that it reads. Defaults are those of `transformers` (5.23). Most sizes
that must match the weights have no default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from keras_transformer.config import is_number, require

ACTIVATIONS = {  # Hugging Face's name -> ours
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}
OF_SIDES = tuple(  # sizes of an encoder-decoder in BART's and Whisper's configs
    f"{side}_{name}"
    for side in ("encoder", "decoder")
    for name in ("layers", "attention_heads", "ffn_dim")
)
TOKENS = ("pad_token_id", "bos_token_id", "eos_token_id")
# Fields of special tokens of encoder-decoders.
PAIR_TOKENS = ("pad_token_id", "decoder_start_token_id", "eos_token_id")
TOKEN_NAMES = {"pad_id": TOKENS[0], "bos_id": TOKENS[1], "eos_id": TOKENS[2]}  # by our fields
PAIR_NAMES = TOKEN_NAMES | {"bos_id": PAIR_TOKENS[1]}
SIDE_SIZES = dict(  # our field -> Hugging Face's, with the same value
    d_model="d_model",
    d_ff="encoder_ffn_dim",
    decoder_d_ff="decoder_ffn_dim",
    num_heads="encoder_attention_heads",
    num_decoder_heads="decoder_attention_heads",
    num_encoder_layers="encoder_layers",
    num_decoder_layers="decoder_layers",
    dropout="dropout",
)
SIDE_NAMES = SIDE_SIZES | PAIR_NAMES | {"activation": "activation_function"}
SIDE_SYNONYMS = dict(
    num_attention_heads="encoder_attention_heads",
    hidden_size="d_model",
    num_hidden_layers="encoder_layers",
)
REQUIRED = object()
LAYERS: tuple[str, ...] = ("n_layer", "n_layers", "num_layers", "num_hidden_layers")
LAYERS += ("num_decoder_layers", "encoder_layers", "decoder_layers")
MOST_LAYERS = 1000  # a limit, because lists of layers are made before weights are read


@dataclass(frozen=True)
class Field:
    """The accepted values of one field.

    Args:
        accepted: Description of the accepted values, for error messages.
        fits: Function that returns whether a value is accepted.
        default: Value of an absent field. `REQUIRED`: the field must be present. None: null is
            accepted as well.
        null: Whether null is accepted although the default is not None.
    """

    accepted: str
    fits: Callable[[Any], bool]
    default: Any = REQUIRED
    null: bool = False

    def read(self, name: str, theirs: Mapping[str, Any]) -> Any:
        """Return the value of this field in a `config.json`.

        Raises:
            KeyError: If it is absent and has no default.
            ValueError: If its value is not accepted.
        """
        value = theirs[name] if self.default is REQUIRED else theirs.get(name, self.default)
        if value is None and (self.null or self.default is None):
            return None
        require(self.fits(value), name, value, self.accepted)
        return value


def complete(
    theirs: Mapping[str, Any],
    fields: Mapping[str, Field],
    synonyms: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return a `config.json` with these fields checked and defaults filled in.

    Args:
        theirs: Content of the file.
        fields: Fields to check.
        synonyms: Other names of these fields in `transformers`.

    Raises:
        KeyError: As in `Field.read`.
        ValueError: As in `Field.read`, or if two names of a field other than a number of layers
            have different values, or there are more than `MOST_LAYERS` layers.
    """
    for other, name in (synonyms or {}).items():
        if other in theirs and name not in theirs:
            theirs = {**theirs, name: theirs[other]}
        # Numbers of layers may differ: older files of distilled models have the teacher's number in
        # the synonym. The weights are checked later.
        elif other in theirs and theirs[other] != theirs[name] and name not in LAYERS:
            pair = [theirs[name], theirs[other]]
            raise ValueError(f"{name} and {other} must be equal, got {pair}")
    values = {name: field.read(name, theirs) for name, field in fields.items()}
    for name in LAYERS:
        if isinstance(values.get(name), int):
            require(values[name] <= MOST_LAYERS, name, values[name], f"at most {MOST_LAYERS}")
    return {**theirs, **values}


def read_same(theirs: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return fields of our config, copied from a `config.json`; `names` maps them to its fields."""
    return {ours: theirs[name] for ours, name in names.items()}


def write_same(config: Any, names: Mapping[str, str]) -> dict[str, Any]:
    """Return fields of a `config.json`, copied from our config; the inverse of `read_same`."""
    return {name: getattr(config, ours) for ours, name in names.items()}


def is_size(value: Any) -> bool:
    """Return whether `value` is an integer of at least 1."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def size(default: Any = REQUIRED, null: bool = False) -> Field:
    """Return a field for a size or a count."""
    return Field("a whole number of at least 1", is_size, default, null)


def rate(default: Any = REQUIRED) -> Field:
    """Return a field for a dropout rate."""
    return Field("a number in [0, 1)", lambda x: is_number(x) and 0 <= x < 1, default)


def count(default: Any = REQUIRED) -> Field:
    """Return a field for a number of things, which may be 0."""
    return Field("a whole number of at least 0", lambda x: type(x) is int and x >= 0, default)


def positive(default: Any = REQUIRED, null: bool = False) -> Field:
    """Return a field for a number above 0."""
    return Field("a number above 0", lambda x: is_number(x) and x > 0, default, null)


def flag(default: Any = REQUIRED) -> Field:
    """Return a field for true or false."""
    return Field("true or false", lambda x: isinstance(x, bool), default)


def mapping() -> Field:
    """Return a field for an object or null."""
    return Field("an object or null", lambda x: isinstance(x, Mapping), None)


def activation(default: Any = REQUIRED) -> Field:
    """Return a field for the name of an activation in `ACTIVATIONS`."""
    names = sorted(ACTIVATIONS)
    return Field(f"one of {names}", lambda x: x in names, default)


def token(default: Any) -> Field:
    """Return a field that accepts any value: `family.token_ids` checks that it is a token id."""
    return Field("a token id", lambda x: True, default, null=True)


def pair_tokens(pad: int, start: int | None, end: int) -> dict[str, Field]:
    """Return the fields `PAIR_TOKENS` with these defaults."""
    return {name: token(x) for name, x in zip(PAIR_TOKENS, (pad, start, end), strict=True)}


def exactly(value: Any, default: Any = REQUIRED, null: bool = False) -> Field:
    """Return a field with one accepted value, which is also the default unless one is given."""
    default = value if default is REQUIRED else default
    return Field(repr(value), lambda x: type(x) is type(value) and x == value, default, null)
