"""Folders in Hugging Face's layout: files whole, packed or broken, and what cannot be written."""

import json
import shutil

import numpy as np
import pytest
import torch
from keras import ops
from safetensors.numpy import load_file, save_file
from safetensors.torch import save_file as save_tensors

from keras_transformer.checkpoints.hugging_face import read_model, write_model
from tests.checkpoints.families.parity import configure, edit, marian, pair_batch


@pytest.fixture
def folder(tmp_path):
    """A small Marian checkpoint, whole."""
    torch.manual_seed(0)
    marian(encoder_layers=1, decoder_layers=1).save_pretrained(tmp_path)
    return tmp_path


def logits(model):
    source, target = pair_batch(model.config)
    return ops.convert_to_numpy(model({"source_ids": source, "target_ids": target}))


def test_shards_and_pickles_hold_the_same(folder, tmp_path_factory):
    expected = logits(read_model(folder))
    tensors = load_file(folder / "model.safetensors")
    pickled = tmp_path_factory.mktemp("pickled")
    shutil.copy(folder / "config.json", pickled)
    weights = {name: torch.tensor(value) for name, value in tensors.items()}
    for archive in (True, False):  # the second as PyTorch before 1.6 wrote them
        path = pickled / "pytorch_model.bin"
        torch.save(weights, path, _use_new_zipfile_serialization=archive)
        np.testing.assert_array_equal(logits(read_model(pickled)), expected)
    path.unlink()
    places = {}
    for i, part in enumerate((sorted(weights)[::2], sorted(weights)[1::2])):
        places |= dict.fromkeys(part, f"pytorch_model-{i}.bin")
        torch.save({name: weights[name] for name in part}, pickled / f"pytorch_model-{i}.bin")
    (pickled / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": places}))
    np.testing.assert_array_equal(logits(read_model(pickled)), expected)
    names = sorted(tensors)
    parts = {"one.safetensors": names[::2], "two.safetensors": names[1::2]}
    for shard, part in parts.items():
        save_file({name: tensors[name] for name in part}, folder / shard)
    places = {name: shard for shard, part in parts.items() for name in part}
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": places}))
    (folder / "model.safetensors").unlink()
    np.testing.assert_array_equal(logits(read_model(folder)), expected)
    places["of_nobody"] = "two.safetensors"
    index.write_text(json.dumps({"weight_map": places}))
    with pytest.raises(ValueError, match="two.safetensors lacks of_nobody, which the index says"):
        read_model(folder)
    (folder / "two.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="its shard two.safetensors is missing"):
        read_model(folder)


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
    with pytest.raises(ValueError, match="must be equal: they are one weight"):
        read_model(folder)


@pytest.mark.parametrize(
    "change,message",
    [
        (lambda x: x.update({"model.x": x["final_logits_bias"]}), "what no rule takes: model.x"),
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
        message = f"json has a {name} of the method {method!r}: .* `model.dequantize\\(\\)`"
        with pytest.raises(ValueError, match=message):
            read_model(folder)
        configure(folder, **{name: None})
    read_model(folder)


@pytest.mark.parametrize("pickled", [False, True])
@pytest.mark.parametrize("kind", ["int8", "uint8", "float8_e4m3fn"])
def test_weights_that_are_no_floats(folder, kind, pickled):
    """Without scales these are no weights, whatever the config says."""
    path, name = folder / "model.safetensors", "model.encoder.layers.0.fc1.weight"
    tensors = {x: torch.tensor(y) for x, y in load_file(path).items()}
    tensors[name] = tensors[name].to(getattr(torch, kind))
    tensors["model.encoder.embed_positions.weight"] = torch.zeros(3, dtype=torch.int64)  # unused
    if pickled:
        path.unlink()
        path = folder / "pytorch_model.bin"
        torch.save(tensors, path)
    else:
        save_tensors(tensors, path, metadata={"format": "pt"})
    with pytest.raises(ValueError, match=f"{name} in .*{path.name} must hold floats of 16 bits or"):
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
    with pytest.raises(ValueError, match=r"encoder_ffn_dim and decoder_ffn_dim must be equal"):
        read_model(folder)
    configure(folder, encoder_ffn_dim=24, activation_function="mish")
    with pytest.raises(
        ValueError, match="activation_function must be one of .*'swish'.*, got 'mish'"
    ):
        read_model(folder)
    configure(folder, activation_function="gelu", eos_token_id=[0], decoder_start_token_id=None)
    assert read_model(folder).config.bos_id == 52
    configure(folder, model_type="bart")
    with pytest.raises(ValueError, match="model_type in .* must be one of .*'marian'.*'bart'"):
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
    with pytest.raises(ValueError, match=r"pad_id and eos_id must differ, both are 52"):
        read_model(folder)


def test_broken_files(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match="no whole safetensors file"):
        read_model(folder)
    path.unlink()
    with pytest.raises(FileNotFoundError, match="holds no weights"):
        read_model(folder)
    (folder / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    with pytest.raises(ValueError, match="pytorch_model.bin cannot be read"):
        read_model(folder)


@pytest.mark.parametrize(
    "content,message",
    [
        ([torch.zeros(2)], "must hold tensors by their names, got a list"),
        (torch.zeros(2), "must hold tensors by their names, got a Tensor"),
        ({"model": {"x": torch.zeros(2)}}, "must hold tensors by their names: 'model' is a dict"),
    ],
    ids=["list", "tensor", "nested"],
)
def test_a_pickle_of_something_else(folder, content, message):
    (folder / "model.safetensors").unlink()
    torch.save(content, folder / "pytorch_model.bin")
    with pytest.raises(ValueError, match=f"pytorch_model.bin {message}"):
        read_model(folder)


def test_an_index_that_names_no_file(folder):
    (folder / "model.safetensors").unlink()
    places = {"weight_map": {"x": ["y"]}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(places))
    with pytest.raises(ValueError, match=r"weight_map in .*index.json must name files, got \['y'"):
        read_model(folder)


def test_models_that_cannot_be_written(tiny_transformer, tmp_path):
    ours = tiny_transformer()
    with pytest.raises(ValueError, match="cannot be written .* marian: it has .*epsilon=1e-05"):
        write_model(tmp_path / "out", ours)
    with pytest.raises(
        ValueError, match="checkpoint. marian: it has positions='sinusoidal_halves'"
    ):
        write_model(tmp_path / "out", ours, kind="marian")
    with pytest.raises(ValueError, match="checkpoint. t5: its models are T5s"):
        write_model(tmp_path / "out", ours, kind="t5")
    with pytest.raises(ValueError, match="kind must be one of .* or None, got 'bart'"):
        write_model(tmp_path / "out", ours, kind="bart")
    assert not (tmp_path / "out").exists()
