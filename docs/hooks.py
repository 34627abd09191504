"""Hooks of MkDocs: lessons and quick start are notebooks, too; results are pages; mermaid.js is in.

The site also has the page that translates, if `make page` has built it.

Without a `window.mermaid`, the theme (mkdocs-material 9.8) loads it from unpkg.com. The package
`mermaidx` contains the published `mermaid.min.js`.
"""

from __future__ import annotations

import json
import re
from importlib import resources
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.utils import get_relative_url

SCRIPT = "assets/javascripts/mermaid.min.js"
ROOT = Path(__file__).parents[1]
RESULTS, CARD = "benchmarks/results", "saved_models/tatoeba/README.md"
PAGE, PLACE = ROOT / "build" / "page", "<!-- the page -->"  # of `make page`; where it is linked
DIAGRAM = '<pre class="mermaid">'
NOTEBOOKS = re.compile(r"(?:lessons/\d.*|quick-start)\.md")
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
INSTALL = """# In a checkout. On a hosted machine, upload one and write here: %cd FOLDER
%{line}"""
BACKEND = """import os

os.environ["KERAS_BACKEND"] = "{backend}"  # the installed one: tensorflow, jax or torch"""
# A link to another page or to a name of the reference, which a notebook cannot follow; an image.
LINK = re.compile(r"!?\[([^\]\n]+)\](?:\((?!https?:)[^)\n]*\)|\[keras_transformer[^\]\n]*\])")


def on_files(files: Files, config: Any) -> Files:
    """Add the script, the notebooks, the results and the model's card to the files of the site."""
    for page in list(files.documentation_pages()):
        if NOTEBOOKS.fullmatch(page.src_uri):
            uri, content = page.src_uri.removesuffix("md") + "ipynb", notebook(page.src_uri)
            files.append(File.generated(config, uri, content=content))
    for path in (ROOT / CARD, *sorted((ROOT / RESULTS).rglob("*.*"))):
        uri, level = path.relative_to(ROOT).as_posix(), InclusionLevel.NOT_IN_NAV
        files.append(File.generated(config, uri, abs_src_path=str(path), inclusion=level))
    for path in filter(Path.is_file, PAGE.rglob("*")):
        uri = f"page/{path.relative_to(PAGE).as_posix()}"
        files.append(File.generated(config, uri, abs_src_path=str(path)))
    script = resources.files("mermaidx") / "assets" / "mermaid.js"
    files.append(File.generated(config, SCRIPT, content=script.read_bytes()))
    return files


def notebook(page: str) -> str:
    """Return a page of `docs/` as a Jupyter notebook: its blocks of Python and Bash become cells.

    Two cells precede them: one installs the package, by the first `pip install` of the page or of
    its folder's index, and one chooses the backend. The page's own blocks that install become text.
    """
    path = ROOT / "docs" / page
    text = path.read_text("utf-8")
    index = path.with_name("index.md") if page.startswith("lessons/") else path
    line = re.findall(r"^pip install .*", index.read_text("utf-8"), re.MULTILINE)[0]
    backend = re.findall("tensorflow|jax|torch", line)[0]
    text = re.sub(r"^```bash(?=\npip )", "```text", text, flags=re.MULTILINE)
    text = re.sub(r"^\[Notebook .*\n\n", "", text, flags=re.MULTILINE)
    # Without a kernel's language, the language of most blocks is that of the notebook.
    header = f"---\njupyter:\n  kernelspec: {json.dumps(KERNEL)}\n---\n\n"
    book = jupytext.reads(header + text, "md")
    first = (INSTALL.format(line=line), BACKEND.format(backend=backend))
    cells = [*map(nbformat.v4.new_code_cell, first), *book.cells]
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"  # not random: the same site from the same pages
        if cell.cell_type == "markdown":
            cell.source = LINK.sub(r"\1", cell.source)
    metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    return nbformat.writes(nbformat.v4.new_notebook(cells=cells, metadata=metadata))


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Turn links to results and card, and back, which hold in the repository, into the site's.

    Links to notebooks download them.
    """
    if page.file.src_uri == "try.md":
        link = "[Open the page](page/index.html){: .md-button .md-button--primary }"
        markdown = markdown.replace(
            PLACE, link if PAGE.is_dir() else "In a checkout, `make page` builds it."
        )
    if page.file.src_uri.startswith(RESULTS):
        return re.sub(r"\]\(((?:\.\./)+)docs/", r"](\1", markdown)
    markdown = re.sub(r"(\]\([\w-]+\.ipynb\))", r"\1{: download}", markdown)
    return re.sub(rf"\]\(\.\./((?:\.\./)*(?:{RESULTS}|{CARD}))", r"](\1", markdown)


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Load the script in the head of a page with a diagram, before the theme's own script."""
    if DIAGRAM not in output:
        return output
    url = get_relative_url(SCRIPT, page.url)
    return output.replace("</head>", f'<script src="{url}"></script></head>', 1)
