"""One saved folder of another, and what one is."""

import importlib.util
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from keras_transformer import cli
from keras_transformer.models import (
    BERT,
    GPT,
    BERTConfig,
    GPTConfig,
    ViT,
    ViTConfig,
    enable_lora,
    merged,
)
from keras_transformer.saved.folder import save_folder
from keras_transformer.saved.model_files import count_parameters
from keras_transformer.system.files import write_json
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.text.translation_prompt import builtin_prompts
from keras_transformer.translate.translator import Translator
from keras_transformer.weights import read_weights, save_weights, weights_of, write_weights
from keras_transformer.weights.state import write_state


def test_export_hands_its_options_on(run, folder, monkeypatch):
    calls = []

    def record(*arguments, **options):
        calls.append((arguments, options))
        return Path("out/7")

    monkeypatch.setattr("keras_transformer.export.saved_model", record)
    options = ["--version", 7, "--beam-size", 2, "--length-penalty", 1, "--max-extra-length", 9]
    result = run("export", folder, "out", *options, "--jit-compile", "--overwrite")
    assert result.stdout == f"{Path('out/7')}\n"
    [((given, out), options)] = calls
    assert (given, out) == (folder, Path("out"))
    assert options == dict(
        version=7,
        beam_size=2,
        length_penalty=1.0,
        max_extra_length=9,
        jit_compile=True,
        overwrite=True,
    )


@pytest.mark.parametrize("name", ["hugging-face", "ctranslate2", "marian", "onnx", "gguf", "web"])
def test_export_in_another_format(run, folder, monkeypatch, name):
    calls = []
    exporter = f"keras_transformer.export.{name.replace('-', '_')}"
    monkeypatch.setattr(exporter, lambda *x, **y: calls.append((x, y)))
    options = ["--quantization", "int8"] if name in ("ctranslate2", "gguf") else []
    run("export", folder, "out", "--format", name, *options)
    expected = dict(overwrite=False) | (dict(quantization="int8") if options else {})
    assert calls == [((folder, Path("out")), expected)]
    result = run("export", folder, "out", "--format", name, "--beam-size", 2, status=2)
    assert f"--beam-size is no option of --format {name}" in result.stderr


def test_export_says_in_one_line_what_is_in_its_way(run, failure, folder, tmp_path):
    (tmp_path / "out" / "1").mkdir(parents=True)
    if not importlib.util.find_spec("tensorflow_text"):
        pytest.skip("exporting needs tensorflow-text")
    assert "exists: choose another" in failure(run("export", folder, tmp_path / "out", status=2))


def test_import_lists_the_prompts(run):
    shown = "".join(run("import", "--help").stdout.replace("│", "").split())
    assert ",".join(builtin_prompts()) in shown


def test_averages_to_a_file_or_a_translator(run, translator, folder, tmp_path):
    write_weights(tmp_path / "epoch-1" / "weights.safetensors", translator.model)
    weights = weights_of(translator.model)
    other = tmp_path / "other.safetensors"
    save_weights(other, {name: value + 2 for name, value in weights.items()})
    checkpoints = [tmp_path / "epoch-1", other]
    run("average", *checkpoints, "--out", tmp_path / "mean.safetensors")
    shutil.copytree(folder, tmp_path / "run")
    run("average", *checkpoints, "--out", tmp_path / "mean", "--translator", tmp_path / "run")
    mean = weights_of(Translator.load(tmp_path / "mean").model)
    for name, value in weights.items():
        np.testing.assert_allclose(mean[name], value + 1, atol=1e-6)
    run("average", tmp_path / "mean.safetensors", "--out", tmp_path / "same.safetensors")
    # Not the bytes: the order of the files' metadata is random.
    mean, same = (read_weights(tmp_path / f"{x}.safetensors") for x in ("mean", "same"))
    assert list(mean) == list(same)
    for name, value in mean.items():
        np.testing.assert_array_equal(same[name], value)


def test_a_checkpoint_of_lora_becomes_a_translator(run, failure, translator, folder, tmp_path):
    shutil.copytree(folder, tmp_path / "run")
    trained = Translator.load.__wrapped__(tmp_path / "run")
    enable_lora(trained.model, rank=2)
    for weight in trained.model.trainable_weights:
        weight.assign(np.full(weight.shape, 0.5, "float32"))
    write_weights(tmp_path / "epoch-1" / "weights.safetensors", trained.model)
    out = ["--out", tmp_path / "merged", "--translator", tmp_path / "run"]
    checkpoint = tmp_path / "epoch-1"
    assert "give only one" in failure(run("average", checkpoint, checkpoint, *out, status=2))
    run("average", checkpoint, *out)
    before, after = weights_of(translator.model), weights_of(Translator.load(out[1]).model)
    name = "encoder/block_0/feed_forward/hidden/kernel"
    np.testing.assert_allclose(after.pop(name), before.pop(name) + 2 * 0.5 * 0.5, atol=1e-6)
    assert before.keys() == after.keys()


def test_an_adapter_is_described_and_merged(run, failure, translator, folder, tmp_path):
    adapted = Translator(merged(translator.model), translator.tokenizer, "en", "de")
    enable_lora(adapted.model, 2, alpha=4)
    adapted.save(tmp_path / "adapter", base=folder)
    shown = run("info", tmp_path / "adapter").stdout
    for name, value in (("rank", 2), ("alpha", 4)):
        assert re.search(rf"adapter {name} +{value}\n", shown)
    assert folder.name in re.search(r"adapter base +(.*)\n", shown)[1]
    assert run("merge", tmp_path / "adapter", tmp_path / "out").stdout == f"{tmp_path / 'out'}\n"
    assert "adapter" not in run("info", tmp_path / "out").stdout
    text = run("translate", tmp_path / "adapter", "--max-extra-length", 2, stdin="one\n").stdout
    assert run("translate", tmp_path / "out", "--max-extra-length", 2, stdin="one\n").stdout == text
    assert "out exists" in failure(run("merge", tmp_path / "adapter", tmp_path / "out", status=2))
    result = run("merge", folder, tmp_path / "third", status=2)
    assert "folder must be that of an adapter" in failure(result)


def test_info_shows_sizes_and_versions(run, translator, folder):
    shown = run("info", folder).stdout
    for value in (
        "translation",
        "en -> de",
        f"{translator.model.count_params():,}",
        "SentencePieceTokenizer",
    ):
        assert value in shown
    assert run("--version").stdout.startswith("keras-transformer ")


def test_info_of_what_reads_one_text_or_none(run, randomize, tmp_path):
    sizes = dict(d_model=8, d_ff=8, num_layers=1, num_heads=2)
    tokenizer = TextTokenizer.train(["a b"], "characters")
    vit = ViT(ViTConfig(3, image_size=8, patch_size=4, **sizes))
    for task, model, reads in (
        ("causal_lm", GPT(GPTConfig(9, **sizes, max_length=8)), tokenizer),
        ("text_classification", BERT(BERTConfig(9, **sizes, labels=("good", "bad"))), tokenizer),
        ("image_classification", vit, None),
    ):
        save_folder(tmp_path / task, model, reads, {"task": task})
        shown = run("info", tmp_path / task).stdout
        assert task in shown and f"{model.count_params():,}" in shown
        assert ("TextTokenizer" in shown) == (reads is not None)
    classes = [str(number) for number in range(12)]
    save_folder(tmp_path / task, model, reads, {"task": task, "classes": classes})
    assert "'8', '9', ... (12 in all)]" in run("info", tmp_path / task).stdout
    write_json(tmp_path / task / "metrics.json", {"test_accuracy": 0.75, "dev": {"f1": 0.5}})
    shown = run("info", tmp_path / task).stdout
    assert "\nmetrics.json\ntest_accuracy  0.75\n\ndev\nf1  0.50\n" in shown
    (tmp_path / task / "model.keras").write_bytes(b"PK")
    assert "model.keras cannot be read" in run("info", tmp_path / task, status=2).stderr


def test_info_of_an_edited_config_is_a_description_or_one_line(run, failure, folder, tmp_path):
    folder = shutil.copytree(folder, tmp_path / "edited")
    config = json.loads((folder / "config.json").read_text())
    config |= {"task": "speech", "hearing": {"sample_rate": 8000}}
    refused = []
    for name in config:
        for value in (None, False, 3, ["x"], {"x": 1}, ...):
            changed = {k: v for k, v in (config | {name: value}).items() if v is not ...}
            write_json(folder / "config.json", changed)
            result = CliRunner().invoke(cli.app, ["info", str(folder)])
            if result.exit_code:
                assert result.exit_code == 2 and name in failure(result)
                refused.append(name)
            else:
                assert f"{count_parameters(folder):,}" in result.stdout
    counts = {name: refused.count(name) for name in config}
    assert counts == {
        "format": 6, "source_language": 4, "target_language": 4, "tokenizer": 4, "model": 5,
        "task": 5, "hearing": 0,
    }  # fmt: skip


def test_info_says_in_a_sentence_what_else_a_folder_is(run, failure, translator, tmp_path):
    translator.model.compile("adam", "mse")
    translator.model.optimizer.build(translator.model.trainable_variables)
    state = {"run": {}, "history": [{"loss": 2.5}] * 3}
    write_state(tmp_path / "run" / "checkpoints" / "epoch-0003", translator.model, state)
    state = tmp_path / "run" / "checkpoints" / "unfinished" / "state.json"
    write_json(state, {"run": {}, "history": [{"loss": 2.5}] * 3, "step": 17})
    (state.parent / "weights.safetensors").touch()
    for name in ("saved_model.pb", "tf/1/saved_model.pb", "onnx/encoder.onnx", "onnx/decoder.onnx"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for name in ("model.bin", "config.json", "shared_vocabulary.json"):
        write_json(tmp_path / "ct2" / name, {})
    for name in ("theirs", "js"):
        write_json(tmp_path / name / "config.json", {"model_type": "marian"})
    write_json(tmp_path / "js" / "onnx" / "encoder_model.onnx", {})
    for name, said in {
        "run/checkpoints/epoch-0003": "is a checkpoint after epoch 3 (loss 2.5); keras-transformer",
        "run/checkpoints/unfinished": "is a checkpoint after epoch 3 and step 17 (loss 2.5);",
        "run/checkpoints": "a run that has not saved its model yet; its last checkpoint is",
        "run": "a run that has not saved its model yet; its last checkpoint is",
        "": "is a SavedModel; TensorFlow",
        "tf": "is a SavedModel; TensorFlow",
        "onnx": "is an ONNX model",
        "js": "is an ONNX model for transformers.js",
        "ct2": "is a CTranslate2 model",
        "theirs": "is a Hugging Face checkpoint of type marian; `keras-transformer import",
        "saved_model.pb": "is a file; give the folder of a saved model.",
    }.items():
        shown = run("info", tmp_path / name).stdout
        assert said in shown and shown.count("\n") == 1
    (tmp_path / "empty").mkdir()
    assert "it has no config.json" in failure(run("info", tmp_path / "empty", status=2))
    assert "there is no such folder" in failure(run("info", tmp_path / "absent", status=2))
    state.write_text("{")
    assert "state.json is not valid JSON" in failure(run("info", tmp_path / "run", status=2))
