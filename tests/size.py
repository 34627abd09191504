"""Print the size of the project: lines of code, files, words of documentation, the longest ones.

    python -m tests.size

A line of code is one that is not blank, a comment or a docstring.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
_SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def sources(*folders: str) -> Iterator[tuple[str, str]]:
    """Yield path below the repository and text of each Python file of some folders."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), path.read_text("utf-8")


def documented(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that can have a docstring."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    return (node for node in ast.walk(tree) if isinstance(node, kinds))


def code_lines(text: str) -> int:
    """Return the number of lines of code of a Python file."""
    docstrings: set[int] = set()
    for node in documented(ast.parse(text)):
        first = node.body[0] if node.body else None  # type: ignore[attr-defined]
        if first and ast.get_docstring(node, clean=False) is not None:  # type: ignore[arg-type]
            docstrings |= {*range(first.lineno, first.end_lineno + 1)}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _SILENT:
            lines |= {*range(token.start[0], token.end[0] + 1)}
    return len(lines - docstrings)


def bodies(text: str) -> Iterator[tuple[str, int]]:
    """Yield name and number of lines of the body of each function."""
    for node in documented(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            yield node.name, body[-1].end_lineno - body[0].lineno + 1 if body else 0


def shared_names() -> dict[str, list[str]]:
    """Return the folders of each file name that several folders of the package have."""
    found = defaultdict(list)
    for path, _ in sources("keras_transformer"):
        if not path.endswith("__.py"):
            folder, _, name = path.rpartition("/")
            found[name].append(folder)
    return {name: folders for name, folders in sorted(found.items()) if len(folders) > 1}


def main() -> None:
    """Print the figures."""
    rooms: dict[str, list[int]] = defaultdict(list)
    for path, text in sources("keras_transformer", "training"):
        parts = path.split("/")
        rooms["/".join(parts[:2]) if len(parts) > 2 else parts[0]].append(code_lines(text))
    for room, counts in sorted(rooms.items()):
        print(f"{room:32} {len(counts):4} files {sum(counts):7,} lines of code")
    files, lines = (sum(map(f, rooms.values())) for f in (len, sum))
    print(f"{'package and training/':32} {files:4} files {lines:7,} lines of code")
    words = sum(len(path.read_text("utf-8").split()) for path in (ROOT / "docs").rglob("*.md"))
    print(f"docs: {words:,} words")
    both = list(sources("keras_transformer", "training"))
    path, text = max(both, key=lambda x: len(x[1].splitlines()))
    print(f"longest file: {len(text.splitlines())} lines, {path}")
    size, name, path = max((n, name, path) for path, text in both for name, n in bodies(text))
    print(f"longest body: {size} lines, {name} in {path}")
    shared = shared_names()
    print(f"names that folders of the package share: {len(shared)}: {', '.join(shared)}")


if __name__ == "__main__":
    main()
