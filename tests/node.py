"""Node.js with the packages of `tests/javascript/package.json`.

`python -m tests.node` installs them. The first test that needs them does so, too, and is skipped if
that is not possible.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from keras_transformer.system.locks import waiting

SCRIPTS = Path(__file__).with_name("javascript")
FOLDER = Path(__file__).parent.parent / ".venv" / "javascript"
INSTALL = "npm install --silent --ignore-scripts --no-audit --no-fund --no-package-lock".split()


def install() -> str:
    """Install the packages, unless they are installed; return an error, or an empty text."""
    if missing := [name for name in ("node", "npm") if shutil.which(name) is None]:
        return f"{' and '.join(missing)} must be installed"
    package = (SCRIPTS / "package.json").read_text()
    done = FOLDER / "installed.json"
    FOLDER.mkdir(parents=True, exist_ok=True)
    with waiting(FOLDER / "install"):
        if done.is_file() and done.read_text() == package:
            return ""
        (FOLDER / "package.json").write_text(package)
        try:
            subprocess.run(INSTALL, cwd=FOLDER, check=True, timeout=300, capture_output=True)
        except (OSError, subprocess.SubprocessError) as error:
            return f"npm cannot install the packages: {error}"
        done.write_text(package)
    return ""


@functools.cache
def modules() -> Path:
    """Return the folder `node_modules`; skip the test if there is none."""
    if error := install():
        pytest.skip(error)
    return FOLDER / "node_modules"


def run(script: str, *arguments: Any, **options: Any) -> str:
    """Return what a script of `tests/javascript` prints."""
    command = ["node", SCRIPTS / script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


if __name__ == "__main__":
    print(install() or f"the packages are in {FOLDER}")
