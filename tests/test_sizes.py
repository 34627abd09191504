"""The house stays readable: small files, small functions, a test file per module."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("keras_transformer", "training", "benchmarks", "tests", "docs")
LINES, BODY = 300, 60


def sources(*folders):
    """(path below the repository, text) of each Python file"""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), path.read_text("utf-8")


def test_no_file_is_long():
    long = {path: len(text.splitlines()) for path, text in sources(*FOLDERS)}
    long = {path: lines for path, lines in long.items() if lines >= LINES}
    assert not long, long


def test_no_function_is_long():
    long = {}
    for path, text in sources(*FOLDERS):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                lines = body[-1].end_lineno - body[0].lineno + 1 if body else 0
                if lines >= BODY:
                    long[f"{path}: {node.name}"] = lines
    assert not long, long


def test_every_module_has_its_tests():
    tests = {path.name for path in (ROOT / "tests").rglob("test_*.py")}
    missing = []
    for path, text in sources("keras_transformer"):
        module = Path(path)
        is_data = not any(
            isinstance(node, ast.FunctionDef | ast.ClassDef) for node in ast.walk(ast.parse(text))
        )
        if not module.name.startswith("__") and not is_data:
            folder = ROOT / "tests" / module.parent.relative_to("keras_transformer")
            mirror = folder / f"test_{module.name}"
            if not mirror.exists():
                missing.append(path + (" (elsewhere)" if mirror.name in tests else ""))
    assert not missing, missing


def test_few_docstrings_begin_with_a_riddle():
    first = []
    for _, text in sources("keras_transformer", "training", "benchmarks"):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                first += (ast.get_docstring(node) or "").split(maxsplit=1)[:1]
    odd = [word for word in first if word in ("What", "How", "As", "Of")]
    assert len(odd) < 0.03 * len(first), (len(odd), len(first))
