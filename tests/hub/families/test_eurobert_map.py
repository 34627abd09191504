"""EuroBERT of `transformers`: the same outputs of each head, and the same weights back."""

import pytest

from tests.backends import cases
from tests.hub.families.encoder_parity import ENDS, EncoderParity, encoder_pair
from tests.hub.families.parity import assert_refused

SIZES = dict(bos_token_id=1, eos_token_id=2, pad_token_id=3, rms_norm_eps=0.01)
ROTARY = dict(rope_parameters=dict(rope_type="default", rope_theta=50.0))
KINDS = {
    "late": dict(num_key_value_heads=1),
    "mean": dict(classifier_pooling="mean") | ROTARY,
    "bos": dict(classifier_pooling="bos", hidden_act="gelu"),
}
CASES = [("late", end) for end in ENDS if end != "ForQuestionAnswering"]
CASES += [(kind, "ForSequenceClassification") for kind in ("mean", "bos")]


@pytest.fixture(
    scope="module", params=cases(CASES, ("mean", "ForSequenceClassification")), ids="-".join
)
def pair(request, tmp_path_factory):
    kind, end = request.param
    options = SIZES | KINDS[kind]
    return encoder_pair(("EuroBert", options), end, tmp_path_factory.mktemp(kind))


class TestEuroBERT(EncoderParity):
    """Blocks of a LLaMA that see all tokens; three places of a classifier's mean."""


@pytest.mark.parametrize(
    "options,message",
    [
        (dict(head_dim=8), "head_dim must be 6, hidden_size by num_attention_heads, got 8"),
        (dict(mlp_bias=True), "mlp_bias must be False, got True"),
        (
            dict(rope_scaling=dict(rope_type="linear", factor=2.0)),
            "rope_scaling must be without a scaling, got",
        ),
    ],
)
def test_what_is_not_known_is_refused(options, message, tmp_path):
    sizes = dict(hidden_size=12, num_attention_heads=2, intermediate_size=20, num_hidden_layers=1)
    sizes |= dict(max_position_embeddings=24) | SIZES
    assert_refused(tmp_path, message, model_type="eurobert", **sizes | options)
