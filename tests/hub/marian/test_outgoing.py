"""Our weights as Marian's arrays: back bit for bit, and the same function of the inputs."""

import json

import numpy as np
import pytest

from keras_transformer.config import T5Config, TransformerConfig
from keras_transformer.hub.marian.outgoing import arrays_of, kernels, kind_of, options_of, restored
from keras_transformer.models import Transformer
from keras_transformer.weights import weights_of

SIZES = dict(source_vocab_size=24, target_vocab_size=24, d_model=12, d_ff=20, num_heads=2)
SIZES |= dict(num_encoder_layers=2, num_decoder_layers=2, max_length=16)
LEGACY = dict(positions="sinusoidal_tensor2tensor")
CONFIGS = {
    "post-norm": {},
    "pre-norm": dict(norm_first=True, activation="gelu", epsilon=1e-5),
    "untied": dict(tie_output=False, output_bias=True, decoder_d_ff=8),
    "two vocabularies": dict(share_embeddings=False, target_vocab_size=32, positions="learned"),
    "separate": dict(share_embeddings=False, tie_output=False, activation="silu"),
    "unscaled": dict(scale_embeddings=False, positions="learned", position_offset=2),
    "unpositioned": dict(positions="none", norm_first=True),
    "legacy": LEGACY,
    "legacy, SSRU": dict(decoder_recurrence="ssru", norm_embeddings=True, **LEGACY),
    "legacy, SSRU, pre-norm": dict(decoder_recurrence="ssru", norm_first=True, **LEGACY),
}


def config_of(**changes):
    return TransformerConfig(**{**SIZES, **changes})


def random_weights(config, legacy=False):
    random = np.random.default_rng(0)
    weights = weights_of(Transformer(config))
    weights = {x: random.normal(size=y.shape).astype("float32") for x, y in weights.items()}
    if legacy:
        weights["target_embedding/tokens/embeddings"][config.bos_id] = 0
    return weights


def options(arrays):
    return json.loads(bytes(arrays["special:model.yml"]).rstrip(b"\0"))


@pytest.mark.once("arithmetic")
@pytest.mark.parametrize("kind", CONFIGS)
def test_bit_for_bit(kind, tmp_path):
    config = config_of(**CONFIGS[kind])
    weights = random_weights(config, "legacy" in kind)
    arrays = arrays_of(config, weights)
    np.savez(tmp_path / "model.npz", **arrays)
    with np.load(tmp_path / "model.npz", allow_pickle=False) as file:
        same_config, same = restored(file)
    assert same_config == config and same.keys() == weights.keys()
    for path, value in weights.items():
        np.testing.assert_array_equal(same[path].view("int32"), value.view("int32"), path)


@pytest.mark.once("arithmetic")
def test_legacy_layers():
    config = config_of(**LEGACY)
    weights = random_weights(config, legacy=True)
    arrays = arrays_of(config, weights)
    assert options(arrays)["type"] == "transformer"
    np.testing.assert_array_equal(arrays["Wemb"], weights["target_embedding/tokens/embeddings"])
    path = "decoder/block_1/feed_forward/hidden"
    np.testing.assert_array_equal(arrays["decoder_l2_ffn_W1"], weights[f"{path}/kernel"])
    np.testing.assert_array_equal(arrays["decoder_l2_ffn_b1"], weights[f"{path}/bias"][None])
    assert arrays["decoder_ff_logit_out_b"].argsort().tolist()[0][:2] == [0, 2]  # padding and BOS
    assert {"decoder_l1_context_Wo_ln_scale", "encoder_l1_ffn_ffn_ln_bias"} < arrays.keys()
    assert "encoder_l1_self_Wq" in kernels(config, weights) and len(kernels(config, weights)) == 32
    assert kind_of(config_of(norm_first=True, **LEGACY), weights) == "transformer-new"
    weights["target_embedding/tokens/embeddings"][config.bos_id] = 1
    assert kind_of(config, weights) == "transformer-new"
    assert kind_of(config_of(epsilon=1e-5, **LEGACY), weights) == "transformer-new"


@pytest.mark.once("arithmetic")
def test_positions_of_the_new_layers():
    config = config_of()
    weights = random_weights(config)
    arrays = arrays_of(config, weights)
    encoder, decoder = (
        arrays[f"TransformerBatch{x.title()}->{x}->positionEmbedding->embeddings"]
        for x in ("encoder", "decoder")
    )
    assert len(decoder) == options(arrays)["max-length"] == 48
    bos = arrays["Wemb"][config.bos_id]
    np.testing.assert_allclose(decoder[0], encoder[0] + bos, rtol=1e-6)
    np.testing.assert_array_equal(decoder[1:], encoder[1:])
    # The residual stream is 4 times ours: Marian's epsilon, 1e-5, is then about ours, 1e-6.
    np.testing.assert_allclose(encoder[0, 1::2], 4)
    tokens = weights["target_embedding/tokens/embeddings"]
    np.testing.assert_allclose(arrays["Wemb"], tokens * 4 * 12**0.5, rtol=1e-6)


@pytest.mark.once("reads a config")
def test_options():
    assert options_of(config_of())["tied-embeddings-all"]
    options = options_of(config_of(share_embeddings=False, activation="silu", decoder_d_ff=8))
    assert options["tied-embeddings"] and "tied-embeddings-all" not in options
    assert options["transformer-ffn-activation"] == "swish"
    assert (options["transformer-dim-ffn"], options["transformer-decoder-dim-ffn"]) == (20, 8)
    assert options_of(config_of(tie_output=False))["tied-embeddings-src"]


@pytest.mark.once("reads a config")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(activation="gelu_tanh"), "activation must be one of .* for Marian, got 'gelu_tanh'"),
        (dict(num_decoder_heads=4), "num_decoder_heads must be num_heads, 2, for Marian, got 4"),
        (dict(eos_id=(3, 5)), r"eos_id must be one id for Marian, got \(3, 5\)"),
    ],
)
def test_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        options_of(config_of(**changes))


@pytest.mark.once("reads a config")
@pytest.mark.parametrize("changes", [dict(norm_embeddings=True), dict(decoder_recurrence="ssru")])
def test_what_only_legacy_layers_have(changes):
    ((name, value),) = changes.items()
    config = config_of(**changes)
    message = f"{name} must be .* for Marian, or positions must be 'sinusoidal_tensor2tensor', eps"
    with pytest.raises(ValueError, match=rf"{message}.*, got '?{value}"):
        arrays_of(config, random_weights(config))
    assert (
        options_of(config_of(**changes, **LEGACY)).items()
        >= {
            "norm_embeddings": {"transformer-postprocess-emb": "nd"},
            "decoder_recurrence": {"transformer-decoder-autoreg": "rnn", "dec-cell": "ssru"},
        }[name].items()
    )


@pytest.mark.once("reads a config")
def test_a_t5_is_refused():
    with pytest.raises(ValueError, match="config must be TransformerConfig: .* got 'T5Config'"):
        options_of(T5Config(24, d_model=8, d_ff=8, num_heads=2, head_dim=4))
