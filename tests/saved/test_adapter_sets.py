"""Adapters of one base: each alone, switched, in threads, merged; and what is no adapter of it."""

import json
import shutil
import threading

import keras
import numpy as np
import pytest

from keras_transformer import Adapters, TextClassifier, Translator
from keras_transformer.backend import IS_EAGER
from keras_transformer.models import BERT, BERTConfig, enable_lora
from keras_transformer.saved.adapter_sets import merge
from keras_transformer.saved.contents import ADAPTER
from keras_transformer.saved.folder import save_folder
from keras_transformer.text.text_tokenizer import TextTokenizer
from tests.small_translator import SHORT, TEXTS, made_tokenizer, make
from tests.tiny import tiny

IDS = {
    "source_ids": np.array([[4, 5, 6, 3], [7, 8, 3, 0]], "int32"),
    "target_ids": np.array([[2, 9, 10, 11], [2, 12, 4, 0]], "int32"),
}


def logits(model, inputs=IDS):
    return keras.ops.convert_to_numpy(keras.ops.cast(model(inputs), "float32"))


def fill_lora(model, seed):
    """Random products, as if trained, so large that they change translations."""
    rng = np.random.default_rng(seed)
    for weight in model.trainable_weights:
        weight.assign(rng.normal(size=weight.shape) * 0.5)


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    """A folder with a base, adapters of it of two ranks, and each merged into a whole model."""
    room = tmp_path_factory.mktemp("adapters")
    make(made_tokenizer()).save(room / "base")
    for seed, (name, rank, alpha) in enumerate([("law", 2, None), ("sport", 3, 6)]):
        translator = Translator.load(room / "base")
        enable_lora(translator.model, rank, alpha)
        fill_lora(translator.model, seed)
        translator.save(room / name, base=room / "base")
        translator.save(room / f"{name}-whole")
    return room


@pytest.fixture(scope="module")
def whole(room):
    """What each merged adapter gives: logits and translations."""
    found = {}
    for name in ("law", "sport"):
        translator = Translator.load(room / f"{name}-whole")
        found[name] = logits(translator.model), translator.translate(TEXTS, **SHORT)
    return found


@pytest.fixture(scope="module")
def loaded(room):
    translator = Translator.load(room / "base")
    adapters = Adapters(translator.model)
    assert [adapters.load(room / name) for name in ("law", "sport")] == ["law", "sport"]
    return translator, adapters


@pytest.fixture
def base(loaded):
    """A translator with its two adapters, none of them in use."""
    loaded[1].use(None)
    return loaded


@pytest.mark.once("tests/models/test_lora.py merges under each")
def test_each_of_two_gives_what_it_gives_merged(room, whole, base):
    translator, adapters = base
    plain = translator.translate(TEXTS, **SHORT)
    before = translator.model.get_weights()
    for name in ("law", "sport", "law"):
        adapters.use(name)
        np.testing.assert_allclose(logits(translator.model), whole[name][0], atol=1e-5)
        assert translator.translate(TEXTS, **SHORT) == whole[name][1]
        alone = Translator.load(room / name)
        np.testing.assert_allclose(logits(alone.model), whole[name][0], atol=1e-5)
        assert (alone.source_language, alone.target_language) == ("en", "xx")
    assert plain != whole["law"][1] != whole["sport"][1] != plain
    adapters.use(None)
    for value, old in zip(translator.model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(value, old)
    assert translator.translate(TEXTS, **SHORT) == plain


@pytest.mark.once("made of parts that are tested under each backend")
def test_the_weights_are_those_of_the_equation(room, base):
    translator, adapters = base
    kernel = translator.model.encoder.blocks[0].feed_forward.hidden._kernel
    old = keras.ops.convert_to_numpy(kernel).copy()
    adapters.use("sport")
    arrays = Adapters(translator.model)  # a second object sees the changed weights as its base
    with pytest.raises(ValueError, match="sport is not an adapter of this base: the values of"):
        arrays.load(room / "sport")
    from safetensors.numpy import load_file

    files = load_file(room / "sport" / ADAPTER)
    layer = kernel.path.rpartition("/")[0]
    product = files[f"{layer}/lora_kernel_a"] @ files[f"{layer}/lora_kernel_b"]
    found = keras.ops.convert_to_numpy(kernel)
    np.testing.assert_allclose(found, old + 6 / 3 * product, atol=1e-6)


@pytest.mark.skipif(IS_EAGER, reason="nothing is compiled")
def test_a_switch_compiles_nothing(base, monkeypatch):
    translator, adapters = base
    translator.translate(TEXTS, **SHORT)
    monkeypatch.setattr(type(translator.model), "prefill", None)  # tracing would call it
    for name in ("law", None, "sport"):
        adapters.use(name)
        translator.translate(TEXTS, **SHORT)


def test_threads_that_use_other_adapters_wait(whole, base):
    translator, adapters = base
    expected = {name: whole[name][1] for name in whole}
    expected[None] = translator.translate(TEXTS, **SHORT)
    wrong = []

    def work(name):
        for _ in range(3):
            with adapters.using(name):
                if translator.translate(TEXTS, **SHORT) != expected[name]:
                    wrong.append(name)

    threads = [threading.Thread(target=work, args=(name,)) for name in expected]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and adapters.active is None
    adapters.use("law")
    with adapters.using("sport"), adapters.using(None):
        assert adapters.active is None
    assert adapters.active == "law"


@pytest.mark.once("files: each backend switches adapters above")
def test_a_base_in_another_precision(room):
    translator = Translator.load(room / "base", "bfloat16")
    if translator.model._policy.compute_dtype != "bfloat16":
        pytest.skip("no bfloat16 on this machine")
    adapters = Adapters(translator.model)
    adapters.load(room / "law")
    adapters.use("law")
    alone = Translator.load(room / "law", "bfloat16")
    for value, expected in zip(
        translator.model.get_weights(), alone.model.get_weights(), strict=True
    ):
        assert value.dtype == expected.dtype
        np.testing.assert_allclose(value.astype("float32"), expected.astype("float32"), atol=0.02)
    assert Translator.load(room / "law", "int8").model.saved_quantization == "int8"


def test_merge_makes_a_whole_model(room, whole, tmp_path):
    merge(room / "law", tmp_path / "out")
    assert not (tmp_path / "out" / ADAPTER).exists()
    shutil.move(tmp_path / "out", tmp_path / "moved")  # it needs no base
    found = Translator.load(tmp_path / "moved")
    np.testing.assert_allclose(logits(found.model), whole["law"][0], atol=1e-5)
    with pytest.raises(FileExistsError, match="moved exists"):
        merge(room / "law", tmp_path / "moved")
    with pytest.raises(ValueError, match="folder must be that of an adapter"):
        merge(room / "base", tmp_path / "other")
    assert not (tmp_path / "other").exists()


def bert_of(head="masked_lm"):
    tokenizer = TextTokenizer.train(["a b c d"], "characters")
    sizes = dict(d_model=8, num_heads=2, num_layers=1, max_length=8, num_types=1)
    model = BERT(BERTConfig(tokenizer.vocab_size, pad_id=1, head=head, dropout=0.2, **sizes))
    rng = np.random.default_rng(3)
    model.set_weights([rng.normal(size=x.shape) for x in model.get_weights()])
    return model, tokenizer


@pytest.mark.once("files: each backend switches adapters above")
def test_an_adapter_brings_its_head(tmp_path):
    base, tokenizer = bert_of()
    save_folder(tmp_path / "base", base, tokenizer, {"task": "masked_language_model"})
    inputs, labels, found = {"token_ids": np.array([[2, 3, 4]], "int32")}, ("x", "y", "z"), []
    for seed in range(2):
        model = base.with_head("sequence_classification", labels=labels)
        head = {x.path for x in model.weights if not x.path.startswith(("embedding", "encoder"))}
        assert len(head) == 4  # kernel and bias of the pooler and the classifier
        enable_lora(model, 1 + seed, whole=head)
        assert sum(x.path in head for x in model.trainable_weights) == 4
        fill_lora(model, seed)
        TextClassifier(model, tokenizer).save(tmp_path / f"{seed}", base=tmp_path / "base")
        found.append(logits(model, inputs))
        again = TextClassifier.load(tmp_path / f"{seed}").model
        assert again.config.labels == labels
        np.testing.assert_allclose(logits(again, inputs), found[-1], atol=1e-5)
    assert np.abs(found[0] - found[1]).max() > 0.1
    adapters = Adapters(again)  # the second adapter is the base of none
    with pytest.raises(ValueError, match="0 is not an adapter of this base: the values of"):
        adapters.load(tmp_path / "0")
    # One encoder with a head serves both.
    model = base.with_head("sequence_classification", labels=labels)
    adapters = Adapters(model)
    for seed in range(2):
        adapters.load(tmp_path / f"{seed}")
        adapters.use(f"{seed}")
        np.testing.assert_allclose(logits(model, inputs), found[seed], atol=1e-5)
    with pytest.raises(ValueError, match="head of its model must be 'masked_lm', as in the base"):
        Adapters(base).load(tmp_path / "0")


@pytest.mark.once("files: each backend switches adapters above")
def test_other_bases_are_refused(room, base, tmp_path):
    translator, _ = base
    tokenizer = translator.tokenizer
    make(tokenizer, seed=6).save(tmp_path / "other")
    shutil.copytree(room / "law", tmp_path / "law")
    config = json.loads((tmp_path / "law" / "config.json").read_text())

    def load(**facts):
        changed = config | {"adapter": config["adapter"] | facts}
        (tmp_path / "law" / "config.json").write_text(json.dumps(changed))
        return Translator.load(tmp_path / "law")

    load(base=str(room / "base"))
    with pytest.raises(ValueError, match="law is an adapter of .*base, which is not there: write"):
        load()
    with pytest.raises(ValueError, match="law is not an adapter of .*other: the values of"):
        load(base="../other")
    Translator.load(room / "base", "int8").save(tmp_path / "int8")
    with pytest.raises(ValueError, match="its weights are of int8: adapters need floats"):
        load(base="../int8")
    with pytest.raises(ValueError, match='"rank" of the adapter .*law must be a whole number'):
        load(base="../other", rank=None)
    with pytest.raises(ValueError, match='"alpha" of the adapter .*law must be a number'):
        load(base="../other", alpha="x")
    with pytest.raises(ValueError, match='"base" of the adapter .*law must be a path, got 3'):
        load(base=3)
    model = Translator.load(tmp_path / "other").model
    with pytest.raises(ValueError, match="law is not an adapter of this base: the values of"):
        Adapters(model).load(room / "law")
    model = tiny("transformer")
    with pytest.raises(ValueError, match="source_vocab_size of its model must be 24, as in"):
        Adapters(model).load(room / "law")
    with pytest.raises(ValueError, match="law is not an adapter of this base: .* config fields"):
        Adapters(tiny("llama")).load(room / "law")
    model = Translator.load(room / "base", "int8").model
    with pytest.raises(ValueError, match="the quantization of the base must be None: load the"):
        Adapters(model)


def test_bad_input(room, base, tmp_path):
    _, adapters = base
    translator = Translator.load(room / "base")
    with pytest.raises(ValueError, match=r"name must be None or one of \['law', 'sport'\], got 'x"):
        adapters.use("x")
    with pytest.raises(ValueError, match="folder must be that of an adapter, with adapter.safe"):
        adapters.load(room / "base")
    adapters.use("law")
    with pytest.raises(ValueError, match="name must be another one: this adapter is in use"):
        adapters.load(room / "sport", "law")
    with pytest.raises(ValueError, match="model must be a model with LoRA"):
        translator.save(tmp_path / "a", base=room / "base")
    enable_lora(translator.model, 1)
    with pytest.raises(ValueError, match="base must be the folder of a saved model, got '.*x'"):
        translator.save(tmp_path / "a", base=room / "x")
    assert not (tmp_path / "a").exists()
    make(translator.tokenizer).save(tmp_path / "whole")
    with pytest.raises(ValueError, match="folder must be a folder without a model.keras"):
        translator.save(tmp_path / "whole", base=room / "base")
    shutil.copytree(room / "law", tmp_path / "law")
    (tmp_path / "law" / ADAPTER).write_bytes(b"x" * 100)
    with pytest.raises(ValueError, match="adapter.safetensors"):
        adapters.load(tmp_path / "law")
    (tmp_path / "law" / ADAPTER).unlink()
    with pytest.raises(ValueError, match="law is not a saved translator: it has no adapter.safe"):
        Translator.load(tmp_path / "law")
