"""The README is short, and what it points to exists. Its blocks run in docs/test_blocks.py."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
TEXT = re.sub(r"^```.*?^```", "", README, flags=re.DOTALL | re.MULTILINE)


def test_it_can_be_read_in_one_go():
    assert len(README.splitlines()) <= 150


def test_no_heading_occurs_twice():
    headings = re.findall(r"^#+ (.*)", TEXT, re.MULTILINE)
    assert len(headings) == len(set(headings)) > 5


def test_links_and_pictures_lead_to_files():
    targets = re.findall(r"\]\(([^)#]+)\)", TEXT)
    assert len(targets) > 10
    for target in targets:
        assert (ROOT / target).exists(), target


def test_every_folder_of_the_package_is_in_the_tree():
    (tree,) = re.findall(r"## The tree\n\n```text\n(.*?)```", README, re.DOTALL)
    for folder in (ROOT / "keras_transformer").iterdir():
        if (folder / "__init__.py").exists():
            assert re.search(rf"\b{folder.name}/", tree), folder.name
