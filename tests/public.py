"""List the names that users rely on: of Python, of commands and options, of routes and fields.

    python -m tests.public > tests/public.json

writes the list that `test_public.py` holds a later version against.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import sys
from pathlib import Path
from typing import Any

import typer

ROOT = Path(__file__).parents[1]


def names_of_python() -> dict[str, list[str]]:
    """The parameters of each documented function and class by its path, and those of methods."""
    paths = ["keras_transformer"]
    for page in sorted((ROOT / "docs" / "reference").glob("*.md")):
        paths += re.findall(r"^::: (\S+)", page.read_text("utf-8"), re.MULTILINE)
    found: dict[str, list[str]] = {}
    for path in paths:
        owner = _at(path)
        if not inspect.ismodule(owner):
            found |= _described(path, owner)
            continue
        names = getattr(owner, "__all__", None) or [
            name
            for name, value in vars(owner).items()
            if not name.startswith("_") and getattr(value, "__module__", None) == path
        ]
        for name in names:
            found |= _described(f"{path}.{name}", getattr(owner, name))
    return dict(sorted(found.items()))


def _at(path):
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError:
        owner, _, name = path.rpartition(".")
        return getattr(_at(owner), name)


def _described(path, value):
    if not callable(value):
        return {path: []}
    found = {path: _parameters(value)}
    if inspect.isclass(value) and value.__module__.startswith("keras_transformer"):
        for name, member in inspect.getmembers(value):
            is_ours = str(getattr(member, "__module__", "")).startswith("keras_transformer")
            if is_ours and callable(member) and not name.startswith("_"):
                found[f"{path}.{name}"] = _parameters(member)
    return found


def _parameters(value):
    try:
        return [x for x in inspect.signature(value).parameters if x != "self"]
    except (TypeError, ValueError):
        return []


def commands() -> dict[str, list[str]]:
    """The options and arguments of each command."""
    from keras_transformer.cli import app

    found: dict[str, list[str]] = {}

    def visit(command, path):
        told = [x for one in command.params for x in (*one.opts, *one.secondary_opts)]
        found[" ".join(path)] = sorted(told)
        for name, inner in getattr(command, "commands", {}).items():
            visit(inner, (*path, name))

    visit(typer.main.get_command(app), ("keras-transformer",))
    return found


def routes() -> dict[str, Any]:
    """The paths and methods of the server with the fields of requests and answers."""
    from keras_transformer.serving import Catalogue, create_app

    told = create_app(lambda: Catalogue({})).openapi()
    found: dict[str, Any] = {
        f"{method.upper()} {path}": sorted(x["name"] for x in operation.get("parameters", []))
        for path, methods in told["paths"].items()
        for method, operation in methods.items()
    }
    for name, schema in told["components"]["schemas"].items():
        found[f"schema {name}"] = sorted(schema.get("properties", []))
    return dict(sorted(found.items()))


def settings() -> list[str]:
    """The environment variables of the project."""
    told = set()
    for path in (ROOT / "keras_transformer").rglob("*.py"):
        told |= set(re.findall(r"\bKERAS_TRANSFORMER_[A-Z_]+\b", path.read_text("utf-8")))
    return sorted(told)


def public() -> dict[str, Any]:
    """All of it."""
    return {
        "python": names_of_python(),
        "commands": commands(),
        "routes": routes(),
        "environment": settings(),
    }


if __name__ == "__main__":
    json.dump(public(), sys.stdout, indent=1)
    print()
