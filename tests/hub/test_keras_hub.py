"""KerasHub's backbones: what they compute, our models with their weights compute."""

import importlib.util

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.hub.keras_hub import BACKBONES, from_backbone

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("keras_hub") is None, reason="KerasHub is not installed"
)

# Of one width, so that JAX compiles most of what they do only once.
SIZES = dict(vocabulary_size=37, num_layers=2, num_heads=2, hidden_dim=12, intermediate_dim=20)
LENGTH = dict(max_sequence_length=9)
LLAMA = dict(vocabulary_size=37, num_layers=2, num_query_heads=2, num_key_value_heads=1)
LLAMA |= dict(hidden_dim=12, intermediate_dim=20, layer_norm_epsilon=1e-5)
LLAMA3 = dict(rope_max_wavelength=500.0, rope_frequency_adjustment_factor=8.0)
LLAMA3 |= dict(rope_low_freq_factor=1.0, rope_high_freq_factor=4.0)
LLAMA3 |= dict(rope_pretraining_sequence_length=8, tie_word_embeddings=True)
TYPES = dict(**LENGTH, num_segments=3)
VIT = dict(image_shape=(8, 16, 3), patch_size=4, num_layers=2, num_heads=2, hidden_dim=12)
WHISPER = dict(num_mels=5, max_encoder_sequence_length=18, max_decoder_sequence_length=9)
MODELS = {  # class, its options, and fields of ours
    "gpt2": ("GPT2", SIZES | LENGTH, {}),
    "llama": ("Llama", LLAMA, dict(max_length=20)),
    "llama3": ("Llama3", LLAMA | LLAMA3 | dict(num_key_value_heads=2), {}),
    "mistral": ("Mistral", LLAMA | dict(sliding_window=4, head_dim=8, rope_scaling_factor=2.0), {}),
    "bert": ("Bert", SIZES | TYPES, {}),
    "roberta": ("Roberta", SIZES | LENGTH | dict(num_heads=3), {}),
    "xlm-roberta": ("XLMRoberta", SIZES | LENGTH | dict(num_layers=1), {}),
    "albert": ("Albert", SIZES | TYPES | dict(embedding_dim=8, num_layers=4, num_groups=2), {}),
    "esm": ("ESM", SIZES | dict(max_wavelength=500, layer_norm_eps=1e-5, pad_token_id=1), {}),
    "vit": ("ViT", VIT | dict(mlp_dim=20, use_mha_bias=False), dict(num_classes=3)),
    "whisper": ("Whisper", SIZES | WHISPER, dict(bos_id=30, eos_id=31)),
}

# Elsewhere each operation on each shape is a compilation.
TESTED = MODELS if keras.backend.backend() == "torch" else ("llama3", "albert", "whisper")


def build(name):
    import keras_hub  # here, because it imports TensorFlow

    kind, options, _ = MODELS[name]
    return getattr(keras_hub.models, f"{kind}Backbone")(**options, dtype="float32")


@pytest.fixture(params=TESTED)
def pair(request, randomize):
    """A random backbone and our model."""
    theirs = randomize(build(request.param), scale=1.5)
    return theirs, from_backbone(theirs, MODELS[request.param][2], dtype="float32")


def hidden(theirs, ours):
    """The last states of both for the same inputs, some of them padded: (found, expected)."""
    rng = np.random.default_rng(0)
    if not isinstance(theirs.input, dict):
        images = rng.standard_normal((2, 8, 16, 3)).astype("float32")
        return ours.hidden(ops.convert_to_tensor(images)), theirs(images)
    ids = rng.integers(4, 30, (2, 9)).astype("int32")
    is_token = np.arange(9) < np.array([[9], [5]])
    ids[~is_token] = ours.config.pad_id
    mask = is_token.astype("int32")
    tensors = {"token_ids": ops.convert_to_tensor(ids)}
    if "encoder_features" in theirs.input:
        features = rng.standard_normal((2, 18, 5)).astype("float32")
        inputs = {"encoder_features": features, "decoder_token_ids": ids}
        expected = theirs(inputs | {"decoder_padding_mask": mask})["decoder_sequence_output"]
        # The decoder's states, by way of the table that projects them.
        table = ops.convert_to_numpy(ours.target_embedding.tokens.embeddings)
        logits = ops.convert_to_numpy(ours({"features": features, "target_ids": ids}))
        return logits[is_token], (ops.convert_to_numpy(expected) @ table.T)[is_token]
    inputs = {"token_ids": ids, "padding_mask": mask}
    if "segment_ids" in theirs.input:
        types = rng.integers(0, 3, ids.shape).astype("int32")
        inputs["segment_ids"] = types
        tensors["type_ids"] = ops.convert_to_tensor(types)
    if len(theirs.input) == 1:  # ESM, which (0.32) masks no keys but on PyTorch
        expected = [theirs({"token_ids": ids[:1]}), theirs({"token_ids": ids[1:, :5]})]
        expected = np.concatenate([ops.convert_to_numpy(x)[0] for x in expected])
        return ops.convert_to_numpy(ours.encode(tensors))[is_token], expected
    expected = theirs({name: inputs[name] for name in theirs.input})
    if not isinstance(expected, dict):
        read = getattr(ours, "encode", ours.hidden)
        return (ops.convert_to_numpy(x)[is_token] for x in (read(tensors), expected))
    found = ours(tensors)
    pooled = found["pooled"], expected["pooled_output"]
    np.testing.assert_allclose(*map(ops.convert_to_numpy, pooled), atol=1e-4)
    states = found["hidden"], expected["sequence_output"]
    return (ops.convert_to_numpy(x)[is_token] for x in states)


def test_hidden_states(pair):
    theirs, ours = pair
    found, expected = map(ops.convert_to_numpy, hidden(theirs, ours))
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert np.abs(expected).max() > 0.5
    if not getattr(ours.config, "tie_output", True):
        states = np.random.default_rng(1).standard_normal((2, 9, 12)).astype("float32")
        found, expected = ours.output_layer(states), theirs.token_embedding(states, reverse=True)
        np.testing.assert_allclose(*map(ops.convert_to_numpy, (found, expected)), atol=1e-4)


@pytest.mark.parametrize(
    "kind,options,message",
    [
        ("T5Backbone", {}, "backbone must be one of .*'GPT2Backbone'.*, got a T5Backbone"),
        ("AlbertBackbone", dict(num_inner_repetitions=2), "repetitions must be 1, got 2"),
        ("ViTBackbone", dict(image_shape=(8, 8, 3), patch_size=(4, 2)), "one number, got"),
        ("LlamaBackbone", dict(rope_position_scaling_factor=2.0), "factor must be 1.0, got 2.0"),
        ("GPT2Backbone", dict(num_layers=1), "GPT2Backbone does not fit: .*'vocab_size'"),
        ("GPT2Backbone", SIZES | LENGTH, "the backbone lacks token_embedding/embeddings, which "),
    ],
)
def test_what_is_not_known_is_refused(kind, options, message):
    facts = dict(get_config=lambda self: options, weights=())
    with pytest.raises(ValueError, match=message):
        from_backbone(type(kind, (), facts)())


def test_each_backbone_is_tested():
    assert {f"{kind}Backbone" for kind, _, _ in MODELS.values()} == set(BACKBONES)
