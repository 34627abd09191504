"""Start-up before Keras is imported: the backend, the other project, quiet logs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from keras_transformer.analysis.alignment import PARTS
from keras_transformer.cli.plot import AttentionPart
from keras_transformer.system import startup

ROOT = Path(__file__).parents[2]
FRAMEWORKS = {"keras", "tensorflow", "jax", "torch", "numpy", "grain"}


def run(*arguments, **environment):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, cwd=ROOT)


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """`machine(installed, configured)`: only these backends; Keras's file, if any, says that."""

    def make(installed, configured=None):
        monkeypatch.setenv("KERAS_HOME", str(tmp_path))
        monkeypatch.setenv("KERAS_BACKEND", "")
        monkeypatch.setattr(
            startup.importlib.util, "find_spec", lambda name: name if name in installed else None
        )
        if configured is not None:
            (tmp_path / "keras.json").write_text(configured)

    return make


@pytest.mark.parametrize(
    ("installed", "configured", "chosen", "said"),
    [
        (["torch", "jax", "tensorflow"], None, "tensorflow", "the backend is tensorflow;"),
        (["jax", "torch"], None, "jax", "the backend is jax; set KERAS_BACKEND to choose another"),
        (["torch"], "no JSON", "torch", None),
        (["torch"], "{}", "torch", None),
        (["torch"], '{"floatx": "float16"}', "torch", None),
        (["tensorflow", "torch"], '{"backend": "torch"}', "", None),  # Keras takes it by itself
        # What Keras writes itself at its first import, whatever is installed, and a user's file:
        (["torch"], json.dumps(startup.AS_KERAS_WRITES), "torch", None),
        (["jax", "torch"], '{"backend": "tensorflow"}', "jax", None),
        (["torch"], '{"backend": "jax"}', "torch", "chooses jax, which is not installed"),
        (["jax"], '{"backend": "tensorflow", "floatx": "float16"}', "jax", "using jax"),
    ],
)
def test_the_backend_is_one_that_is_installed(machine, capsys, installed, configured, chosen, said):
    machine(installed, configured)
    startup.choose_backend()
    assert os.environ["KERAS_BACKEND"] == chosen
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == bool(said) and (said or "") in "".join(lines)
    startup.choose_backend()  # as child processes do
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("asked", "configured", "error", "message"),
    [
        ("theano", None, ValueError, "KERAS_BACKEND must be one of .*'torch'.*, got 'theano'"),
        ("torch", None, ImportError, "is 'torch', .* pip install \"torch>=.*one of .'jax'."),
        ("", "pytorch", ValueError, r"\"backend\" in .*keras.json must be one of .*'pytorch'"),
        ("", ["jax"], ValueError, r"\"backend\" in .*keras.json must be .* got \['jax'\]"),
    ],
)
def test_a_backend_that_there_is_not(machine, monkeypatch, asked, configured, error, message):
    machine(["jax"], configured and json.dumps({"backend": configured}))
    monkeypatch.setenv("KERAS_BACKEND", asked)
    with pytest.raises(error, match=message):
        startup.choose_backend()


def test_no_backend_and_no_configuration(machine):
    machine([])
    with pytest.raises(ImportError, match='needs TensorFlow, JAX or PyTorch: .*install "jax>='):
        startup.choose_backend()
    machine(["jax"], "[]")
    with pytest.raises(ValueError, match=r"keras.json must hold a JSON object, got \[\]"):
        startup.choose_backend()


@pytest.mark.parametrize(
    "program,given,is_ours",
    [
        ("-m", "python -m training.translation --recipe grammar", True),
        ("/x/training/translation.py", "python -u -m training.translation", True),
        ("/x/keras_transformer/cli/__main__.py", "python -m keras_transformer.cli", True),
        ("/x/bin/keras-transformer", "python /x/bin/keras-transformer translate", True),
        ("/x/pytest/__main__.py", "python -m pytest tests", False),
        ("/x/mine.py", "python /x/mine.py -m training.translation", False),
        ("-c", "python -c import -m", False),
        ("", "", False),
    ],
)
def test_what_runs_from_the_command_line(monkeypatch, program, given, is_ours):
    monkeypatch.setattr("sys.argv", [program])
    monkeypatch.setattr("sys.orig_argv", given.split())
    assert startup._is_command_line() == is_ours


@pytest.mark.parametrize("module", ["keras_transformer.cli", "training.translation"])
def test_a_wrong_backend_is_one_line_from_the_command_line(module):
    done = run("-m", module, "--help", KERAS_BACKEND="theano")
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert line.startswith("keras-transformer: KERAS_BACKEND must be one of")


def test_a_wrong_backend_is_an_exception_from_python():
    done = run("-c", "import keras_transformer", KERAS_BACKEND="theano")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("ValueError: KERAS_BACKEND must be one of")


@pytest.mark.parametrize("file", ["dist-info/METADATA", "egg-info/PKG-INFO"])
def test_the_other_project_is_refused(tmp_path, monkeypatch, file):
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / f"keras_transformer-0.40.0.{file}"
    path.parent.mkdir()
    path.write_text("Name: keras-transformer\nSummary: The Transformer for Keras 3\n")
    startup.refuse_other_project()  # an earlier installation of our own
    path.write_text(f"Name: keras-transformer\nHome-page: https://{startup.OTHER_PROJECT}\n")
    with pytest.raises(ImportError, match="another project .* pip uninstall keras-transformer"):
        startup.refuse_other_project()


def test_nothing_fetches_the_other_project_or_a_name_that_is_not_ours():
    """No installer gets a name that it would look for in its index; a wheel's path it may."""
    name = r"(keras[-_.]transformer|transformer[-_.]for[-_.]keras)"
    given = rf"\b(install|download|wheel|add)\b.*(?<![\w/.-]){name}(?![\w/.-])"
    fetching = re.compile(rf"{given}|\b{name}\[[a-z0-9,]+\]")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    found = []
    for file in listed.stdout.splitlines():
        if ROOT / file != Path(__file__) and (ROOT / file).is_file():
            lines = (ROOT / file).read_text("utf-8", "ignore").splitlines()
            found += [(file, line) for line in lines if fetching.search(line)]
    # The extras of extras, which the build replaces by their packages.
    assert {file for file, _ in found} == {"pyproject.toml"}, found
    extras = ["all =", "bench =", '"transformer-for-keras']
    assert [line.split("[")[0].strip() for _, line in found] == extras


def test_help_imports_no_framework():
    program = """
import sys
from typer.testing import CliRunner
from keras_transformer import cli
for words in ([], ["train"], ["plot", "attention"]):
    result = CliRunner().invoke(cli.app, [*words, "--help"])
    assert "Usage:" in result.stdout, result.output
print(*sys.modules)
"""
    done = run("-c", program)
    found = set(done.stdout.split())
    files = (ROOT / "keras_transformer/cli").glob("[a-z]*.py")
    assert found >= {f"keras_transformer.cli.{file.stem}" for file in files}, done.stderr
    assert not found & FRAMEWORKS


def test_parts_of_attention_are_those_of_the_library():
    assert tuple(AttentionPart) == PARTS


NOISE = b"""\
WARNING: All log messages before absl::InitializeLog() is called are written to STDERR
I0000 00:00:1795402131.379963   16381 port.cc:153] oneDNN custom operations are on.
I0000 00:00:1795402131.396585   16381 cudart_stub.cc:31] Could not find cuda drivers.
E0000 00:00:1795402131.396590   16381 cuda_dnn.cc:8] Unable to register cuDNN factory.
"""


@pytest.mark.parametrize(("level", "shown"), [("3", 0), ("1", 1), ("0", 4), ("all", 4)])
def test_the_import_of_tensorflow_is_quiet(tmp_path, level, shown):
    trouble = "F0000 00:00:1795402131.396599   16381 load.cc:1] broken\nTraceback\nE is a letter\n"
    (tmp_path / "tensorflow.py").write_text(
        f"import os, sys\nos.write(2, {NOISE + trouble.encode()!r})\nname = __spec__.name\n"
    )
    program = "import keras_transformer, tensorflow, sys; print(tensorflow.name, file=sys.stderr)"
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    done = run("-c", program, PYTHONPATH=path, TF_CPP_MIN_LOG_LEVEL=level)
    assert done.stderr.endswith(f"{trouble}tensorflow\n")
    kept = done.stderr.removesuffix(f"{trouble}tensorflow\n").splitlines()
    assert len(kept) == shown


@pytest.mark.parametrize("program", ["keras-transformer", "user.py"])
def test_a_command_loads_keras_without_its_extras(program):
    hidden = startup.WithoutExtras.HIDDEN["keras"]
    lines = [f"import sys; sys.argv[0] = {program!r}; import keras_transformer, keras"]
    lines += [f"print(*sorted({set(hidden)} & {{*sys.modules}}))"]
    lines += [f"import {', '.join(hidden)}"]
    process = run("-c", "\n".join(lines))
    assert process.returncode == 0, process.stderr
    assert process.stdout.split() == ([] if program == "keras-transformer" else sorted(hidden))


@pytest.mark.parametrize("program", ["keras-transformer", "user.py"])
def test_a_command_loads_tensorflow_without_keras(tmp_path, program):
    saving = "class saving: get_custom_objects = dict"
    files = {
        "keras/__init__.py": saving,
        "keras/src/__init__.py": "",
        "keras/src/optimizers.py": "",
        "tensorflow.py": """
import importlib.util
assert importlib.util.find_spec("keras")
try:
    import keras.src.optimizers
except ImportError as error:
    print(error)
""",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    lines = [f"import sys; sys.argv[0] = {program!r}; import keras_transformer, tensorflow"]
    lines += ["print('keras' in sys.modules)", "import keras; print(keras.saving.__name__)"]
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    process = run("-c", "\n".join(lines), PYTHONPATH=path)
    assert process.returncode == 0, process.stderr
    refused = ["keras is not loaded by tensorflow", "False", "saving"]
    assert process.stdout.splitlines() == (refused if program[0] == "k" else ["True", "saving"])
