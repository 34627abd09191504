"""Programs in a process of their own: their backend, and their errors."""

import pytest

from keras_transformer.system.elsewhere import run_elsewhere

pytestmark = pytest.mark.once("a process without Keras")

PROGRAM = """
import json, os, sys
task = json.loads(sys.argv[1])
print(task["text"], os.environ["KERAS_BACKEND"])
print("end of stderr", file=sys.stderr)
sys.exit(task["status"])
"""


def test_a_program_and_its_errors(tmp_path, monkeypatch):
    (tmp_path / "program.py").write_text(PROGRAM)
    monkeypatch.syspath_prepend(tmp_path)

    def run(status):
        run_elsewhere("program", dict(folder="f", text="too long", status=status), "jax")

    run(0)
    with pytest.raises(ValueError, match="^cannot export f: too long jax$"):
        run(65)
    with pytest.raises(RuntimeError, match="(?s)f failed with status 1:.*end of stderr"):
        run(1)
