"""Adapters in PEFT's layout: W + (alpha / r) B A in `transformers` is what ours compute."""

import dataclasses
import json

import keras
import numpy as np
import peft
import pytest
import torch
import transformers
from safetensors.numpy import load_file, save_file

from keras_transformer import Adapters
from keras_transformer.hub.hugging_face_checkpoint import read_model
from keras_transformer.hub.peft import CONFIG, TABLE, WEIGHTS, read_peft, write_peft
from keras_transformer.models import enable_lora
from keras_transformer.weights.adapters import Adapter
from tests.backends import cases

IDS = np.array([[3, 9, 4, 17, 5], [8, 2, 11, 6, 1]], "int32")


def write_base(kind, folder):
    torch.manual_seed(0)
    if kind == "llama":  # with grouped heads, whose fused columns are in another order
        config = transformers.LlamaConfig(
            vocab_size=24, hidden_size=16, intermediate_size=24, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=32,
            initializer_range=0.3,
        )  # fmt: skip
        theirs = transformers.LlamaForCausalLM(config)
    else:  # its weights are the transposed ones of dense layers
        config = transformers.GPT2Config(
            vocab_size=24, n_embd=16, n_layer=2, n_head=4, n_positions=32, initializer_range=0.3,
            bos_token_id=1, eos_token_id=2,
        )  # fmt: skip
        theirs = transformers.GPT2LMHeadModel(config)
    theirs.save_pretrained(folder)
    return theirs.eval()


def adapted(theirs, arrays, scale):
    """The logits of `transformers` with the products of these arrays."""
    state = {name: value.clone() for name, value in theirs.state_dict().items()}
    for name, a in arrays.items():
        if ".lora_A." in name:
            b = arrays[name.replace(".lora_A.", ".lora_B.")]
            module = name.removeprefix("base_model.model.").removesuffix(".lora_A.weight")
            product = torch.tensor(scale * (b @ a))
            weight = state[f"{module}.weight"]
            weight += product if "attn.c_" not in module and ".mlp.c_" not in module else product.T
    copy = type(theirs)(theirs.config).eval()
    copy.load_state_dict(state)
    with torch.no_grad():
        return copy(torch.tensor(IDS, dtype=torch.int64)).logits.numpy()


def logits(model):
    return keras.ops.convert_to_numpy(model({"token_ids": IDS}))


def write_theirs(folder, theirs, names, **facts):
    """What PEFT writes for these modules, of rank 3."""
    rng, arrays, modules = np.random.default_rng(0), {}, dict(theirs.named_modules())
    for name in names:
        outputs, inputs = modules[name].weight.shape
        if hasattr(modules[name], "nf"):
            outputs, inputs = inputs, outputs
        own = f"base_model.model.{name}.lora_"
        arrays[f"{own}A.weight"] = rng.normal(size=(3, inputs)).astype("float32") * 0.3
        arrays[f"{own}B.weight"] = rng.normal(size=(outputs, 3)).astype("float32") * 0.3
    folder.mkdir(exist_ok=True)
    save_file(arrays, folder / WEIGHTS, metadata={"format": "pt"})
    plain = dict(peft_type="LORA", r=3, lora_alpha=6, bias="none", modules_to_save=None)
    (folder / CONFIG).write_text(json.dumps(plain | facts))
    return arrays


NAMES = {
    "llama": [
        "model.layers.0.self_attn.q_proj",
        "model.layers.0.self_attn.v_proj",
        "model.layers.1.self_attn.k_proj",
        "model.layers.1.mlp.down_proj",
    ],
    "gpt2": ["transformer.h.0.attn.c_attn", "transformer.h.1.mlp.c_proj"],
}


@pytest.mark.parametrize("kind", cases(["llama", "gpt2"], "llama"))
def test_an_adapter_of_peft(kind, tmp_path):
    theirs = write_base(kind, tmp_path)
    arrays = write_theirs(tmp_path / "adapter", theirs, NAMES[kind])
    model = read_model(tmp_path, "float32")
    before = logits(model)
    adapters = Adapters(model)
    adapters.load(tmp_path / "adapter", "theirs")
    adapters.use("theirs")
    expected = adapted(theirs, arrays, 6 / 3)
    np.testing.assert_allclose(logits(model), expected, atol=1e-4)
    assert np.abs(before - expected).max() > 0.1
    write_theirs(tmp_path / "adapter", theirs, NAMES[kind], use_rslora=True)
    adapters.load(tmp_path / "adapter", "by the root")
    adapters.use("by the root")
    expected = adapted(theirs, arrays, 6 / 3**0.5)
    np.testing.assert_allclose(logits(model), expected, atol=1e-4)


@pytest.mark.once("the file is written by NumPy")
@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_an_adapter_for_peft(kind, tmp_path):
    theirs = write_base(kind, tmp_path)
    model = read_model(tmp_path, "float32")
    enable_lora(model, 2, alpha=6)
    rng = np.random.default_rng(0)
    for weight in model.trainable_weights:
        weight.assign(rng.normal(size=weight.shape) * 0.2)
    write_peft(tmp_path / "out", Adapter.of(model), model.config, "some/base")
    arrays = load_file(tmp_path / "out" / WEIGHTS)
    np.testing.assert_allclose(logits(model), adapted(theirs, arrays, 6 / 2), atol=1e-4)
    facts = json.loads((tmp_path / "out" / CONFIG).read_text())
    assert (facts["r"], facts["lora_alpha"], facts["peft_type"]) == (2, 6, "LORA")
    assert facts["fan_in_fan_out"] == (kind == "gpt2")
    modules = "q_proj k_proj v_proj o_proj gate_proj up_proj down_proj"
    modules = modules if kind == "llama" else "c_attn c_proj c_fc"
    assert facts["target_modules"] == sorted(modules.split())
    assert facts["base_model_name_or_path"] == "some/base"
    again = read_model(tmp_path, "float32")
    adapters = Adapters(again)
    adapters.load(tmp_path / "out")
    adapters.use("out")
    np.testing.assert_allclose(logits(again), logits(model), atol=1e-4)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A LLaMA's folder, and ours."""
    folder = tmp_path_factory.mktemp("base")
    write_base("llama", folder)
    return folder, read_model(folder, "float32")


# Values that PEFT 0.21 takes, of fields that change what the adapter computes.
UNUSUAL = {
    "peft_type": "ADALORA",
    "bias": "all",
    "rank_pattern": {"q_proj": 2},
    "alpha_pattern": {"q_proj": 2},
    "modules_to_save": ["lm_head"],
    "trainable_token_indices": [1, 2],
    "target_parameters": ["mlp.weight"],
    "alora_invocation_tokens": [3],
    "layer_replication": [[0, 2], [1, 2]],
    "init_lora_weights": "pissa",
}


@pytest.mark.once("files")
def test_every_field_is_in_a_column(base, tmp_path):
    """Each field of PEFT's class: read, harmless, or refused by name at an unusual value."""
    theirs = {field.name for field in dataclasses.fields(peft.LoraConfig)}
    assert theirs == {*TABLE.read, *TABLE.harmless, *TABLE.refused}
    folder, model = base
    write_theirs(tmp_path, transformers.LlamaForCausalLM.from_pretrained(folder), NAMES["llama"])
    written = peft.LoraConfig().to_dict() | dict(r=3, lora_alpha=6, peft_type="LORA")
    for name, values in TABLE.refused.items():
        value = UNUSUAL.get(name, {"a": 1} if values == (None,) else True)
        (tmp_path / CONFIG).write_text(json.dumps(written | {name: value}))
        with pytest.raises(
            ValueError, match=f"^{name} in .*{CONFIG} is .*, which is not supported"
        ):
            read_peft(tmp_path, model)
    (tmp_path / CONFIG).write_text(json.dumps(written | dict(invented=1)))
    with pytest.warns(UserWarning, match="fields that are not known: invented"):
        read_peft(tmp_path, model)


def trained(folder, out, **options):
    """Save an adapter of PEFT whose factors have moved; return what PEFT computes with it."""
    torch.manual_seed(0)
    theirs = transformers.LlamaForCausalLM.from_pretrained(folder)
    config = peft.LoraConfig(r=4, lora_alpha=6, target_modules=["q_proj", "down_proj"], **options)
    adapted = peft.get_peft_model(theirs, config)
    with torch.no_grad():
        for name, weight in adapted.named_parameters():
            if ".lora_" in name:
                weight += 0.3 * torch.randn_like(weight)
    adapted.save_pretrained(out)
    theirs = transformers.LlamaForCausalLM.from_pretrained(folder)
    again = peft.PeftModel.from_pretrained(theirs, out).eval()
    with torch.no_grad():
        return again(torch.tensor(IDS, dtype=torch.int64)).logits.numpy()


@pytest.mark.once("files")
@pytest.mark.parametrize(
    "options",
    [
        dict(init_lora_weights="gaussian"),
        dict(init_lora_weights="orthogonal", use_rslora=True),
        dict(init_lora_weights="mica"),
        dict(init_lora_weights=False, layers_to_transform=[1], lora_dropout=0.5),
        dict(exclude_modules=["model.layers.0.mlp.down_proj"], fan_in_fan_out=True),
    ],
    ids=str,
)
def test_what_peft_itself_computes(base, tmp_path, options):
    folder, _ = base
    expected = trained(folder, tmp_path, **options)
    model = read_model(folder, "float32")
    before = logits(model)
    adapters = Adapters(model)
    adapters.load(tmp_path, "theirs")
    adapters.use("theirs")
    np.testing.assert_allclose(logits(model), expected, atol=1e-4)
    assert np.abs(before - expected).max() > 0.1


@pytest.mark.once("files")
@pytest.mark.parametrize("start", ["pissa", "pissa_niter_4", "olora"])
def test_adapters_that_changed_their_base(base, tmp_path, start):
    """PEFT changes the base anew when it loads them; the logits were off by more than 1."""
    folder, model = base
    trained(folder, tmp_path, init_lora_weights=start)
    with pytest.raises(ValueError, match=f"init_lora_weights in .* is '{start}', which is not sup"):
        read_peft(tmp_path, model)


@pytest.mark.once("files")
def test_what_is_refused(tmp_path):
    theirs, folder = write_base("llama", tmp_path), tmp_path / "adapter"
    model = read_model(tmp_path, "float32")
    for facts, message in (
        (dict(peft_type="IA3"), "peft_type in .* is 'IA3', .* supported is 'LORA'"),
        (dict(r=0), "r in .* must be a whole number of at least 1, got 0"),
        (dict(lora_alpha="x"), "lora_alpha in .* must be a number, got 'x'"),
    ):
        write_theirs(folder, theirs, NAMES["llama"], **facts)
        with pytest.raises(ValueError, match=message):
            read_peft(folder, model)
    arrays = write_theirs(folder, theirs, NAMES["llama"])
    name = next(x for x in arrays if "down_proj.lora_B" in x)
    for changed, message in (
        (arrays | {name: arrays[name][:-1]}, "the shapes of .*down_proj.weight must be"),
        (
            {x: y for x, y in arrays.items() if x != name},
            "changes .*down_proj.lora_A.weight",
        ),
        (arrays | {"base_model.model.x.lora_embedding_A": arrays[name]}, "changes x.lora_embed"),
    ):
        save_file(changed, folder / WEIGHTS)
        with pytest.raises(ValueError, match=message):
            read_peft(folder, model)
    broken = arrays | {name: arrays[name] * np.float32("nan")}
    save_file(broken, folder / WEIGHTS)
    with pytest.raises(ValueError, match=f"{name} in .*{WEIGHTS} holds .* NaN or infinite"):
        read_peft(folder, model)
    save_file({}, folder / WEIGHTS)
    with pytest.raises(ValueError, match="the products in .* must be one or more, got 0"):
        read_peft(folder, model)
    (folder / WEIGHTS).unlink()
    with pytest.raises(FileNotFoundError):
        read_peft(folder, model)
    whole = Adapter({}, {"output/kernel": np.zeros((2, 2))}, None, 1, 1)
    with pytest.raises(ValueError, match=r"weights trained whole must be none: .*, got \['output"):
        write_peft(tmp_path / "out", whole, model.config)
    assert not (tmp_path / "out").exists()
