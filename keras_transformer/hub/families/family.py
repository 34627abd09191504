"""Building blocks of a family's map: rules that map weights, and fields of config files."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from keras_transformer.config import require
from keras_transformer.hub.families import general_fields
from keras_transformer.hub.families.fields import ACTIVATIONS, Field, complete
from keras_transformer.layers.head_groups import fuse, unfuse
from keras_transformer.system.foreign_fields import FieldTable


@dataclass(frozen=True)
class Rule:
    """One of our weights and its counterpart in a checkpoint.

    Args:
        ours: Path of our weight.
        theirs: Names in the checkpoint. None is a missing part: zeros of the shape of the first
            one present.
        layout: "same"; "transposed"; "row": theirs has an additional first axis of size 1;
            "convolution": channels are first in theirs and last in ours; "plus_one": ours is
            theirs plus one.
        heads: Number of heads of each projection that ours fuses (`layers.head_groups`); theirs
            are one tensor a projection, or all side by side in one. (): ours is not fused.
        share: Ours is the part of this number, of so many equal parts along the first axis of
            theirs. The rules of the parts follow each other.
    """

    ours: str
    theirs: tuple[str | None, ...]
    layout: str = "same"
    heads: tuple[int, ...] = ()
    share: tuple[int, int] = (0, 1)

    @property
    def names(self) -> list[str]:
        """The names in `theirs`, without missing parts."""
        return [name for name in self.theirs if name is not None]

    def take(
        self, read: Callable[[str], np.ndarray], shape: tuple[int, ...] | None = None
    ) -> np.ndarray:
        """Return our weight, made from the tensors of a checkpoint.

        Args:
            read: Function that returns a tensor by name.
            shape: Shape of our weight, to check those of the tensors against. None: no check.

        Raises:
            ValueError: If a tensor has another shape; names it.
        """
        accepted = {}
        if shape is not None:  # shapes, from a placeholder that takes no memory
            accepted = self.give(np.broadcast_to(np.float32(0), shape))
        parts = {}
        for name in self.names:
            part, (number, count) = read(name), self.share
            if accepted:
                rows, *rest = accepted[name].shape
                expected = (rows * count, *rest)
                if part.shape != expected:
                    raise ValueError(f"{name} must have the shape {expected}, got {part.shape}")
            part = np.split(part, count)[number] if count > 1 else part
            parts[name] = self._ours(part)
        first = parts[self.names[0]]
        parts = [np.zeros_like(first) if name is None else parts[name] for name in self.theirs]
        if not self.heads:
            return parts[0]
        if len(parts) == 1:
            ends = np.cumsum(self.heads)[:-1] * first.shape[-1] // sum(self.heads)
            parts = np.split(first, ends, axis=-1)
        return fuse(parts, self.heads[-1])

    def give(self, value: np.ndarray) -> dict[str, np.ndarray]:
        """Return the checkpoint's tensors by name, made from our weight."""
        parts = unfuse(value, self.heads) if self.heads else [value]
        if len(self.theirs) < len(parts):
            parts = [np.concatenate(parts, axis=-1)]
        named = zip(self.theirs, parts, strict=True)
        return {name: self._theirs(part) for name, part in named if name is not None}

    def _ours(self, x):
        if self.layout == "transposed":
            return x.T
        if self.layout == "convolution":
            return np.moveaxis(x, (0, 1), (-1, -2))
        if self.layout == "plus_one":
            return x + 1
        return x[0] if self.layout == "row" else x

    def _theirs(self, x):
        if self.layout == "transposed":
            return x.T
        if self.layout == "convolution":
            return np.moveaxis(x, (-1, -2), (0, 1))
        if self.layout == "plus_one":
            return x - 1
        return x[None] if self.layout == "row" else x


@dataclass(frozen=True)
class Family:
    """Reader and writer of one kind of checkpoint.

    Args:
        model: Our class.
        config: Function of their complete `config.json` and the names of their weights that
            returns our config.
        rules: Function of our config that returns the rules of all weights.
        config_file: Function of our config that returns their `config.json` without `model_type`.
        aliases: Names of their tensors that may repeat another tensor, each with the names of
            those others.
        unused: Suffixes of names to ignore: tensors that are not weights, such as tables of
            sinusoids, or weights that no model uses.
        heads: Names of the weights of all heads. Those of a head that the model does not have are
            left out, with a warning.
        free: Fields of our config that affect neither weights nor results.
        prefix: Prefix of the names, which checkpoints of the bare model lack.
        endings: Pairs of an alternative suffix of names and the one in the rules.
        part: Pairs of a prefix of names and the one in the rules, if the model is a part of theirs:
            the first that fits counts, and other names are ignored. (): it is the whole.
        fields: The fields of their `config.json` that are checked, with defaults.
        untied: Names that are written, too, if the output is not tied, each with the one that it
            repeats if that is written.
        also_read: Other fields of their `config.json` that `config` reads and checks itself.
        harmless: Fields of their `config.json` that do not change the model, in addition to
            `general_fields.HARMLESS`.
        synonyms: Other names of `fields` in `transformers` (`attribute_map`).
        names: Fields of our config and the fields of theirs that they come from, for messages.
        architectures: Names of classes in `transformers` whose weights fit. (): any.
    """

    model: type
    config: Callable[[Mapping[str, Any], Iterable[str]], Any]
    rules: Callable[[Any], list[Rule]]
    config_file: Callable[[Any], dict[str, Any]]
    aliases: Mapping[str, tuple[str, ...]]
    unused: tuple[str, ...] = ()
    heads: tuple[str, ...] = ()
    free: frozenset[str] = frozenset()
    prefix: str = ""
    endings: tuple[tuple[str, str], ...] = ()
    part: tuple[tuple[str, str], ...] = ()
    fields: Mapping[str, Field] = dataclasses.field(default_factory=dict)
    untied: Mapping[str, str] = dataclasses.field(default_factory=dict)
    also_read: tuple[str, ...] = ()
    harmless: tuple[str, ...] = ()
    synonyms: Mapping[str, str] = dataclasses.field(default_factory=dict)
    names: Mapping[str, str] = dataclasses.field(default_factory=dict)
    architectures: tuple[str, ...] = ()

    @property
    def table(self) -> FieldTable:
        """The table of the fields of a `config.json`; `complete` checks their values."""
        read = {*self.fields, *self.also_read, *self.synonyms}
        return FieldTable(read, {*self.harmless, *general_fields.KNOWN} - read)

    def complete(self, theirs: Mapping[str, Any]) -> dict[str, Any]:
        """Return their `config.json` with values checked and defaults filled in.

        Raises:
            KeyError: If a field without a default is missing; names it.
            ValueError: If a field has a value that is not accepted.
        """
        complete(theirs, general_fields.FIELDS)
        if self.architectures and "architectures" not in self.fields:
            names = theirs.get("architectures") or self.architectures[:1]
            known = {name.lower() for name in self.architectures}  # LLaMA's was LLaMAForCausalLM
            is_known = isinstance(names, list | tuple) and str(names[0]).lower() in known
            require(is_known, "architectures", names, f"one of {self.architectures}")
        return complete(theirs, self.fields, self.synonyms)

    def in_their_words(self, message: str) -> str:
        """Return the message of an error of our config with the names of their fields."""
        if not self.names:
            return message
        ours = "|".join(map(re.escape, self.names))
        return re.sub(rf"\b({ours})\b", lambda found: self.names[found[0]], message)

    def read(self, theirs: Mapping[str, Any], names: Iterable[str]) -> Any:
        """Return our config, made from their `config.json` and the names of their weights.

        Raises:
            KeyError: If a field without a default is missing; names it.
            ValueError: If a field has a value that is not accepted.
        """
        return self.config(self.complete(theirs), names)


# Rules of layers.


def dense(
    ours: str,
    *theirs: str,
    bias: bool = True,
    layout: str = "transposed",
    heads: tuple[int, ...] = (),
) -> list[Rule]:
    """Return the rules of a dense layer, or of several with these heads that ours fuses."""
    weights = tuple(f"{name}.weight" for name in theirs)
    rules = [Rule(f"{ours}/kernel", weights, layout, heads)]
    if bias:
        biases = tuple(f"{name}.bias" for name in theirs)
        rules.append(Rule(f"{ours}/bias", biases, heads=heads))
    return rules


def norm(ours: str, theirs: str) -> list[Rule]:
    """Return the rules of a layer norm."""
    return [
        Rule(f"{ours}/gamma", (f"{theirs}.weight",)),
        Rule(f"{ours}/beta", (f"{theirs}.bias",)),
    ]


def scale(ours: str, theirs: str, layout: str = "same") -> list[Rule]:
    """Return the rules of an RMS norm."""
    return [Rule(f"{ours}/scale", (f"{theirs}.weight",), layout)]


def table(ours: str, theirs: str) -> list[Rule]:
    """Return the rule of an embedding."""
    return [Rule(f"{ours}/embeddings", (f"{theirs}.weight",))]


# Fields of config files.


def their_activation(name: str) -> str:
    """Translate our name of an activation to Hugging Face's; other names, as "tanh", are equal."""
    return next((theirs for theirs, ours in ACTIVATIONS.items() if ours == name), name)


def only(theirs: Mapping[str, Any], **accepted: Any) -> None:
    """Raise ValueError if a field is present and has another value than the accepted one."""
    for name, value in accepted.items():
        if theirs.get(name, value) != value:
            raise ValueError(f"{name} must be {value!r}, got {theirs[name]!r}")


def token_id(theirs: Mapping[str, Any], *names: str) -> int:
    """Return the token id of the first of these fields that has one; of several EOS ids, the first.

    Null and negative numbers mean no token; LLaMA 1 has a negative one for padding.
    """
    name = next((x for x in names if _says_one(theirs.get(x))), names[-1])
    first, *rest = token_ids(theirs, name)
    require(not rest or name == "eos_token_id", name, theirs[name], "one token id")
    return first


def _says_one(value):
    return value is not None and not (isinstance(value, int) and value < 0)


_NEEDED = dict(
    pad_token_id="a token that fills up shorter texts",
    decoder_start_token_id="a token with which the decoder's input begins",
    eos_token_id="a token that ends a text",
)


def token_ids(theirs: Mapping[str, Any], name: str) -> tuple[int, ...]:
    """Return the token ids of a field, which holds one or a list of them."""
    value, size = theirs.get(name), theirs.get("vocab_size")
    if value is None:
        raise ValueError(
            f"{name} is null or missing, but the model needs {_NEEDED.get(name, 'this token')}; "
            f"set {name} to its id in the tokenizer"
        )
    ids = tuple(value) if isinstance(value, list | tuple) else (value,)
    fits = ids and all(isinstance(x, int) for x in ids)
    require(bool(fits), name, value, "a token id or a list of them")
    # Checked here to name the field as the file does. The size itself is checked elsewhere.
    if isinstance(size, int):
        require(all(0 <= x < size for x in ids), name, value, f"in [0, {size}), below vocab_size")
    return ids
