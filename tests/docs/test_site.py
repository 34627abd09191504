"""The site as built: it asks no other host for anything, its reference has every public name."""

from __future__ import annotations

import importlib
import json
import os
import re
import shlex
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest
import yaml

import keras_transformer

from .shell import ROOT

PACKAGES = ("layers", "models", "decoding", "text", "export", "weights")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder that `make test` has just built, or one that is built here."""
    if built := os.environ.get("KT_SITE"):
        return Path(built)
    folder = tmp_path_factory.mktemp("site")
    process = build("-d", folder)
    assert process.returncode == 0, process.stderr
    return folder


def build(*options):
    """Run the command of `make docs` with further options."""
    (arguments,) = re.findall(r"^\t.*mkdocs (build.*)$", (ROOT / "Makefile").read_text(), re.M)
    command = [sys.executable, "-m", "mkdocs", *shlex.split(arguments), *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8")


def test_make_docs_fails_at_each_dead_reference(tmp_path):
    dead = {"name": "[x][keras_transformer.Gone]", "page": "[x](gone.md)", "place": "[x](#gone)"}
    (tmp_path / "docs").mkdir()
    for name, link in dead.items():
        (tmp_path / f"docs/{name}.md").write_text(link)
    plugins = [{"mkdocstrings": {"handlers": {"python": {"paths": [str(ROOT)]}}}}]
    checks = yaml.load((ROOT / "mkdocs.yml").read_text(), yaml.BaseLoader)["validation"]
    config = tmp_path / "mkdocs.yml"
    config.write_text(json.dumps(dict(site_name="x", plugins=plugins, validation=checks)))
    process = build("-f", config, "-d", tmp_path / "site")
    warnings = [line for line in process.stderr.splitlines() if line.startswith("WARNING")]
    for name in dead:
        assert any(f"{name}.md" in line for line in warnings), process.stderr
    assert process.returncode != 0


class Loads(HTMLParser):
    """Return what a page loads by itself, not the targets of its links."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        names = ("src", "srcset", "poster", "data") + (("href",) if tag == "link" else ())
        self.found += [given[name] for name in names if given.get(name)]
        self.found += re.findall(r"url\((.*?)\)", given.get("style") or "")


def test_nothing_is_loaded_from_another_host(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        loads = Loads()
        loads.feed(page.read_text("utf-8"))
        assert loads.found
        strange = [x for x in loads.found if re.match(r"\s*['\"]?(\w+:)?//", x)]
        assert not strange, (page, strange)
    for sheet in site.rglob("*.css"):
        loaded = re.findall(r"url\((.*?)\)|@import\s+(\S+)", sheet.read_text("utf-8"))
        assert not [x for x in loaded if re.match(r"['\"]?(\w+:)?//", "".join(x))], sheet


def test_pages_link_to_their_notebooks(site):
    """`test_notebooks.py` tests what is in them."""
    for name in [*(f"lessons/{x.stem}" for x in ROOT.glob("docs/lessons/[0-9]*")), "quick-start"]:
        nbformat.read(site / f"{name}.ipynb", as_version=4)
        (link,) = re.findall(
            r'<a [^>]*ipynb"[^>]*>', (site / name / "index.html").read_text("utf-8")
        )
        target = re.findall('href="(.*?)"', link)[0]
        assert (site / name / target).resolve() == (site / f"{name}.ipynb").resolve()
        assert "download" in link


def test_diagrams_load_mermaid_from_the_site(site):
    """Without its own copy on the page, the theme would load it from another host."""
    pages = [page for page in site.rglob("*.html") if '"mermaid"' in page.read_text("utf-8")]
    assert len(pages) >= 4
    for page in pages:
        (script,) = re.findall(r'<script src="([^"]*mermaid[^"]*)"', page.read_text("utf-8"))
        assert (page.parent / script).resolve().is_file(), page


def test_public_names_are_in_the_reference(site):
    anchors = {
        anchor
        for page in (site / "reference").rglob("*.html")
        for anchor in re.findall(r'id="(keras_transformer[\w.]*)"', page.read_text("utf-8"))
    }
    for package in PACKAGES:
        module = importlib.import_module(f"keras_transformer.{package}")
        for name in module.__all__:
            value = getattr(module, name)
            if callable(value):  # constants have no docstrings
                assert anchors & {f"{module.__name__}.{name}", f"{value.__module__}.{name}"}, name
    table = (ROOT / "docs/reference/index.md").read_text("utf-8")
    assert set(keras_transformer.__all__) <= set(re.findall(r"\[`(\w+)`\]\[keras_tr", table))


def test_docstrings_keep_their_names(site):
    """Google's style has no line of several names, and no call arguments."""
    layers, text = (
        (site / f"reference/{name}/index.html").read_text("utf-8") for name in ("layers", "text")
    )
    assert "<strong>Call arguments</strong>" in layers
    assert "<code>source_model</code>, <code>target_model</code>" in text
