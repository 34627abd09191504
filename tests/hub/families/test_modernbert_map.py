"""ModernBERT of `transformers`: the same outputs of each head, and the same weights back."""

import pytest

from tests.backends import cases
from tests.hub.families.encoder_parity import ENDS, EncoderParity, encoder_pair
from tests.hub.families.parity import assert_refused

SIZES = dict(num_hidden_layers=4, local_attention=6, norm_eps=0.01)
SIZES |= dict(bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2, pad_token_id=3)
THETAS = {
    "full_attention": dict(rope_type="default", rope_theta=50.0),
    "sliding_attention": dict(rope_type="default", rope_theta=7.0),
}
KINDS = {
    "plain": dict(),
    "mean": dict(classifier_pooling="mean", hidden_activation="silu", rope_parameters=THETAS),
    "full": dict(layer_types=["full_attention"] * 4),
}
CASES = [("mean", end) for end in ENDS]
CASES += [("plain", "ForMaskedLM"), ("plain", "ForSequenceClassification"), ("full", "Model")]


@pytest.fixture(
    scope="module",
    params=cases(CASES, ("mean", "ForSequenceClassification"), ("plain", "ForMaskedLM")),
    ids="-".join,
)
def pair(request, tmp_path_factory):
    kind, end = request.param
    options = SIZES | KINDS[kind]
    return encoder_pair(("ModernBert", options), end, tmp_path_factory.mktemp(kind))


class TestModernBERT(EncoderParity):
    """Two rotary bases, windows in some blocks, norms without biases, a layer before each head."""


@pytest.mark.parametrize(
    "options,message",
    [
        (dict(norm_bias=True), "norm_bias must be False, got True"),
        (dict(classifier_pooling="late"), "classifier_pooling must be 'cls' or 'mean', got 'late'"),
        (
            dict(rope_parameters=dict(full_attention=dict(rope_type="linear", factor=2.0))),
            "rope_parameters of full_attention must not be scaled, got",
        ),
    ],
)
def test_what_is_not_known_is_refused(options, message, tmp_path):
    sizes = dict(hidden_size=12, num_attention_heads=2, intermediate_size=20)
    sizes |= dict(max_position_embeddings=24) | SIZES
    assert_refused(tmp_path, message, model_type="modernbert", **sizes | options)
