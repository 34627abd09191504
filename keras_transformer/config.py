"""Checks of values; the base class of configs; the configs of `Transformer` and `T5`."""

from __future__ import annotations

import dataclasses
import math
import numbers
import typing
from dataclasses import dataclass
from typing import Any, Self

from keras_transformer.names import advice, refuse_unknown

ACTIVATIONS = ("gelu", "gelu_tanh", "relu", "silu")
# Precisions that store weights in blocks, and the bits of a weight in a dense layer. Token tables
# and the output projections of language models always have 8.
BLOCKS = {"q4": 4, "q8": 8}
KERNELS = ("elu", "performer")  # kernels of linear attention
RECURRENCES = ("ssru",)  # sub-layers in place of a decoder's self-attention
SINUSOIDS = ("sinusoidal", "sinusoidal_halves", "sinusoidal_tensor2tensor")
SHOWN = 500  # maximum characters of a value in an error
POSITIONS = ("learned", "none", *SINUSOIDS)


def require(condition: object, name: str, value: object, accepted: str) -> None:
    """Raise ValueError with argument, value and what is accepted, unless the condition is true."""
    if not condition:
        shown = repr(value)
        shown = shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}..."
        raise ValueError(f"{name} must be {accepted}, got {shown}")


def require_whole(name: str, value: Any, least: int) -> None:
    """Raise ValueError unless the value is a whole number of at least `least`."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    require(whole and value >= least, name, value, f"a whole number of at least {least}")


def is_number(value: Any) -> bool:
    """Return whether the value is a finite number and not a bool."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


@dataclass(frozen=True)
class Config:
    """Base class of configs: validation, and conversion to and from plain values."""

    def __new__(cls, *values: Any, **named: Any) -> Self:
        refuse_unknown(cls.__name__, named, [field.name for field in dataclasses.fields(cls)])
        return super().__new__(cls)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, for JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Make a config from the values that `to_dict` returns; check them with `known`."""
        return cls(**known(cls, values, "config fields"))

    def _check_whole(self, *names: str, least: int = 1) -> None:
        for name in names:
            require_whole(name, getattr(self, name), least)

    def _check_rates(self, *others: str) -> None:
        values = self.to_dict()
        for name in ("dropout", *others):
            require(0 <= values[name] < 1, name, values[name], "in [0, 1)")
        require(values["epsilon"] > 0, "epsilon", values["epsilon"], "above 0")

    def _check_choice(self, name: str, choices: tuple[Any, ...]) -> None:
        require(getattr(self, name) in choices, name, getattr(self, name), f"one of {choices}")

    def _fill_d_ff(self) -> None:
        """Make `d_ff` four times the width unless it is given."""
        values = self.to_dict()
        if values["d_ff"] is None and isinstance(values["d_model"], int):
            object.__setattr__(self, "d_ff", 4 * values["d_model"])

    def _check_multiple(self, name: str, divisor: str) -> None:
        value, by = getattr(self, name), getattr(self, divisor)
        if value % by:
            raise ValueError(
                f"{name} must be divisible by {divisor}, got {name}={value} and {divisor}={by}"
            )

    def _check_decoder_sizes(self) -> None:
        """Check `decoder_d_ff`, `num_decoder_heads`; make them None if they equal the encoder's."""
        for name, other in {"decoder_d_ff": "d_ff", "num_decoder_heads": "num_heads"}.items():
            if getattr(self, name) is not None:
                self._check_whole(name)
            if getattr(self, name) == getattr(self, other):
                object.__setattr__(self, name, None)
        if self.to_dict()["num_decoder_heads"] is not None:
            self._check_multiple("d_model", "num_decoder_heads")

    @property
    def decoder_sizes(self) -> dict[str, int]:
        """`num_heads` and `d_ff` of the decoder."""
        values, names = self.to_dict(), {"num_heads": "num_decoder_heads", "d_ff": "decoder_d_ff"}
        return {name: values[decoder_name] or values[name] for name, decoder_name in names.items()}

    def _check_layers(self, name: str, number: str = "num_layers") -> None:
        """Check indices of blocks below the field `number`, and make them a sorted tuple."""
        count, value = getattr(self, number), getattr(self, name)
        is_list = isinstance(value, list | tuple)
        are_indices = is_list and all(type(i) is int and 0 <= i < count for i in value)
        require(are_indices, name, value, f"indices of blocks below {number}={count}")
        object.__setattr__(self, name, tuple(sorted({*value})))

    def _check_window_layers(self, window: str = "window", number: str = "num_layers") -> None:
        """Check `window_layers`; make it None if all blocks have the window."""
        name = f"{window}_layers"
        if getattr(self, name) is None:
            return
        require(getattr(self, window) is not None, window, None, f"given with {name}")
        self._check_layers(name, number)
        layers = getattr(self, name)
        require(len(layers) > 0, name, layers, "one or more blocks, or None")
        if len(layers) == getattr(self, number):
            object.__setattr__(self, name, None)

    def has_window(self, layer: int) -> bool:
        """Return whether `window_layers` names a block; if it is None, it names all blocks."""
        layers = getattr(self, "window_layers", None)
        return layers is None or layer in layers

    @property
    def eos_ids(self) -> tuple[int, ...]:
        """All ids that end a text: `eos_id` as a tuple, also if it is a single id."""
        eos_id = getattr(self, "eos_id")  # noqa: B009 - a field of subclasses
        return eos_id if isinstance(eos_id, tuple) else (eos_id,)

    def _check_ids(self, vocab_size: int, *names: str) -> None:
        """Check special ids against the vocabulary; make a list of EOS ids a tuple or an int."""
        eos_id = getattr(self, "eos_id", None)
        if "eos_id" in names and isinstance(eos_id, list | tuple):
            require(len(eos_id) > 0, "eos_id", eos_id, "one or more ids")
            # One id becomes an int, several a tuple: equal configs are saved and hashed alike.
            ends = tuple(dict.fromkeys(eos_id))
            object.__setattr__(self, "eos_id", ends if len(ends) > 1 else ends[0])
        for name in names:
            for value in self.eos_ids if name == "eos_id" else (getattr(self, name),):
                require(0 <= value < vocab_size, name, value, f"in [0, {vocab_size})")

    def _check_buckets(self: Any) -> None:
        self._check_whole("num_buckets", least=4)
        require(self.num_buckets % 2 == 0, "num_buckets", self.num_buckets, "even")
        self._check_whole("max_distance")
        least = self.num_buckets // 2 + 1
        accepted = f"at least {least} with num_buckets={self.num_buckets}"
        require(self.max_distance >= least, "max_distance", self.max_distance, accepted)


@dataclass(frozen=True)
class TransformerConfig(Config):
    """Config of an encoder-decoder Transformer (Vaswani et al. 2017, Table 3).

    Args:
        source_vocab_size: Number of source token ids.
        target_vocab_size: Number of target token ids.
        d_model: Width of the residual stream; a multiple of `num_heads`, and even for sinusoids.
        d_ff: Width inside the feed-forward sub-layers.
        num_encoder_layers: Number of encoder blocks.
        num_decoder_layers: Number of decoder blocks.
        num_heads: Number of attention heads; each is `d_model / num_heads` wide.
        decoder_d_ff: Width inside the feed-forward sub-layers of the decoder; None: `d_ff`.
        num_decoder_heads: Number of attention heads in the decoder; None: `num_heads`.
        dropout: Dropout rate in [0, 1) on sub-layer outputs and embeddings (section 5.4).
        layer_drop: Probability in [0, 1) that a block is skipped in a training step (LayerDrop, Fan
            et al. 2020).
        activation: Activation of the feed-forward sub-layers, one of `ACTIVATIONS`.
        norm_first: False is the paper's post-norm; True is pre-norm, with a final norm per stack.
        positions: Kind of positional encoding, one of `POSITIONS` (section 3.5).
        position_offset: Index of the first position; lower ones are not used.
        scale_embeddings: Whether embeddings are multiplied by sqrt(d_model) (section 3.4).
        norm_embeddings: Whether the input of each stack is layer-normalized.
        epsilon: Epsilon of the norms.
        output_bias: Whether the logits have a bias, which is not trained.
        guided_alignment: Weight of the loss that trains the first head of `Decoder.aligning` to
            align words (Garg et al. 2019), such as 0.05; 0: none.
        max_length: Longest sequence in tokens, on either side.
        share_embeddings: Whether source and target share one token embedding (needs one
            vocabulary) and, unless each side has its own norm, one table of learned positions.
        tie_output: Whether the target embedding is also the output projection (section 3.4).
        pad_id: Id of the padding token.
        bos_id: Id that the decoder's input begins with; may equal `pad_id` or an `eos_id`.
        eos_id: Id of the token that ends a text; a tuple if several tokens do.
        decoder_recurrence: "ssru" for a recurrence in place of the decoder's self-attention, see
            `SSRU`; None: self-attention.

    Raises:
        ValueError: If a value is out of range, or two values contradict each other.
    """

    source_vocab_size: int
    target_vocab_size: int
    d_model: int = 512
    d_ff: int = 2048
    num_encoder_layers: int = 6
    num_decoder_layers: int = 6
    num_heads: int = 8
    decoder_d_ff: int | None = None
    num_decoder_heads: int | None = None
    dropout: float = 0.1
    layer_drop: float = 0.0
    activation: str = "relu"
    norm_first: bool = False
    positions: str = "sinusoidal"
    position_offset: int = 0
    scale_embeddings: bool = True
    norm_embeddings: bool = False
    epsilon: float = 1e-6
    output_bias: bool = False
    guided_alignment: float = 0.0
    max_length: int = 1024
    share_embeddings: bool = True
    tie_output: bool = True
    pad_id: int = 0
    bos_id: int = 2
    eos_id: int | tuple[int, ...] = 3
    decoder_recurrence: str | None = None

    def __post_init__(self) -> None:
        self._check_whole("source_vocab_size", "target_vocab_size", "d_model", "d_ff", "num_heads")
        self._check_whole("num_encoder_layers", "num_decoder_layers", "max_length")
        self._check_whole("position_offset", least=0)
        self._check_multiple("d_model", "num_heads")
        self._check_decoder_sizes()
        self._check_rates("layer_drop")
        require(self.guided_alignment >= 0, "guided_alignment", self.guided_alignment, "at least 0")
        self._check_choice("decoder_recurrence", (None, *RECURRENCES))
        self._check_choice("activation", ACTIVATIONS)
        self._check_choice("positions", POSITIONS)
        if self.positions in SINUSOIDS:
            require(self.d_model % 2 == 0, "d_model", self.d_model, "even for sinusoidal positions")
        if self.share_embeddings and self.source_vocab_size != self.target_vocab_size:
            raise ValueError(
                "share_embeddings needs one vocabulary, got "
                f"source_vocab_size={self.source_vocab_size} and "
                f"target_vocab_size={self.target_vocab_size}; pass share_embeddings=False"
            )
        smallest = min(self.source_vocab_size, self.target_vocab_size)
        self._check_ids(smallest, "pad_id", "bos_id", "eos_id")
        if self.pad_id in self.eos_ids:
            raise ValueError(f"pad_id and eos_id must differ, both are {self.pad_id}")

    @classmethod
    def tiny(cls, vocab_size: int, **changes: Any) -> TransformerConfig:
        """Make a config of 4+4 layers, 128 wide: Transformer-Tiny of Wu et al. 2021 (Multi30k)."""
        sizes = dict(d_model=128, d_ff=256, num_heads=4, dropout=0.3)
        sizes |= dict(num_encoder_layers=4, num_decoder_layers=4)
        return cls(**_vocabulary(vocab_size) | sizes | changes)

    @classmethod
    def base(cls, vocab_size: int, **changes: Any) -> TransformerConfig:
        """Make a config of 6+6 layers, 512 wide: the paper's base model."""
        return cls(**_vocabulary(vocab_size) | changes)

    @classmethod
    def big(cls, vocab_size: int, **changes: Any) -> TransformerConfig:
        """Make a config of 6+6 layers, 1024 wide: the paper's big model."""
        sizes = dict(d_model=1024, d_ff=4096, num_heads=16, dropout=0.3)
        return cls(**_vocabulary(vocab_size) | sizes | changes)


def _vocabulary(size: int) -> dict[str, Any]:
    return dict(source_vocab_size=size, target_vocab_size=size)


@dataclass(frozen=True)
class T5Config(Config):
    """Config of a T5 (Raffel et al. 2020, sections 2.1 and 3.1; defaults: T5-small).

    Args:
        vocab_size: Number of token ids of source and target.
        d_model: Width of the residual stream.
        d_ff: Width inside the feed-forward sub-layers.
        num_encoder_layers: Number of encoder blocks.
        num_decoder_layers: Number of decoder blocks.
        num_heads: Number of attention heads per block.
        head_dim: Width of a head, independent of `d_model`.
        num_buckets: Number of distance buckets of the relative positions.
        max_distance: This distance and all longer ones share a bucket.
        positions_by_layer: Whether each block has its own table of relative positions, as in UMT5
            (Chung et al. 2023); false: all blocks of a stack share one.
        dropout: Dropout rate in [0, 1) on sub-layer outputs and embeddings.
        activation: Activation of the feed-forward, one of `ACTIVATIONS`.
        gated: Whether the feed-forward has a gate, as in v1.1.
        tie_output: Whether the token embedding is also the output projection; false in v1.1.
        scale_output: Whether the input of the output projection is divided by sqrt(d_model); false
            in v1.1.
        epsilon: Epsilon of the norms.
        max_length: Longest sequence in tokens to translate; the model does not depend on it.
        pad_id: Id of the padding token.
        bos_id: Id that the decoder's input begins with; in T5 it equals `pad_id`.
        eos_id: Id of the token that ends a text; a tuple if several tokens do.

    Raises:
        ValueError: If a value is out of range, or `pad_id` is an `eos_id`.
    """

    vocab_size: int
    d_model: int = 512
    d_ff: int = 2048
    num_encoder_layers: int = 6
    num_decoder_layers: int = 6
    num_heads: int = 8
    head_dim: int = 64
    num_buckets: int = 32
    max_distance: int = 128
    positions_by_layer: bool = False
    dropout: float = 0.1
    activation: str = "relu"
    gated: bool = False
    tie_output: bool = True
    scale_output: bool = True
    epsilon: float = 1e-6
    max_length: int = 512
    pad_id: int = 0
    bos_id: int = 0
    eos_id: int | tuple[int, ...] = 1

    def __post_init__(self) -> None:
        self._check_whole("vocab_size", "d_model", "d_ff", "num_heads", "head_dim", "max_length")
        self._check_whole("num_encoder_layers", "num_decoder_layers")
        self._check_buckets()
        self._check_rates()
        self._check_choice("activation", ACTIVATIONS)
        self._check_ids(self.vocab_size, "pad_id", "bos_id", "eos_id")
        if self.pad_id in self.eos_ids:
            raise ValueError(f"pad_id and eos_id must differ, both are {self.pad_id}")

    @property
    def source_vocab_size(self) -> int:
        """Number of source token ids: `vocab_size`."""
        return self.vocab_size

    @property
    def target_vocab_size(self) -> int:
        """Number of target token ids: `vocab_size`."""
        return self.vocab_size


def known(cls: type, values: dict[str, Any], what: str) -> dict[str, Any]:
    """Return the values, a dict by field name, if they fit a dataclass; errors call them `what`.

    Raises:
        ValueError: If `values` is not a dict, a name is unknown, a value has another type (see
            `check_types`), or a field without default is missing.
    """
    require(isinstance(values, dict), what, values, "a table of fields")
    check_names(cls, values, what)
    check_types(cls, values, "")
    for field in dataclasses.fields(cls):
        needed = field.default is field.default_factory is dataclasses.MISSING
        if needed and field.name not in values:
            raise ValueError(f"{what} must have {field.name}, got {sorted(values)}")
    return values


def check_types(cls: type, values: dict[str, Any], prefix: str) -> None:
    """Raise ValueError for a value that does not have the type of its dataclass field.

    Args:
        cls: The dataclass. Fields that are numbers, strings or booleans, or may also be None, and
            fields that are dicts are checked; others are not.
        values: Values by field name.
        prefix: Text put before the field names in the message.
    """
    hints = typing.get_type_hints(cls)
    for name, value in values.items():
        kinds = typing.get_args(hints[name]) or (hints[name],)
        if typing.get_origin(hints[name]) is dict:
            kinds = (dict,)
        if all(kind in _TYPES for kind in kinds):
            accepted = " or ".join(_TYPES[kind][0] for kind in kinds)
            has_type = any(_TYPES[kind][1](value) for kind in kinds)
            require(has_type, f"{prefix}{name}", value, accepted)


_TYPES = {
    int: ("a whole number", lambda x: isinstance(x, int) and not isinstance(x, bool)),
    float: ("a number", lambda x: isinstance(x, numbers.Real) and not isinstance(x, bool)),
    str: ("a string", lambda x: isinstance(x, str)),
    bool: ("true or false", lambda x: isinstance(x, bool)),
    dict: ("a table", lambda x: isinstance(x, dict)),
    type(None): ("none", lambda x: x is None),
}


def check_names(cls: type, values: dict[str, Any], what: str) -> None:
    """Raise ValueError for a name that is not a field of a dataclass."""
    known = {field.name for field in dataclasses.fields(cls)}
    if unknown := sorted(values.keys() - known, key=str):
        raise ValueError(f"unknown {what} {unknown}{advice(unknown, known)}")
