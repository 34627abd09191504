"""Recipes: a TOML file a run, with the options of `TranslationRecipe`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from keras_transformer.training.recipe import TranslationRecipe

FOLDER = Path(__file__).parent


def names() -> list[str]:
    """The recipes that come with the project."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def read_recipe(recipe: str, changes: list[str] | None = None) -> TranslationRecipe:
    """Reads a recipe and changes some of its options.

    Args:
        recipe: a name of `names()`, or the path of a TOML file.
        changes: "option=value" or "model.option=value", the value in TOML's notation; a value
            that is not TOML is taken as text.

    Raises:
        ValueError: for an unknown recipe or option, or a file that is not TOML.
    """
    path = Path(recipe) if recipe.endswith(".toml") else FOLDER / f"{recipe}.toml"
    if not path.is_file():
        missing = ", which does not exist" if recipe.endswith(".toml") else ""
        accepted = f"one of {names()} or a .toml file"
        raise ValueError(f"recipe must be {accepted}, got {recipe!r}{missing}")
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except ValueError as error:  # of TOML or of UTF-8
        raise ValueError(f"{path} is not valid TOML: {error}") from error
    for change in changes or []:
        name, equals, text = change.partition("=")
        if not equals:
            raise ValueError(f"a change must read option=value, got {change!r}")
        table, _, field = name.rpartition(".")
        if table not in ("", "model"):
            raise ValueError(f"a change must be of an option or of model.option, got {change!r}")
        target = values.setdefault("model", {}) if table else values
        if isinstance(target, dict):  # what else it is, is refused below
            target[field] = _value(text)
    return TranslationRecipe.from_dict(values)


def _value(text: str) -> Any:
    if text == "none":
        return None  # TOML has no word for it
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
