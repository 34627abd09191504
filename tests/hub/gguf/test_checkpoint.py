"""GGUF files of each architecture: the logits of `transformers`."""

import gguf
import numpy as np
import pytest
import torch
import transformers
from keras import ops

from keras_transformer import load_pretrained
from keras_transformer.hub.gguf.checkpoint import unpacked
from keras_transformer.hub.gguf.container import is_gguf
from keras_transformer.hub.hugging_face_checkpoint import read_model
from keras_transformer.language.causal_lm import CausalLM
from tests.backends import cases
from tests.hub.families.parity import their_logits
from tests.hub.gguf.files import (
    GPT2,
    SIZES,
    WIDE,
    byte_facts,
    facts_of,
    model_of,
    tensors_of,
    write,
    write_model,
)

FACTORS = dict(
    embedding_multiplier=3.0, residual_multiplier=0.5, attention_multiplier=0.2, logits_scaling=0.4
)
MODELS = {
    "llama": ("llama", "llama", SIZES),
    "llama-bias": ("llama", "llama", SIZES | dict(attention_bias=True)),
    "llama-tied-wide": ("llama", "llama", SIZES | WIDE | dict(tie_word_embeddings=True)),
    "smollm3": ("smollm3", "smollm3", SIZES | dict(num_hidden_layers=5)),
    "qwen2": ("qwen2", "qwen2", SIZES),
    "qwen3": ("qwen3", "qwen3", SIZES | WIDE),
    "olmo2": ("olmo2", "olmo2", SIZES),
    "granite": ("granite", "granite", SIZES | FACTORS),
    "phi3": ("phi3", "phi3", SIZES | dict(sliding_window=7)),
    "gemma": ("gemma", "gemma", SIZES | WIDE),
    "gemma2": (
        "gemma2",
        "gemma2",
        SIZES | WIDE | dict(sliding_window=7, query_pre_attn_scalar=16),
    ),
    "gemma3": (
        "gemma3",
        "gemma3_text",
        SIZES | WIDE | dict(sliding_window=7, num_hidden_layers=7, query_pre_attn_scalar=16),
    ),
    "gpt2": ("gpt2", "gpt2", GPT2),
}


def logits_of(ours, ids):
    return ops.convert_to_numpy(ours({"token_ids": ids}))


def assert_same_logits(ours, theirs):
    ids = np.random.default_rng(0).integers(3, 299, (2, 20)).astype("int32")
    expected = their_logits(theirs, ids)
    np.testing.assert_allclose(logits_of(ours, ids), expected, atol=2e-4, rtol=1e-5)
    assert np.abs(expected).max() > 1


@pytest.mark.parametrize("name", MODELS)
def test_logits(name, tmp_path):
    architecture, kind, config = MODELS[name]
    theirs = model_of(kind, **config)
    path = write_model(tmp_path / "tiny.gguf", architecture, theirs)
    with unpacked(path) as folder:
        ours = read_model(folder)
    assert_same_logits(ours, theirs)


def test_from_file_to_folder(tmp_path):
    """The object for the task, saved and loaded, with the end tokens and the authors' search."""
    theirs = model_of("llama", **SIZES)
    search = {"general.sampling.temp": 0.5, "general.sampling.top_k": 7}
    changes = {"tokenizer.ggml.eot_token_id": 5, "tokenizer.chat_template": "{{ 'hi' }}"}
    path = write_model(tmp_path / "tiny.gguf", "llama", theirs, **search, **changes)
    loaded = load_pretrained(path)
    loaded.save(tmp_path / "saved")
    again = CausalLM.load(tmp_path / "saved")
    assert again.template.source == "{{ 'hi' }}"
    assert again.model.config.eos_ids == (299, 5)
    assert again.options({}).temperature == 0.5 and again.options({}).top_k == 7
    assert again.tokenizer.encode(["To be"]) == loaded.tokenizer.encode(["To be"])
    assert_same_logits(again.model, theirs)


@pytest.mark.once("tensors are arrays")
def test_output_may_repeat_the_embedding(tmp_path):
    theirs = model_of("llama", **SIZES, tie_word_embeddings=True)
    tensors = tensors_of("llama", theirs)
    tensors["output.weight"] = tensors["token_embd.weight"].copy()
    facts = facts_of("llama", theirs.config) | byte_facts()
    with unpacked(write(tmp_path / "tiny.gguf", "llama", facts, tensors)) as folder:
        assert_same_logits(read_model(folder), theirs)


PLAIN = ("F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1")
SCALES = {  # places of 16-bit floats in the blocks of types that `gguf` cannot write
    "Q2_K": (-4, -2), "Q3_K": (-2,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (-2,),
    "IQ4_NL": (0,), "IQ4_XS": (0,),
}  # fmt: skip

IN_BLOCKS = {"Q4_0": "q4", "Q4_1": "q4", "Q8_0": "q8"}  # types whose numbers blocks can hold


def quantized(kind, value, rng):
    """A matrix in blocks of a type: rounded, or random blocks with small scales."""
    if kind.name in PLAIN:
        return gguf.quantize(value, kind)
    block, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = rng.integers(0, 256, (value.size // block, size), dtype="uint8")
    for place in SCALES[kind.name]:
        scales = rng.uniform(0.001, 0.01, len(blocks)).astype("<f2")
        blocks[:, place % size : place % size + 2] = scales[:, None].view("uint8")
    return blocks.reshape(len(value), -1)


@pytest.mark.parametrize("name", cases([*PLAIN, *SCALES], "Q4_1"))
def test_quantized_types(name, tmp_path):
    """The logits of `transformers`, which dequantizes the same file by itself."""
    sizes = dict(hidden_size=256, intermediate_size=256, num_hidden_layers=1)
    theirs = model_of("llama", **SIZES | sizes)
    rng, kind = np.random.default_rng(0), gguf.GGMLQuantizationType[name]
    tensors = {
        x: quantized(kind, y, rng) if y.ndim == 2 else y
        for x, y in tensors_of("llama", theirs).items()
    }
    kinds = {x: kind for x, y in tensors.items() if y.ndim == 2}
    facts = facts_of("llama", theirs.config) | byte_facts()
    path = write(tmp_path / "tiny.gguf", "llama", facts, tensors, kinds)
    auto = transformers.AutoModelForCausalLM
    expected = auto.from_pretrained(tmp_path, gguf_file=path.name, dtype=torch.float32).eval()
    with unpacked(path) as folder:
        ours = read_model(folder)
    ids = rng.integers(3, 299, (1, 9)).astype("int32")
    logits = their_logits(expected, ids)
    np.testing.assert_allclose(logits_of(ours, ids), logits, atol=1e-3, rtol=1e-4)
    assert np.abs(logits).max() > 0.1
    if name in IN_BLOCKS:
        small = load_pretrained(path, precision=IN_BLOCKS[name])
        small.save(tmp_path / "saved")
        for model in (small.model, CausalLM.load(tmp_path / "saved").model):
            assert model.quantization == IN_BLOCKS[name]
            assert {x.dtype for x in model.weights if len(x.shape) > 1} == {"uint8", "float16"}
            np.testing.assert_allclose(logits_of(model, ids), logits, atol=1e-2)


def change(facts, tensors):
    """Bad metadata and tensors, and the errors that name them."""
    wide, one = np.zeros((4, 4), "float32"), np.ones(1, "float32")
    return {
        "expert": (facts | {"llama.expert_count": 8}, tensors, "llama.expert_count .* is 8"),
        "mamba": (facts | {"llama.ssm.state_size": 8}, tensors, "llama.ssm.state_size .* is 8"),
        "window": (facts | {"llama.attention.sliding_window": 9}, tensors, "sliding_window"),
        "norm": (
            facts | {"llama.attention.layer_norm_rms_epsilon": -1.0},
            tensors,
            "tiny.gguf does not fit: llama.attention.layer_norm_rms_epsilon must be a number",
        ),
        "text": (facts | {"llama.rope.freq_base": "fast"}, tensors, "rope_theta must be a number"),
        "zero": (
            facts | {"llama.rope.scaling.original_context_length": 0},
            tensors | dict.fromkeys(("rope_factors_short.weight", "rope_factors_long.weight"), one),
            "tiny.gguf does not fit: .*short_factor of scaling must have",
        ),
        "one": (facts | {"tokenizer.ggml.merges": 3}, tensors, "has metadata of a wrong type: "),
        "more": (facts, tensors | {"blk.0.extra.weight": wide}, "tiny.gguf contain .*blk.0.extra"),
        "less": (
            facts,
            {x: y for x, y in tensors.items() if x != "blk.1.ffn_up.weight"},
            "the weights in .*tiny.gguf lack model.layers.1.mlp.up_proj.weight",
        ),
        "shape": (facts, tensors | {"output_norm.weight": wide[0]}, "model.norm.weight must have"),
        "nan": (
            facts,
            tensors | {"output_norm.weight": np.full(32, np.nan, "float32")},
            "model.norm.weight in .*tiny.gguf holds 32 numbers that are NaN",
        ),
    }


@pytest.mark.once("errors come before a backend")
@pytest.mark.parametrize("name", change({}, {}))
def test_bad_files_are_named(name, tmp_path):
    theirs = model_of("llama", **SIZES)
    facts = facts_of("llama", theirs.config) | byte_facts()
    facts, tensors, message = change(facts, tensors_of("llama", theirs))[name]
    path = write(tmp_path / "tiny.gguf", "llama", facts, tensors)
    with pytest.raises(ValueError, match=message) as caught:
        load_pretrained(path)
    assert "gguf-" not in str(caught.value)  # the name of the temporary folder


@pytest.mark.once("paths are names")
def test_a_file_that_is_missing(tmp_path):
    assert is_gguf(tmp_path / "x.GGUF") and not is_gguf(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no file .*missing.gguf"):
        load_pretrained(tmp_path / "missing.gguf")
