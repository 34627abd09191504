"""The files of the packages with published weights, which tests/published.txt lists."""

import functools
import os
from importlib import metadata
from pathlib import Path

import pytest

DATA = Path(os.environ.get("KT_DATA", "none"))


@functools.cache
def files(*packages):
    """Return the files of installed packages by name; the packages need not be imported."""
    try:
        paths = [Path(file.locate()) for x in packages for file in metadata.files(x) or ()]
    except metadata.PackageNotFoundError:
        return {}
    return {path.name: path for path in paths if path.is_file()}


def needs(*packages):
    """Skip without the packages."""
    reason = f"{' or '.join(packages)} is not installed: make published"
    return pytest.mark.skipif(not files(*packages), reason=reason)


def needs_data(*parts):
    """Skip if the folder `KT_DATA` lacks a file."""
    path = DATA.joinpath(*parts)
    return pytest.mark.skipif(not path.is_file(), reason=f"KT_DATA has no {'/'.join(parts)}")
