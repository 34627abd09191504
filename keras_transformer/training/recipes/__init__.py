"""Recipes: TOML files with the options of `TranslationRecipe`, one per run."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from keras_transformer.training.recipe import TranslationRecipe

FOLDER = Path(__file__).parent


def names() -> list[str]:
    """Return the names of the built-in recipes."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def read_recipe(recipe: str, changes: list[str] | None = None) -> TranslationRecipe:
    """Read a recipe and change some of its options.

    Args:
        recipe: Name of a built-in recipe, or path of a TOML file.
        changes: Changes "option=value" or "model.option=value", with values in TOML; other values
            are read as text.

    Raises:
        ValueError: If a recipe or an option is unknown, or a file is not TOML.
    """
    path = Path(recipe) if recipe.endswith(".toml") else FOLDER / f"{recipe}.toml"
    if not path.is_file():
        missing = ", which does not exist" if recipe.endswith(".toml") else ""
        accepted = f"one of {names()} or a .toml file"
        raise ValueError(f"recipe must be {accepted}, got {recipe!r}{missing}")
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except ValueError as error:  # the file is not TOML or not UTF-8
        raise ValueError(f"{path} is not valid TOML: {error}") from error
    for change in changes or []:
        name, equals, text = change.partition("=")
        if not equals:
            raise ValueError(f"a change must read option=value, got {change!r}")
        table, _, field = name.rpartition(".")
        if table not in ("", "model"):
            raise ValueError(f"a change must name an option or model.option, got {change!r}")
        target = values.setdefault("model", {}) if table else values
        if isinstance(target, dict):  # any other type raises an error below
            target[field] = _value(text)
    return TranslationRecipe.from_dict(values)


def _value(text: str) -> Any:
    if text == "none":
        return None  # TOML has no null
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
