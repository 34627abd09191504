"""Build what a release ships, install it into empty environments and use it there as a stranger.

`make install-test` runs it: PyTorch alone on Python 3.12 and JAX alone on Python 3.13, or on this
Python where the machine has no such one (all other tests run on this one). The home is empty: at
the first command Keras writes a configuration file, which later commands find.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
ENVIRONMENTS = {"torch": "3.12", "jax": "3.13"}
LINES = [
    f"{word} and {other}" for word in ("one", "two") for other in "six ten red sun sea".split()
]
OPTIONS = """
vocab_size=40 byte_fallback=false epochs=1 warmup_steps=1 tokens_per_batch=64 packed_length=32
model.d_model=8 model.d_ff=8 model.num_heads=2 model.num_encoder_layers=1
model.num_decoder_layers=1
"""
TRAIN = "train --output run --train en --train de --validation en --validation de".split()
TRAIN += [word for option in OPTIONS.split() for word in ("--set", option)]
PROGRAM = """
from keras_transformer import Translator
texts = open("en", encoding="utf-8").read().splitlines()
translator = Translator.load("run")
translator.save("copy")
found = translator.translate(texts)
assert Translator.load("copy").translate(texts) == found
print(*found, sep="\\n")
"""


def execute(*command: object, folder: Path = ROOT, **options) -> tuple[str, str]:
    """Run a command and return what it wrote on stdout and stderr; a failure ends everything."""
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, **options)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}\n{done.stdout}\n{done.stderr}")
    return done.stdout, done.stderr


def build(folder: Path) -> Path:
    """Build a source distribution and a wheel of it, check their files, and return the wheel."""
    builder = [sys.executable, "-m", "build", "--no-isolation"]  # hatchling is there
    execute(*builder, "--outdir", folder / "dist")
    execute(*builder, "--wheel", "--outdir", folder / "direct")
    [wheel], [direct] = ((folder / x).glob("*.whl") for x in ("dist", "direct"))
    files = _files(wheel)
    assert files == _files(direct), "the wheel of the sdist differs from that of the checkout"
    options = ["--cached", "--others", "--exclude-standard"]
    known = set(execute("git", "ls-files", *options)[0].splitlines())
    package = {name for name in files if ".dist-info/" not in name}
    assert package == {name for name in known if name.startswith("keras_transformer/")}
    assert "keras_transformer/py.typed" in package
    assert "keras_transformer/serving/page/index.html" in package
    assert "keras_transformer/export/page/index.html" in package
    assert "keras_transformer/training/recipes/grammar.toml" in package
    assert "keras_transformer/demo/lexicon.toml" in package
    [sdist] = (folder / "dist").glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert package < names
    assert names - known == {"PKG-INFO"}, f"git does not know {names - known} of the sdist"
    return wheel


def build_model(folder: Path) -> Path:
    """Build the wheel of the translator that comes with the project, and return it."""
    source = ROOT / "saved_models" / "tatoeba"
    builder = [sys.executable, "-m", "build", "--no-isolation", "--wheel"]
    execute(*builder, "--outdir", folder / "model", source)
    [wheel] = (folder / "model").glob("*.whl")
    names = {Path(name).name for name in _files(wheel) if ".dist-info/" not in name}
    known = set(execute("git", "ls-files", folder=source)[0].splitlines())
    assert names == known - {"pyproject.toml"}, f"{names} are not {known}"
    return wheel


def _files(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def install(python: str, wheels: list[Path], backend: str, folder: Path) -> Path:
    """Install the wheels with one backend into an empty environment; return its `bin` folder."""
    wheel, model = wheels
    execute(python, "-m", "venv", "--without-pip", folder)
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin/python"]
    quietly = ["install", "--quiet", "--no-compile", "--constraint", ROOT / "constraints.txt"]
    if backend == "torch":  # first and alone, so that pip takes its CPU build where there is one
        execute(*pip, *quietly, "torch")
    execute(*pip, *quietly, f"{wheel}[{backend}]", model)
    execute(*pip, "check")
    return folder / "bin"


def use(programs: Path, backend: str, folder: Path) -> None:
    """Train, save, load and translate with an empty home."""
    (folder / "home").mkdir(parents=True)
    for name, lines in dict(en=LINES, de=[line.upper() for line in LINES]).items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")
    unset = ("KERAS_BACKEND", "KERAS_HOME", "PYTHONPATH", "XDG_CACHE_HOME")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    environment["HOME"] = str(folder / "home")
    environment["XLA_FLAGS"] = "--xla_backend_optimization_level=0"  # it compiles more than it runs
    options = dict(folder=folder, env=environment)
    command, program = programs / "keras-transformer", [programs / "python", "-c", PROGRAM]
    line = f"keras-transformer: the backend is {backend}; "
    assert execute(command, *TRAIN, **options)[1].count(line) == 1
    # From here on there is a file that Keras wrote, which names TensorFlow, and nothing is said.
    translate = [command, "translate", "run", "--input", "en", "--max-extra-length", "3"]
    for words in (translate, program):
        wrote, said = execute(*words, **options)
        assert wrote and not said, said
    named = [command, "translate", "tatoeba", "--target-language", "de", "Where is the station?"]
    assert "Wo ist" in execute(*named, **options)[0]


def check(python: str, wheels: list[Path], backend: str, folder: Path) -> str:
    """Install and use the wheels; return what was done."""
    begun = time.monotonic()
    programs = install(python, wheels, backend, folder / "environment")
    installed = time.monotonic()
    use(programs, backend, folder / "work")
    seconds = f"{installed - begun:.0f} s to install, {time.monotonic() - installed:.0f} s to use"
    return f"{execute(programs / 'python', '--version')[0].strip()}, {backend} alone: {seconds}"


def interpreter(version: str) -> str | None:
    """Return a Python of this version that works, on the path or of pyenv."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for path in (f"python{version}", *sorted(root.glob(f"versions/{version}.*/bin/python"))):
        try:
            if not subprocess.run([path, "-c", "import venv"], capture_output=True).returncode:
                return str(path)
        except OSError:
            continue
    return None


def main() -> None:
    """Check all of it, the environments beside each other."""
    environments = []
    for backend, version in ENVIRONMENTS.items():
        python = interpreter(version)
        if python is None:
            print(f"Python {version} is skipped: no interpreter works here")
        environments.append((python or sys.executable, backend))
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        wheels = [build(Path(folder)), build_model(Path(folder))]
        print(f"{wheels[0].name}: the same from the checkout and from the source distribution")
        jobs = [
            pool.submit(check, python, wheels, backend, Path(folder, str(i)))
            for i, (python, backend) in enumerate(environments)
        ]
        for job in jobs:
            print(job.result(), flush=True)


if __name__ == "__main__":
    main()
