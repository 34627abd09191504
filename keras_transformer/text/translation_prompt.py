"""Prompts that ask a language model for a translation: templates as data, in TOML files."""

from __future__ import annotations

import dataclasses
import functools
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keras_transformer.config import require
from keras_transformer.names import advice

FOLDER = Path(__file__).with_name("prompts")
FIELDS = ("source", "target", "source_code", "target_code", "text", "terms", "style", "context")
_FIELD = re.compile(r"\{(\w+)\}")
_TEMPLATES = ("template", "with_terms", "with_style", "with_context")
# Defaults that search as `generate` of `transformers` does by default: greedily.
SEARCH = dict(beam_size=1, length_penalty=1.0, scoring="transformers", forced_eos=False)
NAMES = tomllib.loads(Path(__file__).with_name("language_names.toml").read_text("utf-8"))


@dataclass(frozen=True)
class TranslationPrompt:
    """A prompt that asks a language model for a translation.

    A template is a text with fields: `{source}` and `{target}`, the names of the languages,
    `{source_code}` and `{target_code}`, their codes, `{text}`, the text to translate, `{terms}`,
    lines of terms and their translations, `{style}`, such as "formal", and `{context}`, the
    preceding sentences, one per line. A text with terms and a style gets `with_style`.

    Args:
        template: The template.
        with_terms: Template for a text with terms of a glossary; None: the prompt has no place for
            terms.
        term: A line of `{terms}`, with the fields `{term}` and `{form}`.
        with_style: Template for a text with a style; None: the prompt has no place for a style.
        with_context: Template for a text with its context; None: the prompt has no place for it.
        chat: Whether a template is the content of the user's message in the model's chat template;
            else it is the whole prompt, to which the tokenizer adds its special tokens (BOS).
        ends: Tokens that end a translation, besides those of the model and its chat template.
        stop: Texts that end a translation, unless the source contains them. Such a text and what
            follows it are cut off.
        names: Set of the languages' names, "english" or "chinese".
        languages: Further names of languages by code, which take precedence.
        variants: By language code, other values of fields, for pairs with this source or target.
        source_language, target_language: Codes of the default pair of languages.
        directions: Pairs of language codes that the model was trained on; empty: any pair.
        search: Default search options of the translator, which take precedence over `SEARCH`.
        published: Address at which the model's authors published the prompt.
        checkpoints: Regular expression of the names of checkpoints that were trained with it.

    Raises:
        ValueError: If a template has an unknown field or lacks a needed one, such as `{text}`, or
            another value is not accepted.
    """

    template: str
    with_terms: str | None = None
    term: str = "{term}: {form}"
    with_style: str | None = None
    with_context: str | None = None
    chat: bool = True
    ends: tuple[str, ...] = ()
    stop: tuple[str, ...] = ("\n",)
    names: str = "english"
    languages: Mapping[str, str] = field(default_factory=dict)
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    source_language: str | None = None
    target_language: str | None = None
    directions: Sequence[Sequence[str]] = ()
    search: Mapping[str, Any] = field(default_factory=dict)
    published: str | None = None
    checkpoints: str | None = None

    def __post_init__(self) -> None:
        require(self.names in NAMES, "names", self.names, f"one of {sorted(NAMES)}")
        require(isinstance(self.chat, bool), "chat", self.chat, "true or false")
        for name in ("languages", "variants", "search"):
            value = getattr(self, name)
            require(isinstance(value, Mapping), name, value, "a table")
        object.__setattr__(self, "search", {**SEARCH, **self.search})
        for name in ("ends", "stop"):
            value = getattr(self, name)
            is_list = isinstance(value, list | tuple) and all(isinstance(x, str) for x in value)
            require(is_list and all(value), name, value, "a list of texts")
            object.__setattr__(self, name, tuple(value))
        for name in ("source_language", "target_language"):
            value = getattr(self, name)
            require(value is None or isinstance(value, str), name, value, "a language code")
        are_pairs = isinstance(self.directions, list | tuple) and all(
            isinstance(x, list | tuple) and len(x) == 2 and all(isinstance(y, str) for y in x)
            for x in self.directions
        )
        require(are_pairs, "directions", self.directions, "pairs of language codes")
        for name in _TEMPLATES:
            template = getattr(self, name)
            if template is not None or name == "template":
                _check(name, template)
        for code in self.variants:
            self.variant(code, code)

    @classmethod
    def of(cls, values: Any, where: Any) -> TranslationPrompt:
        """Return the prompt with these values by field.

        Args:
            values: The values.
            where: Where they are from, for errors.

        Raises:
            ValueError: If a field is unknown or missing, or a value is not accepted.
        """
        known = [x.name for x in dataclasses.fields(cls)]
        require(isinstance(values, Mapping), str(where), values, "a table")
        if unknown := [x for x in values if x not in known]:
            raise ValueError(f"{unknown[0]} in {where} is unknown{advice(unknown, known)}")
        require("template" in values, str(where), sorted(values), "a table with a template")
        try:
            return cls(**values)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from error

    @classmethod
    def read(cls, prompt: str | os.PathLike) -> TranslationPrompt:
        """Return a built-in prompt, or that of a TOML file.

        Args:
            prompt: Name of a built-in prompt, or path of a file whose name ends with ".toml".

        Raises:
            ValueError: If there is no such prompt or file, or it is broken.
        """
        name = os.fspath(prompt)
        path = Path(name) if name.endswith(".toml") else FOLDER / f"{name}.toml"
        accepted = f"one of {builtin_prompts()} or a .toml file"
        require(path.is_file(), "prompt", name, accepted)
        try:
            values = tomllib.loads(path.read_text("utf-8"))
        except ValueError as error:
            raise ValueError(f"{path} is not TOML: {error}") from error
        return cls.of(values, path)

    def to_dict(self) -> dict[str, Any]:
        """Return the search options, and other values that are not the defaults, as plain values.

        `of` reads them.
        """
        plain = _defaults()
        values = {x.name: getattr(self, x.name) for x in dataclasses.fields(self)}
        values = {x: list(y) if isinstance(y, tuple) else y for x, y in values.items()}
        return {x: y for x, y in values.items() if y != plain.get(x)}

    def variant(self, source: str | None, target: str | None) -> TranslationPrompt:
        """Return the prompt for a pair of languages.

        It is the first of `variants` whose code is the source or the target, else this prompt.
        """
        code = next((x for x in self.variants if x in (source, target)), None)
        if code is None:
            return self
        values = self.to_dict() | {"variants": {}}
        return TranslationPrompt.of(values | dict(self.variants[code]), f"variants.{code}")

    @property
    def codes(self) -> tuple[str, ...]:
        """Codes of the languages in `directions`; if it is empty, of those with a known name."""
        if self.directions:
            return tuple(dict.fromkeys(code for pair in self.directions for code in pair))
        return tuple(dict.fromkeys([*self.languages, *NAMES[self.names]]))

    def fields_of(self, source: str | None, target: str | None) -> dict[str, str]:
        """Return the values of the fields that name the languages.

        Args:
            source, target: Codes of the languages; None: not chosen.

        Raises:
            ValueError: If a template needs a language that is not chosen.
        """
        templates = [x for name in _TEMPLATES if (x := getattr(self, name)) is not None]
        used = {x for template in templates for x in _FIELD.findall(template)}
        values: dict[str, str] = {}
        for side, code in (("source", source), ("target", target)):
            if code is not None:
                name = self.languages.get(code) or NAMES[self.names].get(code)
                values |= {side: name or NAMES["english"].get(code, code), f"{side}_code": code}
            elif used & {side, f"{side}_code"}:
                raise ValueError(
                    f"{side}_language must be chosen, such as 'de'; use Translator.between"
                )
        return values

    def lines(self, terms: Sequence[tuple[str, str]]) -> str:
        """Return the text of the field `{terms}`: a line for each term and its translation."""
        return "\n".join(filled(self.term, dict(term=x, form=y)) for x, y in terms)


def filled(template: str, values: Mapping[str, str]) -> str:
    """Return a template with the fields in `values` replaced; other fields are kept."""
    return _FIELD.sub(lambda match: values.get(match[1], match[0]), template)


def builtin_prompts() -> list[str]:
    """Return the names of the built-in prompts."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def guessed(name: str) -> TranslationPrompt | None:
    """Return the built-in prompt for a checkpoint of this name; None if there is none.

    Args:
        name: Name of the checkpoint, such as "Unbabel/TowerInstruct-7B-v0.2".
    """
    prompts = map(TranslationPrompt.read, builtin_prompts())
    return next((x for x in prompts if re.search(x.checkpoints or "$^", name, re.I)), None)


@functools.cache
def _defaults() -> dict[str, Any]:
    """Return the default of each field, except `template` and `search`."""
    plain = TranslationPrompt("{text}")
    values = {x.name: getattr(plain, x.name) for x in dataclasses.fields(plain)}
    del values["template"], values["search"]
    return {x: list(y) if isinstance(y, tuple) else y for x, y in values.items()}


def _check(name, template):
    """Raise ValueError unless a template is a text with known fields, the needed ones included."""
    require(isinstance(template, str), name, template, "a text")
    accepted = f"a text with the fields {', '.join(FIELDS)}"
    fields = _FIELD.findall(template)
    require(set(fields) <= {*FIELDS}, f"the fields of {name}", fields, accepted)
    needed = {"text", *([name.removeprefix("with_")] if name != "template" else [])}
    require(needed <= set(fields), f"the fields of {name}", fields, f"{sorted(needed)} among them")
