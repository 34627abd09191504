"""Building blocks of a family's map: rules that map weights, and fields of config files."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from keras_transformer.config import require
from keras_transformer.hub.families import general_fields
from keras_transformer.hub.families.fields import ACTIVATIONS, Field, complete
from keras_transformer.layers.head_groups import fuse, unfuse
from keras_transformer.models.configured import ConfiguredModel
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
            theirs plus one; "experts": the checkpoint has one tensor per expert, transposed, and
            ours stacks them.
        heads: Number of heads of each projection that our weight fuses (`layers.head_groups`). The
            checkpoint has one tensor per projection, or one in which all are concatenated. (): our
            weight is not fused.
        share: (number, count): ours is part `number`, from 0, of `count` equal parts of theirs
            along the first axis. The rules of the parts must be consecutive, in order.
        orders: For each of `theirs`, the index in it of each of our features; None: the order is
            the same. (): the order is the same in all of them.
    """

    ours: str
    theirs: tuple[str | None, ...]
    layout: str = "same"
    heads: tuple[int, ...] = ()
    share: tuple[int, int] = (0, 1)
    orders: Sequence[np.ndarray | None] = ()

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
            shape: Shape of our weight, for checks of the tensors' shapes. None: no check.

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
        for theirs, order in zip(self.theirs, self.orders, strict=False):
            if theirs is not None and order is not None:
                parts[theirs] = parts[theirs][..., order]
        first = parts[self.names[0]]
        arrays = [np.zeros_like(first) if name is None else parts[name] for name in self.theirs]
        if self.layout == "experts":
            return np.stack(arrays)
        if not self.heads:
            return arrays[0]
        if len(arrays) == 1:
            ends = np.cumsum(self.heads)[:-1] * first.shape[-1] // sum(self.heads)
            arrays = np.split(first, ends, axis=-1)
        return fuse(arrays, self.heads[-1])

    def give(self, value: np.ndarray) -> dict[str, np.ndarray]:
        """Return the checkpoint's tensors by name, made from our weight.

        With a `share`, the value is only this part of the tensor.
        """
        parts = unfuse(value, self.heads) if self.heads else [value]
        if self.layout == "experts":
            parts = list(value)
        if len(self.theirs) < len(parts):
            parts = [np.concatenate(parts, axis=-1)]
        for i, order in enumerate(self.orders):
            parts[i] = parts[i] if order is None else parts[i][..., np.argsort(order)]
        named = zip(self.theirs, parts, strict=True)
        return {name: self._theirs(part) for name, part in named if name is not None}

    def _ours(self, x):
        if self.layout in ("transposed", "experts"):
            return x.T
        if self.layout == "convolution":
            return np.moveaxis(x, (0, 1), (-1, -2))
        if self.layout == "plus_one":
            return x + 1
        return x[0] if self.layout == "row" else x

    def _theirs(self, x):
        if self.layout in ("transposed", "experts"):
            return x.T
        if self.layout == "convolution":
            return np.moveaxis(x, (-1, -2), (0, 1))
        if self.layout == "plus_one":
            return x - 1
        return x[None] if self.layout == "row" else x


@dataclass(frozen=True)
class Family:
    """A family of checkpoints: how they are read and written.

    Args:
        model: Our model class.
        config: Function from their `config.json`, with defaults filled in, and the names of their
            weights to our config.
        rules: Function from our config to the rules of all weights.
        config_file: Function from our config to their `config.json` without `model_type`.
        aliases: Maps the name of a tensor that may be a copy of another one to the possible names
            of that one.
        unused: Suffixes of names to ignore: tensors that are not weights, such as tables of
            sinusoids, or weights that our model does not use.
        heads: Names of the weights of all heads. Those of a head that the model does not have are
            left out, with a warning.
        free: Fields of our config that affect neither weights nor results.
        prefix: Prefix of the names; it is absent in checkpoints of the bare model.
        endings: Pairs of an alternative suffix of names and the one in the rules.
        part: Pairs of a prefix of names and the prefix in the rules, see `hub.tensors.Checkpoint`:
            names without one of these prefixes are ignored. (): all names are used as they are.
        fields: The fields of their `config.json` that are checked, with defaults.
        untied: Further tensors to write if the output is not tied: maps their names to the tensor
            that they repeat, if that is written.
        also_read: Other fields of their `config.json` that `config` reads and checks itself.
        harmless: Fields of their `config.json` that do not change the model, in addition to
            `general_fields.HARMLESS`.
        synonyms: Maps other names of `fields` in `transformers` (`attribute_map`) to these names.
        names: Maps fields of our config to the fields of `config.json` that they come from, for
            messages.
        architectures: Names of classes in `transformers` whose weights fit. (): not checked here.
    """

    model: type[ConfiguredModel]
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
            known = {name.lower() for name in self.architectures}  # older: LLaMAForCausalLM
            is_known = isinstance(names, list | tuple) and str(names[0]).lower() in known
            require(is_known, "architectures", names, f"one of {self.architectures}")
        return complete(theirs, self.fields, self.synonyms)

    def in_their_words(self, message: str) -> str:
        """Return an error message of our config with the field names of the `config.json`."""
        if not self.names:
            return message
        ours = "|".join(map(re.escape, self.names))
        return re.sub(rf"\b({ours})\b", lambda match: self.names[match[0]], message)

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
    orders: Sequence[np.ndarray | None] = (),
) -> list[Rule]:
    """Return the rules of a dense layer; with `heads`, of several layers that our model fuses."""
    weights = tuple(f"{name}.weight" for name in theirs)
    rules = [Rule(f"{ours}/kernel", weights, layout, heads, orders=orders)]
    if bias:
        biases = tuple(f"{name}.bias" for name in theirs)
        rules.append(Rule(f"{ours}/bias", biases, heads=heads, orders=orders))
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
    """Translate our name of an activation to Hugging Face's; others, such as "tanh", are equal."""
    return next((theirs for theirs, ours in ACTIVATIONS.items() if ours == name), name)


def only(theirs: Mapping[str, Any], **accepted: Any) -> None:
    """Raise ValueError if a field is present and has another value than the accepted one."""
    for name, value in accepted.items():
        stated = theirs.get(name, value)
        require(stated == value, name, stated, repr(value))


def token_id(theirs: Mapping[str, Any], *names: str) -> int:
    """Return the token id of the first of these fields that has one; of several EOS ids, the first.

    Null and negative numbers mean no token; LLaMA 1 has a negative one for padding.

    Raises:
        ValueError: If none of the fields has a token id, or one other than `eos_token_id` has
            several.
    """
    name = next((x for x in names if _names_token(theirs.get(x))), names[-1])
    first, *rest = token_ids(theirs, name)
    require(not rest or name == "eos_token_id", name, theirs[name], "one token id")
    return first


def _names_token(value):
    return value is not None and not (isinstance(value, int) and value < 0)


_NEEDED = dict(
    pad_token_id="a token that fills up shorter texts",
    decoder_start_token_id="a token with which the decoder's input begins",
    eos_token_id="a token that ends a text",
)


def token_ids(theirs: Mapping[str, Any], name: str) -> tuple[int, ...]:
    """Return the token ids of a field, which holds one or a list of them.

    Raises:
        ValueError: If it is missing or holds something else, or an id is negative or not below
            `vocab_size`.
    """
    value, size = theirs.get(name), theirs.get("vocab_size")
    if value is None:
        raise ValueError(
            f"{name} is null or missing, but the model needs {_NEEDED.get(name, 'this token')}; "
            f"set {name} to its id in the tokenizer"
        )
    ids = tuple(value) if isinstance(value, list | tuple) else (value,)
    are_ids = ids and all(isinstance(x, int) for x in ids)
    require(bool(are_ids), name, value, "a token id or a list of them")
    # Checked here so that the error has the file's name of the field.
    if isinstance(size, int):
        require(all(0 <= x < size for x in ids), name, value, f"in [0, {size}), below vocab_size")
    return ids
