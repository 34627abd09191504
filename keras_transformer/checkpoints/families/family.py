"""Building blocks of a family's map: rules from weight to weight, and fields of config files."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from keras_transformer.checkpoints.families.fields import ACTIVATIONS, Field, complete


@dataclass(frozen=True)
class Rule:
    """A weight of ours and what it is in a checkpoint.

    Args:
        ours: path of our weight.
        theirs: names in the checkpoint; several lie side by side in ours, along the last axis.
            None is a part that is not there: zeros of the width of the first.
        layout: "same", "transposed", "row" where theirs has one more axis, of size 1, in front, or
            "convolution", whose channels are first there and last here.
        shares: how the width is shared among several; (): equally.
    """

    ours: str
    theirs: tuple[str | None, ...]
    layout: str = "same"
    shares: tuple[int, ...] = ()

    @property
    def names(self) -> list[str]:
        """Those of `theirs` that are there."""
        return [name for name in self.theirs if name is not None]

    def take(
        self, read: Callable[[str], np.ndarray], shape: tuple[int, ...] | None = None
    ) -> np.ndarray:
        """Our weight, from tensors that `read` gives by their names.

        Args:
            read: gives them.
            shape: ours, which says what shape each of theirs must have; None: any.

        Raises:
            ValueError: if one has another shape; names it.
        """
        accepted = {}
        if shape is not None:  # of a stand-in that takes no memory
            accepted = self.give(np.broadcast_to(np.float32(0), shape))
        parts = {}
        for name in self.names:
            part = read(name)
            if accepted and part.shape != accepted[name].shape:
                expected = accepted[name].shape
                raise ValueError(f"{name} must have the shape {expected}, got {part.shape}")
            parts[name] = self._ours(part)
        first = parts[self.names[0]]
        parts = [np.zeros_like(first) if name is None else parts[name] for name in self.theirs]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)

    def give(self, value: np.ndarray) -> dict[str, np.ndarray]:
        """Their tensors by name, from our weight."""
        shares = np.cumsum(self.shares or [1] * len(self.theirs))
        ends = shares[:-1] * value.shape[-1] // shares[-1]
        parts = zip(self.theirs, np.split(value, ends, axis=-1), strict=True)
        return {name: self._theirs(part) for name, part in parts if name is not None}

    def _ours(self, x):
        if self.layout == "transposed":
            return x.T
        if self.layout == "convolution":
            return np.moveaxis(x, (0, 1), (-1, -2))
        return x[0] if self.layout == "row" else x

    def _theirs(self, x):
        if self.layout == "transposed":
            return x.T
        if self.layout == "convolution":
            return np.moveaxis(x, (-1, -2), (0, 1))
        return x[None] if self.layout == "row" else x


@dataclass(frozen=True)
class Family:
    """Reader and writer of one kind of checkpoint.

    Args:
        model: our class.
        config: their `config.json`, complete, and the names of their weights -> our config.
        rules: our config -> the rules of all weights.
        config_file: our config -> their `config.json`, without its `model_type`.
        aliases: their names of what another one may hold already, and those others.
        unused: ends of their names of what is no weight, such as tables of sinusoids, or is one
            that no model looks at.
        free: fields of our config that no weight and no result depends on.
        prefix: of the names, which checkpoints of the bare model lack.
        endings: pairs of another end that their names may have, and the one that rules know.
        fields: those of their `config.json` that `config` reads.
    """

    model: type
    config: Callable[[Mapping[str, Any], Iterable[str]], Any]
    rules: Callable[[Any], list[Rule]]
    config_file: Callable[[Any], dict[str, Any]]
    aliases: Mapping[str, tuple[str, ...]]
    unused: tuple[str, ...] = ()
    free: frozenset[str] = frozenset()
    prefix: str = ""
    endings: tuple[tuple[str, str], ...] = ()
    fields: Mapping[str, Field] = dataclasses.field(default_factory=dict)

    def read(self, theirs: Mapping[str, Any], names: Iterable[str]) -> Any:
        """Our config, of their `config.json` and the names of their weights.

        Raises:
            KeyError: if a field is missing that has no default; names it.
            ValueError: if a field holds what is not accepted.
        """
        return self.config(complete(theirs, self.fields), names)


# What a layer of ours is there.


def dense(
    ours: str,
    *theirs: str,
    bias: bool = True,
    layout: str = "transposed",
    shares: tuple[int, ...] = (),
) -> list[Rule]:
    """Return the rules of a dense layer, or of several that are fused."""
    weights = tuple(f"{name}.weight" for name in theirs)
    rules = [Rule(f"{ours}/kernel", weights, layout, shares)]
    if bias:
        biases = tuple(f"{name}.bias" for name in theirs)
        rules.append(Rule(f"{ours}/bias", biases, shares=shares))
    return rules


def norm(ours: str, theirs: str) -> list[Rule]:
    """Return the rules of a layer norm."""
    return [
        Rule(f"{ours}/gamma", (f"{theirs}.weight",)),
        Rule(f"{ours}/beta", (f"{theirs}.bias",)),
    ]


def scale(ours: str, theirs: str) -> list[Rule]:
    """Return the rules of an RMS norm."""
    return [Rule(f"{ours}/scale", (f"{theirs}.weight",))]


def table(ours: str, theirs: str) -> list[Rule]:
    """Return the rule of an embedding."""
    return [Rule(f"{ours}/embeddings", (f"{theirs}.weight",))]


# What a field of a config file is here, and back.


def their_activation(name: str) -> str:
    """Translate the name of an activation of ours to Hugging Face's."""
    return next(theirs for theirs, ours in ACTIVATIONS.items() if ours == name)


def one(theirs: Mapping[str, Any], *names: str) -> Any:
    """The one value that several fields have."""
    values = [theirs[name] for name in names]
    if len(set(values)) > 1:
        raise ValueError(f"{' and '.join(names)} must be equal, got {values}")
    return values[0]


def only(theirs: Mapping[str, Any], **accepted: Any) -> None:
    """Refuses a field that is there and says another thing than what we have."""
    for name, value in accepted.items():
        if theirs.get(name, value) != value:
            raise ValueError(f"{name} must be {value!r}, got {theirs[name]!r}")


def token_id(theirs: Mapping[str, Any], *names: str) -> int:
    """The token of the first of these fields that says one; of several that end, the first.

    Null says none, and so does a negative number, as LLaMA 1 has it for padding.
    """
    name = next((x for x in names if _says_one(theirs.get(x))), names[-1])
    first, *rest = token_ids(theirs, name)
    if rest and name != "eos_token_id":
        raise ValueError(f"{name} must be one token's number, got {theirs[name]!r}")
    return first


def _says_one(value):
    return value is not None and not (isinstance(value, int) and value < 0)


def token_ids(theirs: Mapping[str, Any], name: str) -> tuple[int, ...]:
    """The tokens of a field, which has one number or a list of them."""
    value, size = theirs.get(name), theirs.get("vocab_size")
    if value is None:
        raise KeyError(name)
    ids = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not ids or not all(isinstance(x, int) for x in ids):
        raise ValueError(f"{name} must be a token's number or a list of them, got {value!r}")
    # Here, where the field has the name that it has in the file; the size is checked by the model.
    if isinstance(size, int) and not all(0 <= x < size for x in ids):
        raise ValueError(f"{name} must be in [0, {size}), got {value!r}")
    return ids
