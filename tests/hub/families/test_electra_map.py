"""ELECTRA of `transformers`: the same outputs of each head, and the same weights back."""

import pytest

from tests.backends import cases
from tests.hub.families.encoder_parity import ENDS, EncoderParity, encoder_pair

KINDS = {
    "electra": dict(embedding_size=8),
    "electra-wide": dict(embedding_size=12, type_vocab_size=3, pad_token_id=5),
}
CASES = [("electra", end) for end in (*ENDS, "ForPreTraining")]
CASES += [("electra-wide", "ForMaskedLM"), ("electra-wide", "ForPreTraining")]
ELSEWHERE = [("electra", "ForPreTraining"), ("electra", "ForSequenceClassification")]


@pytest.fixture(scope="module", params=cases(CASES, *ELSEWHERE), ids="-".join)
def pair(request, tmp_path_factory):
    kind, end = request.param
    return encoder_pair(("Electra", KINDS[kind]), end, tmp_path_factory.mktemp(kind))


class TestELECTRA(EncoderParity):
    """Generators and discriminators, with and without a projection of the token vectors."""
