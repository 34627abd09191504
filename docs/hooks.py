"""Hooks of MkDocs: pages with a Mermaid diagram load mermaid.js from the site itself.

Without a `window.mermaid`, the theme (mkdocs-material 9.8) loads it from unpkg.com. The package
`mermaidx` contains the published `mermaid.min.js`.
"""

from __future__ import annotations

from importlib import resources
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.utils import get_relative_url

SCRIPT = "assets/javascripts/mermaid.min.js"
DIAGRAM = '<pre class="mermaid">'


def on_files(files: Files, config: Any) -> Files:
    """Add the script to the files of the site."""
    script = resources.files("mermaidx") / "assets" / "mermaid.js"
    files.append(File.generated(config, SCRIPT, content=script.read_bytes()))
    return files


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Load the script in the head of a page with a diagram, before the theme's own script."""
    if DIAGRAM not in output:
        return output
    url = get_relative_url(SCRIPT, page.url)
    return output.replace("</head>", f'<script src="{url}"></script></head>', 1)
