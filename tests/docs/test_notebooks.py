"""The notebooks of the lessons and of the quick start: the pages' blocks, and cells that run."""

from __future__ import annotations

import os
import re
import runpy
import sys
from pathlib import Path

import keras
import nbclient
import nbconvert
import nbformat
import pytest

from .test_blocks import ROOT, blocks

HOOKS = runpy.run_path(str(ROOT / "docs/hooks.py"))
PAGES = [
    x.relative_to(ROOT / "docs").as_posix()
    for x in sorted((ROOT / "docs").rglob("*.md"))
    if HOOKS["NOTEBOOKS"].fullmatch(x.relative_to(ROOT / "docs").as_posix())
]
BACKEND = 'os.environ["KERAS_BACKEND"] = '


@pytest.fixture(scope="module")
def notebooks():
    """Return the notebooks by page."""
    return {page: nbformat.reads(HOOKS["notebook"](page), as_version=4) for page in PAGES}


def code_of(book):
    return [cell.source for cell in book.cells if cell.cell_type == "code"]


@pytest.mark.once("text")
def test_which_pages_are_notebooks():
    assert len(PAGES) == 8 and PAGES[-1] == "quick-start.md"


@pytest.mark.once("text")
@pytest.mark.parametrize("page", PAGES)
def test_cells_are_the_blocks_of_the_page(page, notebooks):
    """Which run as blocks of the page (`test_blocks.py`); those that install are text."""
    nbformat.validate(notebooks[page])
    install, backend, *cells = code_of(notebooks[page])
    comment, line = install.splitlines()
    (name,) = re.findall(r'^%pip install "\.\[(\w+)', line)
    assert comment.startswith("#") and backend.splitlines()[2].startswith(f'{BACKEND}"{name}"')
    code = [x for x in blocks(f"docs/{page}") if x[0] in ("bash", "python")]
    code = [x for x in code if not x[1].startswith("pip ")]
    assert cells == [("%%bash\n" if x[0] == "bash" else "") + x[1] for x in code]


@pytest.mark.once("text")
def test_the_quick_start_installs_as_the_readme_does(notebooks):
    line = code_of(notebooks["quick-start.md"])[0].splitlines()[1]
    (readme,) = re.findall(r"^pip install .*?\"(?=\s)", (ROOT / "README.md").read_text(), re.M)
    assert line.startswith(f"%{readme}")


@pytest.mark.once("text")
@pytest.mark.parametrize("page", PAGES)
def test_they_convert(page, notebooks):
    script, _ = nbconvert.PythonExporter().from_notebook_node(notebooks[page])
    compile(script, page, "exec")
    html, _ = nbconvert.HTMLExporter().from_notebook_node(notebooks[page])
    title = re.findall("^# (.*)", (ROOT / "docs" / page).read_text("utf-8"), re.M)[0]
    assert f">{title}" in html
    text = "\n".join(x.source for x in notebooks[page].cells if x.cell_type == "markdown")
    assert not re.search(r"\]\((?!https?:)|\]\[keras", text)  # no link that leads nowhere


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run code cells, without the first, under the backend of the tests; return what they print."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))

    def run(cells):
        cells[1] = re.sub(r'= "\w+"', f'= "{keras.backend.backend()}"', cells[1])
        cells = list(map(nbformat.v4.new_code_cell, cells[1:]))
        book = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": HOOKS["KERNEL"]})
        resources = {"metadata": {"path": str(tmp_path)}}
        nbclient.NotebookClient(book, timeout=200, resources=resources).execute()
        return ["".join(x.get("text", "") for x in cell.outputs) for cell in cells]

    return run


def test_the_first_lesson_runs(run, notebooks):
    cells = code_of(notebooks["lessons/1-attention.md"])
    outputs = run([*cells, "import keras; print(keras.backend.backend())"])
    assert outputs[-1].split() == [keras.backend.backend()]
    assert outputs[1]


@pytest.mark.once("the cell calls a command that has its tests")
def test_a_command_of_the_quick_start_runs(run, notebooks, tmp_path):
    (tmp_path / "saved_models").symlink_to(ROOT / "saved_models")
    cells = code_of(notebooks["quick-start.md"])[:3]
    assert "translate tatoeba" in cells[2]
    assert "Bahnhof" in run(cells)[1]
