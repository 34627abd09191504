"""Written GGUF files: read back by `gguf`, by `transformers` and by our own import."""

import gguf
import numpy as np
import pytest
import torch
import transformers

from keras_transformer.hub.gguf.checkpoint import unpacked
from keras_transformer.hub.gguf.writer import write_gguf
from keras_transformer.hub.hugging_face_checkpoint import read_model
from keras_transformer.models import GPT, Gemma, GemmaConfig, GPTConfig, LLaMA, LLaMAConfig
from keras_transformer.search import Generation
from keras_transformer.weights import weights_of
from tests.hub.families.parity import their_logits
from tests.hub.gguf.files import TOKENS
from tests.hub.gguf.test_checkpoint import logits_of

SIZES = dict(
    vocab_size=300, d_model=32, d_ff=64, num_layers=2, num_heads=4, max_length=64, pad_id=0,
    bos_id=0, eos_id=0,
)  # fmt: skip
LLAMA3 = dict(
    rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
    original_max_position_embeddings=8192,
)  # fmt: skip
MODELS = {
    "llama": (LLaMA, LLaMAConfig(**SIZES, num_kv_heads=2)),
    "llama-tied-wide": (LLaMA, LLaMAConfig(**SIZES, head_dim=16, tie_output=True)),
    "llama-bias": (LLaMA, LLaMAConfig(**SIZES, qkv_bias=True, output_bias=True)),
    "llama3": (LLaMA, LLaMAConfig(**SIZES, theta=5e5, scaling=LLAMA3, head_dim=32)),
    "qwen2": (LLaMA, LLaMAConfig(**SIZES, qkv_bias=True, num_kv_heads=2)),
    "qwen3": (LLaMA, LLaMAConfig(**SIZES, qk_norm=True, head_dim=16)),
    "smollm3": (LLaMA, LLaMAConfig(**SIZES | dict(num_layers=4), no_rotary=(3,))),
    "gpt2": (GPT, GPTConfig(**SIZES)),
}
IDS = np.random.default_rng(0).integers(3, 299, (2, 20)).astype("int32")


def random_model(name):
    kind, config = MODELS[name]
    model, rng = kind(config), np.random.default_rng(1)
    for weight in model.weights:
        ones = float(weight.path.endswith(("scale", "gamma")))
        weight.assign(rng.normal(ones, 0.3, weight.shape))
    return model


def write(path, model, **options):
    write_gguf(path, model.config, weights_of(model), TOKENS, **options)
    return path


@pytest.mark.parametrize("name", MODELS)
def test_the_same_model_again(name, tmp_path):
    model = random_model(name)
    path = write(tmp_path / "tiny.gguf", model, quantization="F32")
    with unpacked(path) as folder:
        again = read_model(folder)
    np.testing.assert_allclose(logits_of(again, IDS), logits_of(model, IDS), atol=1e-4)
    known = [tensor.name for tensor in gguf.GGUFReader(path).tensors]
    kind = gguf.GGUFReader(path).fields["general.architecture"].contents()
    arch = next(x for x, y in gguf.MODEL_ARCH_NAMES.items() if y == kind)
    names = {x for _, x in gguf.get_tensor_name_map(arch, 9).mapping.values()}
    assert {x.rpartition(".")[0] for x in known} - {"rope_freqs"} <= names
    # `transformers` 5.23 reads no biases of a LLaMA, no factors of rates, no widths of heads of a
    # Qwen3, no lengths of a GPT-2 and no SmolLM3.
    if name in ("llama", "llama-tied-wide", "qwen2"):
        auto = transformers.AutoModelForCausalLM
        theirs = auto.from_pretrained(tmp_path, gguf_file=path.name, dtype=torch.float32).eval()
        np.testing.assert_allclose(logits_of(again, IDS), their_logits(theirs, IDS), atol=1e-4)


@pytest.mark.once("files have no backend")
@pytest.mark.parametrize("quantization,tolerance", [("F16", 0.01), ("Q8_0", 0.2)])
def test_quantizations(quantization, tolerance, tmp_path):
    model = random_model("llama")
    path = write(tmp_path / "tiny.gguf", model, quantization=quantization)
    with unpacked(path) as folder:
        result = logits_of(read_model(folder), IDS)
    expected = logits_of(model, IDS)
    assert 0 < np.abs(result - expected).max() < tolerance * np.abs(expected).max()
    kinds = {x.name: x.tensor_type.name for x in gguf.GGUFReader(path).tensors}
    assert kinds["blk.0.attn_q.weight"] == quantization
    assert kinds["output_norm.weight"] == "F32"


@pytest.mark.once("files have no backend")
def test_rows_that_are_no_blocks_have_16_bits(tmp_path):
    sizes = SIZES | dict(d_model=24, d_ff=64, head_dim=8)
    model = LLaMA(LLaMAConfig(**sizes))
    path = write(tmp_path / "tiny.gguf", model, quantization="Q8_0")
    kinds = {x.name: x.tensor_type.name for x in gguf.GGUFReader(path).tensors}
    assert kinds["blk.0.attn_q.weight"] == "F16" and kinds["blk.0.attn_output.weight"] == "Q8_0"


@pytest.mark.once("files have no backend")
def test_search_and_name(tmp_path):
    search = Generation(temperature=0.5, top_k=5, repetition_penalty=1.25)
    path = write(tmp_path / "tiny.gguf", random_model("llama"), search=search, name="Tiny")
    facts = {x: y.contents() for x, y in gguf.GGUFReader(path).fields.items()}
    assert facts["general.name"] == "Tiny" and facts["general.file_type"] == 1
    assert facts["general.sampling.temp"] == 0.5 and facts["general.sampling.top_k"] == 5
    assert facts["general.sampling.penalty_repeat"] == 1.25
    assert "general.sampling.top_p" not in facts
    path = write(tmp_path / "greedy.gguf", random_model("llama"), search=Generation())
    assert not [x for x in gguf.GGUFReader(path).fields if "sampling" in x]


@pytest.mark.once("errors come before a backend")
@pytest.mark.parametrize(
    "config,message",
    [
        (LLaMAConfig(**SIZES, window=8), "the family of the model must be one of .*'mistral'"),
        (LLaMAConfig(**SIZES, num_experts=2), "the family of the model must be one of .*'mixtral'"),
        (LLaMAConfig(**SIZES, no_rotary=(0,)), "it would be read with no_rotary="),
        (GPTConfig(**SIZES, activation="relu"), "it would be read with activation='gelu_tanh'"),
        (GemmaConfig(**SIZES, head_dim=16, num_kv_heads=2), "the family of the model must be"),
    ],
)
def test_what_a_file_cannot_hold(config, message, tmp_path):
    kinds = {LLaMAConfig: LLaMA, GPTConfig: GPT, GemmaConfig: Gemma}
    with pytest.raises(ValueError, match=message):
        write(tmp_path / "tiny.gguf", kinds[type(config)](config))


@pytest.mark.once("errors come before a backend")
def test_bad_arguments(tmp_path):
    model = random_model("llama")
    with pytest.raises(ValueError, match="quantization must be one of .*, got 'int8'"):
        write(tmp_path / "tiny.gguf", model, quantization="int8")
    model.get_layer("embedding").weights[0].assign(np.full((300, 32), 1e5))
    with pytest.raises(ValueError, match="numbers of token_embd.weight must be at most 65504"):
        write(tmp_path / "tiny.gguf", model)
