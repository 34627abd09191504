"""GPT-2, LLaMA and Mistral of `transformers`: the same logits, and the same weights back."""

import json

import numpy as np
import pytest
import torch
import transformers
from keras import ops

from keras_transformer.checkpoints.hugging_face import read_model, write_model

GPT2 = dict(n_embd=16, n_layer=2, n_head=2, n_positions=32)
LLAMA = dict(
    hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
    max_position_embeddings=32,
)  # fmt: skip
LENGTHS = dict(original_max_position_embeddings=8)
CONFIGURATIONS = {
    "gpt2": ("gpt2", dict()),
    "gpt2-untied-relu": (
        "gpt2",
        dict(tie_word_embeddings=False, activation_function="relu", n_inner=20),
    ),
    "llama": ("llama", dict()),
    "llama-grouped-tied": (
        "llama",
        dict(num_key_value_heads=2, head_dim=6, tie_word_embeddings=True),
    ),
    "llama3": (
        "llama",
        dict(
            num_key_value_heads=1,
            rope_parameters=dict(
                rope_type="llama3", rope_theta=5000.0, factor=8.0, low_freq_factor=1.0,
                high_freq_factor=4.0, **LENGTHS,
            ),
        ),
    ),
    "llama-yarn": (
        "llama",
        dict(rope_parameters=dict(rope_type="yarn", rope_theta=5000.0, factor=4.0, **LENGTHS)),
    ),
    "llama-linear": (
        "llama",
        dict(rope_parameters=dict(rope_type="linear", rope_theta=5000.0, factor=4.0)),
    ),
    "mistral": ("mistral", dict(num_key_value_heads=2, sliding_window=4)),
    "mistral-no-window": ("mistral", dict(num_key_value_heads=4, sliding_window=None)),
}  # fmt: skip
CLASSES = {
    "gpt2": (transformers.GPT2LMHeadModel, transformers.GPT2Config, GPT2),
    "llama": (transformers.LlamaForCausalLM, transformers.LlamaConfig, LLAMA),
    "mistral": (transformers.MistralForCausalLM, transformers.MistralConfig, LLAMA),
}


@pytest.fixture(scope="module", params=CONFIGURATIONS)
def pair(request, tmp_path_factory):
    kind, options = CONFIGURATIONS[request.param]
    model, config, sizes = CLASSES[kind]
    torch.manual_seed(0)
    common = dict(vocab_size=99, bos_token_id=1, eos_token_id=2, pad_token_id=0)
    theirs = model(config(initializer_range=0.3, **sizes, **common, **options)).eval()
    folder = tmp_path_factory.mktemp("theirs")
    theirs.save_pretrained(folder)
    return kind, theirs, folder, read_model(folder, dtype="float32")


def test_logits(pair):
    _, theirs, _, ours = pair
    ids = np.random.default_rng(0).integers(3, 99, (2, 20)).astype("int32")
    with torch.no_grad():
        expected = theirs(torch.from_numpy(ids).long()).logits.numpy()
    found = ops.convert_to_numpy(ours({"token_ids": ids}))
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert np.abs(expected).max() > 1


def test_logits_behind_padding(pair):
    _, theirs, _, ours = pair
    ids = np.random.default_rng(1).integers(3, 99, (2, 9)).astype("int32")
    mask = np.array([[1] * 9, [0] * 4 + [1] * 5], "int32")
    positions = np.maximum(np.cumsum(mask, axis=1) - 1, 0)
    with torch.no_grad():
        expected = theirs(
            torch.from_numpy(ids).long(),
            attention_mask=torch.from_numpy(mask),
            position_ids=torch.from_numpy(positions).long(),
        ).logits.numpy()
    found = ops.convert_to_numpy(ours({"token_ids": ids, "segments": mask}))
    np.testing.assert_allclose(found[mask > 0], expected[mask > 0], atol=1e-4)


def test_back_again_bit_for_bit(pair, tmp_path):
    kind, theirs, folder, ours = pair
    write_model(tmp_path, ours, kind)
    again = type(theirs).from_pretrained(tmp_path).state_dict()
    before = theirs.state_dict()
    assert again.keys() == before.keys()
    assert all(torch.equal(again[name], before[name]) for name in before)
    written = json.loads((tmp_path / "config.json").read_text())
    original = json.loads((folder / "config.json").read_text())
    same = ("model_type", "vocab_size", "tie_word_embeddings", "sliding_window", "n_inner")
    for name in same:
        if original.get(name) is not None:
            assert written[name] == original[name]


def test_without_the_prefix_of_a_bare_model(pair, tmp_path):
    _, theirs, _, ours = pair
    if not theirs.config.tie_word_embeddings:
        pytest.skip("a bare model has no output of its own")
    theirs.base_model.save_pretrained(tmp_path)
    again = read_model(tmp_path, dtype="float32")
    for one, other in zip(ours.weights, again.weights, strict=True):
        np.testing.assert_array_equal(ops.convert_to_numpy(one), ops.convert_to_numpy(other))


@pytest.mark.parametrize(
    "kind,options,message",
    [
        ("gpt2", dict(scale_attn_by_inverse_layer_idx=True), "scale_attn_by_inverse_layer_idx"),
        ("llama", dict(attention_bias=True), "attention_bias must be False, got True"),
        ("llama", dict(hidden_act="relu"), "hidden_act must be 'silu', got 'relu'"),
        (
            "llama",
            dict(rope_parameters=dict(rope_type="dynamic", factor=2.0, rope_theta=1e4)),
            r"rope_type of scaling must be one of \['linear', 'llama3', 'yarn'\], got 'dynamic'",
        ),
        ("llama", dict(num_attention_heads=3), "d_model must be divisible by num_heads"),
    ],
)
def test_what_is_not_known_is_refused(kind, options, message, tmp_path):
    sizes = dict(vocab_size=9, bos_token_id=1, eos_token_id=2, pad_token_id=0, rms_norm_eps=1e-5)
    config = dict(model_type=kind, **CLASSES[kind][2], **sizes) | options
    (tmp_path / "config.json").write_text(json.dumps(config))
    torch.save({}, tmp_path / "pytorch_model.bin")
    with pytest.raises(ValueError, match=message):
        read_model(tmp_path)
