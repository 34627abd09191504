"""Folders in Hugging Face's layout: files whole, packed or broken, and what cannot be written."""

import json

import numpy as np
import pytest
import torch
from keras import ops
from safetensors.numpy import load_file
from safetensors.torch import save_file as save_tensors

from keras_transformer.hub.hugging_face_checkpoint import read_model, write_model
from tests.hub.families.parity import configure, edit, marian, pair_batch


@pytest.fixture
def folder(tmp_path):
    """A small Marian checkpoint, whole."""
    torch.manual_seed(0)
    marian(encoder_layers=1, decoder_layers=1).save_pretrained(tmp_path)
    return tmp_path


def logits(model):
    source, target = pair_batch(model.config)
    return ops.convert_to_numpy(model({"source_ids": source, "target_ids": target}))


def test_sixteen_bits(folder):
    half = {
        k: torch.tensor(v).bfloat16() for k, v in load_file(folder / "model.safetensors").items()
    }
    save_tensors(half, folder / "model.safetensors", metadata={"format": "pt"})
    model = read_model(folder, dtype="float32")
    expected = half["model.encoder.layers.0.fc1.weight"].float().numpy().T
    kernel = model.encoder.blocks[0].feed_forward.hidden.kernel
    np.testing.assert_array_equal(ops.convert_to_numpy(kernel), expected)


def test_tied_copies_and_computed_tables_are_left_out(folder):
    expected = logits(read_model(folder))

    def copies(tensors):
        tensors["lm_head.weight"] = tensors["model.shared.weight"].copy()
        tensors["model.encoder.embed_positions.weight"] = np.zeros((64, 16), "float32")

    edit(folder, copies)
    np.testing.assert_array_equal(logits(read_model(folder)), expected)
    edit(folder, lambda tensors: tensors.pop("model.shared.weight"))
    np.testing.assert_array_equal(logits(read_model(folder)), expected)

    def another(tensors):
        copy = tensors["lm_head.weight"] + 1
        tensors["model.decoder.embed_tokens.weight"] = copy

    edit(folder, another)
    with pytest.raises(ValueError, match="must be equal: they are tied"):
        read_model(folder)


@pytest.mark.parametrize(
    "change,message",
    [
        (lambda x: x.update({"model.x": x["final_logits_bias"]}), "that the model lacks: model.x"),
        (lambda x: x.pop("final_logits_bias"), "lack final_logits_bias"),
        (
            lambda x: x.update(final_logits_bias=x["final_logits_bias"][:, :9].copy()),
            r"the weights in .* final_logits_bias must have the shape \(1, 53\), got \(1, 9\)",
        ),
        (
            lambda x: x.update({"lm_head.weight": x["model.shared.weight"] + 1}),
            "lm_head.weight and model.shared.weight in .* must be equal",
        ),
    ],
)
def test_weights_that_do_not_fit(folder, change, message):
    edit(folder, change)
    with pytest.raises(ValueError, match=message):
        read_model(folder)


def test_quantized_checkpoints(folder):
    for name, options in (
        ("quantization_config", dict(quant_method="bitsandbytes", load_in_8bit=True)),
        ("quantization_config", dict(quant_method="gptq", bits=4)),
        ("quantization_config", {}),
        ("compression_config", dict(quant_method="compressed-tensors")),
    ):
        configure(folder, **{name: options})
        method = options.get("quant_method")
        message = f"json has a {name} with the method {method!r}: .* `model.dequantize\\(\\)`"
        with pytest.raises(ValueError, match=message):
            read_model(folder)
        configure(folder, **{name: None})
    read_model(folder)


def test_configs_that_do_not_fit(folder):
    for value in (None, "0.1", -0.1):
        configure(folder, dropout=value)
        message = rf"config.json does not fit: dropout must be a number in \[0, 1\), got {value!r}"
        with pytest.raises(ValueError, match=message):
            read_model(folder)
    configure(folder, dropout=0.1, model_type=["marian"])
    with pytest.raises(ValueError, match=r"model_type in .*config.json must be .*\['marian'\]"):
        read_model(folder)
    configure(folder, model_type="marian")
    configure(folder, encoder_ffn_dim=48)
    with pytest.raises(ValueError, match=r"encoder.layers.0.fc1.weight must have .*\(48, 16\)"):
        read_model(folder)
    configure(folder, encoder_ffn_dim=24, decoder_attention_heads=3)
    with pytest.raises(ValueError, match="by decoder_attention_heads, got d_model=16 and .*=3"):
        read_model(folder)
    configure(folder, decoder_attention_heads=4, activation_function="mish")
    with pytest.raises(
        ValueError, match="activation_function must be one of .*'swish'.*, got 'mish'"
    ):
        read_model(folder)
    configure(folder, activation_function="gelu", eos_token_id=[0], decoder_start_token_id=None)
    assert read_model(folder).config.bos_id == 52
    configure(folder, model_type="brat")
    with pytest.raises(ValueError, match="model_type in .* must be one of .*'marian'.*'brat'"):
        read_model(folder)
    (folder / "config.json").write_text('{"model_type": "marian"}')
    with pytest.raises(ValueError, match="config.json lacks '"):
        read_model(folder)
    (folder / "config.json").unlink()
    with pytest.raises(FileNotFoundError, match="has no config.json"):
        read_model(folder)


def test_tokens_that_end(folder):
    """`generation_config.json` takes precedence over `config.json`, like in `transformers`."""
    configure(folder, eos_token_id=[3, 0])
    path = folder / "generation_config.json"
    for eos, expected in ((None, (3, 0)), (4, (4,)), ([0, 7, 7], (0, 7))):
        path.write_text(json.dumps({"eos_token_id": eos}))
        model = read_model(folder)
        assert model.config.eos_ids == expected
    write_model(folder / "again", model)
    written = json.loads((folder / "again" / "config.json").read_text())
    assert written["eos_token_id"] == written["forced_eos_token_id"] == [0, 7]
    assert read_model(folder / "again").config == model.config
    path.write_text('{"eos_token_id": [0, 53]}')
    message = r"generation_config.json does not fit config.json: eos_token_id must be in \[0, 53\)"
    with pytest.raises(ValueError, match=message):
        read_model(folder)
    path.write_text("[]")
    with pytest.raises(ValueError, match="generation_config.json must hold an object, got list"):
        read_model(folder)
    path.unlink()
    assert read_model(folder).config.eos_ids == (3, 0)
    configure(folder, eos_token_id=[3, 52])
    with pytest.raises(ValueError, match=r"pad_token_id and eos_token_id must differ, both are 52"):
        read_model(folder)


def test_models_that_cannot_be_written(tiny_transformer, tmp_path):
    ours = tiny_transformer()
    with pytest.raises(
        ValueError, match="cannot be written .* marian: it would be .*epsilon=1e-05"
    ):
        write_model(tmp_path / "out", ours)
    with pytest.raises(
        ValueError,
        match="checkpoint. marian: it would be read back with positions='sinusoidal_halves'",
    ):
        write_model(tmp_path / "out", ours, kind="marian")
    with pytest.raises(ValueError, match="checkpoint. t5: it stores T5 models"):
        write_model(tmp_path / "out", ours, kind="t5")
    with pytest.raises(ValueError, match="kind must be one of .* or None, got 'brat'"):
        write_model(tmp_path / "out", ours, kind="brat")
    recurrent = tiny_transformer(decoder_recurrence="ssru")
    with pytest.raises(ValueError, match="marian: .* decoder_recurrence=None"):
        write_model(tmp_path / "out", recurrent)
    assert not (tmp_path / "out").exists()
