"""Saved translators: read by each backend, whole or refused, in other precisions."""

import contextlib
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.backend import precision as precision_module
from keras_transformer.backend import usable_precision
from keras_transformer.language.causal_lm import CausalLM
from keras_transformer.models import LLaMA, LLaMAConfig, Transformer
from keras_transformer.saved import folder as saved_module
from keras_transformer.saved.description import describe
from keras_transformer.saved.model_files import count_parameters
from keras_transformer.text import SentencePieceTokenizer
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.translate.translator import Translator
from tests.backends import NEXT, cases
from tests.small_translator import SHORT, TEXTS, WORDS, make

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def saved(translator, tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved") / "new" / "translator"
    translator.save(folder)
    return folder


@pytest.mark.once("made of parts that are tested under each backend")
def test_a_saved_translator_translates_the_same(translator, saved, alone):
    names = {path.name for path in saved.iterdir()}
    assert names >= {"model.keras", "config.json", "tokenizer.json"}
    loaded = Translator.load(saved)
    assert loaded.translate(TEXTS, **SHORT) == list(alone.values())
    assert (loaded.source_language, loaded.target_language) == ("en", "xx")
    assert loaded.model.config == translator.model.config


@pytest.mark.once("each reads the folders of tests/compatibility")
def test_another_backend_reads_it_and_translates_the_same(saved, alone, translator, tmp_path):
    """Its logits are the same, too, which the scores are sums of, and what it saves comes back."""
    script = (
        "import json, sys, tests.loading;"
        "from keras_transformer.translate.translator import Translator;"
        "folder, copy, texts, targets = json.load(sys.stdin);"
        "translator = Translator.load(folder); translator.save(copy);"
        f"found = translator.translate(texts, **{SHORT}), translator.score(texts, targets);"
        "print(json.dumps(found))"
    )
    translations = list(alone.values())
    name = NEXT[keras.backend.backend()]
    pytest.importorskip(name)
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"KERAS_BACKEND": name, "OMP_NUM_THREADS": "1"},
        cwd=ROOT,
        input=json.dumps([str(saved), str(tmp_path / "copy"), TEXTS, translations]),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found, scores = json.loads(done.stdout.splitlines()[-1])
    assert found == translations
    assert scores == pytest.approx(translator.score(TEXTS, translations), abs=1e-4)
    back = Translator.load(tmp_path / "copy").model
    for ours, theirs in zip(translator.model.weights, back.weights, strict=True):
        np.testing.assert_array_equal(*map(ops.convert_to_numpy, (ours, theirs)))


def copy(saved, folder):
    folder.mkdir()
    for path in saved.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


@pytest.mark.once("texts, files and options: no tensor differs")
@pytest.mark.parametrize("step", ["tokenizer", "model", "config"])
def test_a_failure_while_saving_keeps_the_old_translator(
    tokenizer, saved, tmp_path, monkeypatch, step
):
    folder = copy(saved, tmp_path / "translator")
    (folder / "metrics.json").write_text("{}")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    other = make(tokenizer, seed=4)

    def fail(*arguments, **options):
        raise OSError("No space left on device")

    targets = {
        "tokenizer": (other.tokenizer, "save"),
        "model": (Transformer, "save"),
        "config": (saved_module, "write_json"),
    }
    monkeypatch.setattr(*targets[step], fail)
    with pytest.raises(OSError, match="No space left"):
        other.save(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    monkeypatch.undo()
    other.save(folder)
    after = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert after.keys() == before.keys() and after["model.keras"] != before["model.keras"]


@pytest.mark.once("texts, files and options: no tensor differs")
def test_a_kill_between_two_files_mixes_no_two_translators(saved, tmp_path, monkeypatch):
    texts = [" ".join(WORDS), "ten one"]
    tokenizer = SentencePieceTokenizer.train(texts, texts, vocab_size=56, byte_fallback=False)
    other = make(tokenizer, seed=4)
    # Nothing but its contents tells the two apart.
    assert tokenizer.source_vocab_size == Translator.load(saved).tokenizer.source_vocab_size
    known = {contents(Translator.load(saved)), contents(other)}
    assert len(known) == 2
    replace, outcomes = os.replace, []
    for survived in itertools.count():
        folder = copy(saved, tmp_path / str(survived))
        done = 0

        def stop(source, target, folder=folder, survived=survived):
            nonlocal done
            if folder in Path(target).parents:
                done += 1
                if done > survived:
                    raise KeyboardInterrupt
            replace(source, target)

        monkeypatch.setattr(os, "replace", stop)
        with contextlib.suppress(KeyboardInterrupt):
            other.save(folder)
        monkeypatch.undo()
        outcomes.append(contents(Translator.load(folder)))
        assert not [x for x in os.listdir(folder) if x.endswith(".partial")]
        if done <= survived:  # nothing was left to stop
            break
    assert {*outcomes} == known and outcomes[0] != outcomes[-2] == outcomes[-1]


def contents(translator):
    weights = b"".join(np.asarray(w).tobytes() for w in translator.model.get_weights())
    return translator.tokenizer.fingerprint(), weights


@pytest.mark.once("texts, files and options: no tensor differs")
def test_load_says_what_is_wrong_with_a_folder(tokenizer, saved, tmp_path):
    with pytest.raises(ValueError, match="absent is not a saved translator: there is no such"):
        Translator.load(tmp_path / "absent")
    pieces = next(path.name for path in saved.glob("*.model"))
    for name in ("config.json", "model.keras", "tokenizer.json", pieces):
        folder = copy(saved, tmp_path / f"without {name}")
        (folder / name).unlink()
        with pytest.raises(ValueError, match=f"saved translator.*{name}"):
            Translator.load(folder)
    for name, content in {
        "config.json": b"{",
        "model.keras": b"PK no archive",
        "tokenizer.json": b"[]",
    }.items():
        folder = copy(saved, tmp_path / f"broken {name}")
        (folder / name).write_bytes(content)
        with pytest.raises(ValueError, match=name):
            Translator.load(folder)
    (folder := copy(saved, tmp_path / "other")).joinpath("config.json").write_text("{}")
    with pytest.raises(ValueError, match='its "format" must be'):
        Translator.load(folder)


@pytest.fixture(params=cases(["fast", "strict"], "strict"))
def arithmetic(request, monkeypatch):
    """Whether it is that of the precision, or float32 as on a machine without units."""
    monkeypatch.setenv(precision_module.VARIABLE, request.param)
    monkeypatch.setattr(precision_module, "is_fast", lambda dtype: False)
    return request.param


@pytest.mark.once("precisions are computed under each in tests/layers")
@pytest.mark.filterwarnings("ignore:precision is float32")
def test_load_in_another_precision(translator, saved, arithmetic):
    half = Translator.load(saved, precision="bfloat16")
    # Where oneDNN has no product in bfloat16, nobody can insist.
    expected = "float32" if arithmetic == "fast" else usable_precision("bfloat16")
    assert {str(v.dtype) for v in half.model.trainable_variables} == {expected}
    scores = translator.score(TEXTS, TEXTS)
    rtol = 1e-5 if expected == "float32" else 0.1
    np.testing.assert_allclose(half.score(TEXTS, TEXTS), scores, rtol=rtol)
    assert len(half.translate(TEXTS, **SHORT)) == len(TEXTS)
    whole = Translator.load(saved, precision="float32")
    np.testing.assert_allclose(whole.score(TEXTS, TEXTS), scores, rtol=1e-5)
    with pytest.raises(ValueError, match="precision must be one of .* got 'int4'"):
        Translator.load(saved, precision="int4")


@pytest.mark.once("products of blocks are computed under each in tests/layers")
def test_precisions_in_blocks(randomize, tmp_path):
    config = LLaMAConfig(vocab_size=60, d_model=64, d_ff=64, num_layers=1, num_heads=2)
    tokenizer = TextTokenizer.train(["a few words"] * 4, "characters")
    saved, small = tmp_path / "floats", tmp_path / "blocks"
    CausalLM(randomize(LLaMA(config)), tokenizer).save(saved)
    for first, second in (("q4", "q8"), ("int8", "q8")):
        CausalLM.load(saved, first).save(small)
        assert describe(small)["precision"] == first
        # Tied or not, the table counts once, and a byte of levels as two weights.
        assert count_parameters(small) < 1.1 * count_parameters(saved)
        assert CausalLM.load(small).model.quantization == (first if first == "q4" else None)
        model = CausalLM.load(small, second).model
        assert model.quantization == second
        whole = CausalLM.load(small, "float32").model
        assert whole.quantization is whole.saved_quantization is None
        np.testing.assert_allclose(
            ops.convert_to_numpy(model({"token_ids": np.ones((1, 3), "int32")})),
            ops.convert_to_numpy(whole({"token_ids": np.ones((1, 3), "int32")})),
            atol=0.1,
        )
    with pytest.raises(ValueError, match="precision must be one of .*'q4', 'q8'.* got 'q5'"):
        CausalLM.load(saved, "q5")


@pytest.mark.once("products in 8 bits are computed under each in tests/layers")
def test_in_8_bits(translator, saved, tmp_path, arithmetic):
    """They and their remainders are in the files; in memory too, if 8 bits are insisted on."""
    small = Translator.load(saved, precision="int8")
    kinds = {keras.backend.standardize_dtype(w.dtype) for w in small.model.weights if w.ndim == 2}
    assert kinds == ({"float32"} if arithmetic == "fast" else {"int8"})
    assert (small.model.quantization == "int8") == (arithmetic == "strict")
    scores, rtol = small.score(TEXTS, TEXTS), 0.005 if arithmetic == "fast" else 0.05
    np.testing.assert_allclose(scores, translator.score(TEXTS, TEXTS), rtol=rtol)
    small.save(tmp_path)
    again = Translator.load(tmp_path)
    assert again.translate(TEXTS) == small.translate(TEXTS)
    assert again.score(TEXTS, TEXTS) == pytest.approx(scores, rel=1e-5)
    assert describe(tmp_path)["precision"] == "int8"
    assert count_parameters(tmp_path) < 1.3 * count_parameters(saved)  # those are few in a row
    whole = Translator.load(tmp_path, precision="float32")
    assert whole.model.quantization is whole.model.saved_quantization is None
    np.testing.assert_allclose(
        whole.score(TEXTS, TEXTS), translator.score(TEXTS, TEXTS), rtol=0.005
    )
    whole.save(tmp_path / "whole")
    assert describe(tmp_path / "whole")["precision"] == "float32"


@pytest.mark.once("texts, files and options: no tensor differs")
def test_load_refuses_another_tokenizer(saved, tmp_path):
    folder = copy(saved, tmp_path / "translator")
    texts = [" ".join(WORDS), "ten one"]
    SentencePieceTokenizer.train(texts, texts, vocab_size=56, byte_fallback=False).save(folder)
    with pytest.raises(ValueError, match="not the one its model was trained with"):
        Translator.load(folder)
