"""DistilBERT of `transformers`: the same outputs of each head, and the same weights back."""

import pytest

from tests.backends import cases
from tests.hub.families.encoder_parity import ENDS, EncoderParity, encoder_pair

KINDS = {
    "distilbert": dict(dim=12, n_layers=2, n_heads=2, hidden_dim=20),
    "distilbert-relu": dict(
        dim=12, n_layers=1, n_heads=3, hidden_dim=20, activation="relu", pad_token_id=5
    ),
}
CASES = [("distilbert", end) for end in ENDS] + [("distilbert-relu", "ForMaskedLM")]
ELSEWHERE = [("distilbert", "ForMaskedLM"), ("distilbert", "ForSequenceClassification")]


@pytest.fixture(scope="module", params=cases(CASES, *ELSEWHERE), ids="-".join)
def pair(request, tmp_path_factory):
    kind, end = request.param
    return encoder_pair(("DistilBert", KINDS[kind]), end, tmp_path_factory.mktemp(kind))


class TestDistilBERT(EncoderParity):
    """DistilBERT: other names, no token types."""
