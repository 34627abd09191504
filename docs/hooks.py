"""Hooks of MkDocs: lessons are notebooks, too; results are pages; mermaid.js is in the site.

Without a `window.mermaid`, the theme (mkdocs-material 9.8) loads it from unpkg.com. The package
`mermaidx` contains the published `mermaid.min.js`.
"""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path
from typing import Any

import jupytext
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.utils import get_relative_url

SCRIPT = "assets/javascripts/mermaid.min.js"
ROOT = Path(__file__).parents[1]
RESULTS, CARD = "benchmarks/results", "saved_models/tatoeba/README.md"
DIAGRAM = '<pre class="mermaid">'


def on_files(files: Files, config: Any) -> Files:
    """Add the script, the notebooks, the results and the model's card to the files of the site."""
    for page in list(files.documentation_pages()):
        if page.src_uri.startswith("lessons/") and page.name != "index":
            content = notebook(Path(page.abs_src_path).read_text("utf-8"))
            files.append(File.generated(config, f"lessons/{page.name}.ipynb", content=content))
    for path in (ROOT / CARD, *sorted((ROOT / RESULTS).rglob("*.*"))):
        uri, level = path.relative_to(ROOT).as_posix(), InclusionLevel.NOT_IN_NAV
        files.append(File.generated(config, uri, abs_src_path=str(path), inclusion=level))
    script = resources.files("mermaidx") / "assets" / "mermaid.js"
    files.append(File.generated(config, SCRIPT, content=script.read_bytes()))
    return files


def notebook(text: str) -> str:
    """Return a lesson as a Jupyter notebook: its blocks of Python and Bash become cells."""
    return jupytext.writes(jupytext.reads(text, "md"), "ipynb")


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Turn links to results and card, and back, which hold in the repository, into the site's."""
    if page.file.src_uri.startswith(RESULTS):
        return re.sub(r"\]\(((?:\.\./)+)docs/", r"](\1", markdown)
    return re.sub(rf"\]\(\.\./((?:\.\./)*(?:{RESULTS}|{CARD}))", r"](\1", markdown)


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Load the script in the head of a page with a diagram, before the theme's own script."""
    if DIAGRAM not in output:
        return output
    url = get_relative_url(SCRIPT, page.url)
    return output.replace("</head>", f'<script src="{url}"></script></head>', 1)
