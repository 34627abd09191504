"""Hunyuan's dense models of `transformers`: the same logits and tokens, the same weights back."""

import pytest
import torch
import transformers

from keras_transformer.hub.hugging_face_checkpoint import read_model
from tests.backends import cases
from tests.hub.families.parity import DECODER_IDS, DecoderOnlyParity, assert_refused, fill

SIZES = dict(
    hidden_size=24, intermediate_size=28, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=32, head_dim=6,
)  # fmt: skip
ALPHA = dict(
    rope_type="dynamic", rope_theta=10000.0, alpha=50.0, factor=1.0, beta_fast=32, beta_slow=1,
)  # fmt: skip
CONFIGURATIONS = {
    "plain": dict(tie_word_embeddings=True),
    "alpha": dict(rope_parameters=ALPHA),
    "bias": dict(rope_parameters=ALPHA | dict(rope_theta=500.0), attention_bias=True),
}


@pytest.fixture(scope="module", params=cases(CONFIGURATIONS, "alpha"))
def pair(request, tmp_path_factory):
    torch.manual_seed(0)
    config = transformers.HunYuanDenseV1Config(
        **SIZES | DECODER_IDS | CONFIGURATIONS[request.param]
    )
    theirs = transformers.HunYuanDenseV1ForCausalLM(config).eval()
    fill(theirs)
    folder = tmp_path_factory.mktemp("theirs")
    theirs.save_pretrained(folder)
    return "hunyuan_v1_dense", theirs, folder, read_model(folder, dtype="float32")


class TestHunyuan(DecoderOnlyParity):
    """Norms after the rotation, and a rotary base raised by `alpha`."""


@pytest.mark.parametrize(
    "options,message",
    [
        (dict(use_qk_norm=False), "use_qk_norm must be True, got False"),
        (dict(use_cla=True), "use_cla must be False, got True"),
        (dict(rope_parameters=ALPHA | dict(alpha="x")), "alpha must be a number above 0, got 'x'"),
        (dict(rope_parameters=ALPHA, head_dim=2), "head_dim must be above 2 with alpha, got 2"),
        (
            dict(rope_parameters=ALPHA | dict(rope_theta=0)),
            "rope_theta must be a number above 0, got 0",
        ),
    ],
)
def test_what_is_not_known_is_refused(options, message, tmp_path):
    assert_refused(tmp_path, message, model_type="hunyuan_v1_dense", **SIZES | options)
