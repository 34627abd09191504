"""The engine of PyTorch's compiler: what the default engine finds, from one compilation."""

import os
import random
import shutil
import sys
import threading
import zipfile
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
from safetensors.torch import load as load_weights

from keras_transformer.backend import private
from keras_transformer.translate.engines.inductor_engine import InductorEngine
from keras_transformer.translate.translator import Translator
from tests.small_translator import WORDS

pytestmark = [
    pytest.mark.once("the engine is one of PyTorch"),
    pytest.mark.skipif(shutil.which("g++") is None, reason="it needs a C++ compiler, g++"),
]
choose = random.Random(7)
TEXTS = [" ".join(choose.choices(WORDS, k=choose.randint(0, 9))) for _ in range(20)]


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A folder of the user's caches."""
    return tmp_path_factory.mktemp("cache")


# A process that compiles without trials of products, which take minutes.
QUICK = """
import tests.loading
from unittest import mock
from keras_transformer.system.child import serve
from keras_transformer.translate.engines.inductor_compiler import answer
trials = "torch._inductor.select_algorithm.AlgorithmSelectorCache.do_autotuning"
with mock.patch(trials, side_effect=OSError):
    serve(answer)
"""
# One that is killed while it writes a package, and one that compiles nothing.
KILLED = """
import os, signal, tests.loading
from keras_transformer.backend.torch.packages import Packages
from keras_transformer.system.child import serve
from keras_transformer.translate.engines.inductor_compiler import answer
def compile_package(self, function, leaves, path):
    path.write_bytes(b"half")
    os.kill(os.getpid(), signal.SIGKILL)
Packages._compile = compile_package
serve(answer)
"""
FAILING = """
import os, time
from keras_transformer.system.child import serve
def answer(request):
    while not os.path.exists(os.environ["ANSWER"]):
        time.sleep(0.05)
    return {"error": "no room"}
serve(answer)
"""
COMMAND = "keras_transformer.translate.engines.inductor_compiler.COMMAND"


def load(folder, cache):
    """Load a translator; two threads may search at once."""
    with mock.patch.dict("os.environ", XDG_CACHE_HOME=str(cache), OMP_NUM_THREADS="2"):
        return Translator.load(folder, engine="inductor")


@pytest.fixture(scope="module")
def compiled(folder, cache):
    """A translator whose search is compiled, by a compiler that optimizes nothing."""
    compiler = cache / "g++"
    compiler.write_text('#!/bin/sh\nexec g++ "$@" -O0\n')
    compiler.chmod(0o755)
    translator = load(folder, cache)
    with (
        mock.patch(COMMAND, (sys.executable, "-c", QUICK)),
        mock.patch.dict("os.environ", CXX=str(compiler)),
    ):
        translator.translate(["six"])
        translator.wait()
    return translator


@pytest.fixture(scope="module")
def expected(ours):
    return ours.translate(TEXTS)


@pytest.fixture
def only_compiled(compiled, expected):
    """Searches that are not compiled fail."""
    with mock.patch("keras_transformer.running.runner.Runner.search", side_effect=OSError):
        yield


def test_texts_of_any_number_and_length(compiled, expected, only_compiled):
    assert len(set(expected)) > 10
    assert compiled.translate(TEXTS) == expected
    assert [compiled.translate([text])[0] for text in TEXTS] == expected
    assert compiled.translate(TEXTS, tokens_per_batch=20) == expected
    assert compiled.translate([]) == [] and compiled.translate(["", " "]) == ["", ""]


@pytest.mark.parametrize("workers", [1, 2])
def test_texts_in_several_threads(folder, cache, compiled, expected, workers, monkeypatch):
    """With PyTorch's loader, which keeps Python's lock, one search runs at a time."""
    if workers == 1:
        monkeypatch.setattr(private, "TENSORS_OF_HANDLES", None)
    translator, results = load(folder, cache), []
    assert translator.translate(TEXTS) == expected
    assert translator._engine._runner._packages.workers == workers

    def work():
        results.append(translator.translate(TEXTS, tokens_per_batch=30))

    threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == [expected] * 4


def test_packages_share_their_weights(compiled, cache):
    names = []
    for path in cache.glob("**/*.pt2"):
        with zipfile.ZipFile(path) as archive:
            inside = archive.namelist()
            assert not any("data/weights" in name for name in inside)  # which would be pickled
            (stored,) = (name for name in inside if name.endswith("weights.safetensors"))
            names += [name for name in load_weights(archive.read(stored)) if "." not in name]
    shared = compiled._engine._runner._packages._packed
    assert 0 < len(shared) < len(names)
    assert all(weight.data_ptr() % 64 == 0 for weight in shared.values())


def test_scores(compiled, ours):
    found = compiled.nbest(TEXTS, num_hypotheses=1)
    expected = ours.nbest(TEXTS, num_hypotheses=1)
    assert [x.text for (x,) in found] == [x.text for (x,) in expected]
    assert [x.score for (x,) in found] == pytest.approx([x.score for (x,) in expected], abs=1e-4)


def test_other_options_are_not_compiled(compiled, ours):
    for options in (dict(beam_size=2), dict(length_penalty=0.0), dict(prefixes=["six"] * 20)):
        assert compiled.translate(TEXTS, **options) == ours.translate(TEXTS, **options)
    assert compiled.sample(TEXTS, seed=3) == ours.sample(TEXTS, seed=3)
    assert compiled.score(TEXTS, TEXTS) == pytest.approx(ours.score(TEXTS, TEXTS), abs=1e-4)


def test_another_process_compiles_nothing(folder, cache, expected, only_compiled):
    assert load(folder, cache).translate(TEXTS) == expected


def test_the_default_engine_answers_until_the_search_is_compiled(
    made_folder, cache, tmp_path, monkeypatch, caplog
):
    monkeypatch.setenv("ANSWER", str(tmp_path / "answer"))
    monkeypatch.setattr(COMMAND, (sys.executable, "-c", FAILING))
    translator, expected = load(made_folder(9), cache), Translator.load(made_folder(9))
    assert translator.translate(TEXTS) == expected.translate(TEXTS)

    def warned():  # commands also let the loggers inform
        return [x.getMessage() for x in caplog.records if x.levelname == "WARNING"]

    assert not warned()
    (tmp_path / "answer").touch()
    translator.wait()
    assert warned() == ["engine keras instead of inductor: no room"]
    assert translator.translate(TEXTS) == expected.translate(TEXTS)
    translator.wait()
    assert len(warned()) == 1


def test_a_compiler_that_is_killed_leaves_nothing(folder, tmp_path, expected, monkeypatch, caplog):
    monkeypatch.setattr(COMMAND, (sys.executable, "-c", KILLED))
    translator = load(folder, tmp_path)
    assert translator.translate(TEXTS) == expected
    translator.wait()
    assert "ended by signal 9" in caplog.text
    cache = tmp_path / "keras_transformer" / "inductor"
    assert list(cache.glob("*.lock")) and not list(cache.glob("*.pt2"))
    assert translator.translate(TEXTS) == expected


def test_what_it_cannot_do(folder, tmp_path, monkeypatch):
    for quantization, dtype in ((None, "bfloat16"), ("int8", "float32")):
        model = SimpleNamespace(quantization=quantization, compute_dtype=dtype)
        message = f'be float32 for engine="inductor", got {quantization or dtype!r}'
        with pytest.raises(ValueError, match=message):
            InductorEngine(model)
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(ImportError, match="no-such-compiler is missing"):
        load(folder, tmp_path)


def test_without_a_folder_to_write_to(folder, monkeypatch):
    model = Translator.load(folder).model
    monkeypatch.setenv("XDG_CACHE_HOME", os.devnull)
    assert Path(InductorEngine(model)._temporary.name).is_dir()
