"""The engine of PyTorch's compiler: what the default engine finds, from one compilation."""

import os
import random
import shutil
import threading
import zipfile
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
from safetensors.torch import load as load_weights

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


def load(folder, cache):
    with mock.patch.dict("os.environ", XDG_CACHE_HOME=str(cache)):
        return Translator.load(folder, engine="inductor")


@pytest.fixture(scope="module")
def compiled(folder, cache):
    """A translator whose search is compiled, without trials of products, which take minutes."""
    translator = load(folder, cache)
    trials = "torch._inductor.select_algorithm.AlgorithmSelectorCache.do_autotuning"
    told = pytest.warns(UserWarning, match="compiling a part of the search")
    with told, mock.patch(trials, side_effect=OSError):
        translator.translate(["six"])
    return translator


@pytest.fixture
def no_compiler(compiled):
    """All that would be compiled fails."""
    place = "keras_transformer.backend.torch.packages.Packages._compile"
    with mock.patch(place, side_effect=OSError):
        yield


def test_texts_of_any_number_and_length(compiled, ours, no_compiler):
    expected = ours.translate(TEXTS)
    assert len(set(expected)) > 10
    assert compiled.translate(TEXTS) == expected
    assert [compiled.translate([text])[0] for text in TEXTS] == expected
    assert compiled.translate(TEXTS, tokens_per_batch=20) == expected
    assert compiled.translate([]) == [] and compiled.translate(["", " "]) == ["", ""]


def test_texts_in_several_threads(compiled, ours, no_compiler):
    expected = ours.translate(TEXTS)
    results = []

    def work():
        results.append(compiled.translate(TEXTS))

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


def test_scores(compiled, ours, no_compiler):
    found = compiled.nbest(TEXTS, num_hypotheses=1)
    expected = ours.nbest(TEXTS, num_hypotheses=1)
    assert [x.text for (x,) in found] == [x.text for (x,) in expected]
    assert [x.score for (x,) in found] == pytest.approx([x.score for (x,) in expected], abs=1e-4)


def test_other_options_are_not_compiled(compiled, ours, no_compiler):
    for options in (dict(beam_size=2), dict(length_penalty=0.0), dict(prefixes=["six"] * 20)):
        assert compiled.translate(TEXTS, **options) == ours.translate(TEXTS, **options)
    assert compiled.sample(TEXTS, seed=3) == ours.sample(TEXTS, seed=3)
    assert compiled.score(TEXTS, TEXTS) == pytest.approx(ours.score(TEXTS, TEXTS), abs=1e-4)


def test_another_process_compiles_nothing(folder, cache, ours, no_compiler):
    assert load(folder, cache).translate(TEXTS) == ours.translate(TEXTS)


def test_another_model_is_compiled_anew(made_folder, cache, no_compiler):
    with pytest.raises(OSError):
        load(made_folder(9), cache).translate(TEXTS)


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
