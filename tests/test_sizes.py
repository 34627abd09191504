"""The house stays readable: small files, small functions, a test file per module."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.backends import WITH_BACKEND, WITHOUT_BACKEND, runs_once
from tests.size import ROOT, bodies, code_lines, documented, shared_names, sources

FOLDERS = ("keras_transformer", "training", "benchmarks", "tests", "docs")
LINES, BODY = 400, 60


def test_no_file_is_long():
    long = {path: len(text.splitlines()) for path, text in sources(*FOLDERS)}
    long = {path: lines for path, lines in long.items() if lines >= LINES}
    assert not long, long


def test_no_function_is_long():
    long = {
        f"{path}: {name}": lines
        for path, text in sources(*FOLDERS)
        for name, lines in bodies(text)
        if lines > BODY
    }
    assert not long, long


def test_what_counts_as_code():
    function = 'def f():\n    """Doc\n\n    more."""\n    # why\n    return """a\nb"""\n'
    text = f'"""Doc."""\n\nx = 1  # one\n\n\n{function}'
    assert code_lines(text) == 4
    assert list(bodies(text)) == [("f", 2)]


def test_a_file_name_has_one_meaning():
    # Each backend has the same functions, in files of the same names.
    names = {
        name: folders
        for name, folders in shared_names().items()
        if not all(folder.startswith("keras_transformer/backend") for folder in folders)
    }
    assert not names, names


def test_files_of_tests_that_run_once_exist():
    named = (*WITHOUT_BACKEND, *WITH_BACKEND)
    assert [name for name in named if not (ROOT / "tests" / name).exists()] == []


def test_no_test_of_another_backend_is_left_to_pytorch():
    skipped = re.compile(r"""(BACKEND|backend\(\)) != ["'](jax|tensorflow)["']|skipif\(IS_EAGER""")
    tests = ROOT / "tests"
    paths = [path for path in tests.rglob("test_*.py") if runs_once(path.relative_to(tests))]
    assert [path for path in paths if skipped.search(path.read_text("utf-8"))] == []


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
        for node in documented(ast.parse(text)):
            first += (ast.get_docstring(node) or "").split(maxsplit=1)[:1]
    odd = [word for word in first if word in ("What", "How", "As", "Of")]
    assert len(odd) < 0.03 * len(first), (len(odd), len(first))
