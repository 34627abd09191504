"""ESM-2: what `transformers` computes, we compute; and back again."""

import pytest

from tests.hub.families.encoder_parity import ENDS, EncoderParity, encoder_pair

ESM = dict(position_embedding_type="rotary", token_dropout=True, mask_token_id=36, pad_token_id=1)
ESM |= dict(layer_norm_eps=1e-5, hidden_dropout_prob=0.0)
KINDS = {  # what classes are called, and options
    "esm": ("Esm", ESM),
    "esm-plain": ("Esm", ESM | dict(token_dropout=False, rope_theta=50.0, layer_norm_eps=1e-12)),
}
CASES = [(kind, "ForMaskedLM") for kind in KINDS]
CASES += [("esm", end) for end in ENDS if end not in ("ForMaskedLM", "ForQuestionAnswering")]


@pytest.fixture(scope="module", params=CASES, ids="-".join)
def pair(request, tmp_path_factory):
    kind, end = request.param
    return encoder_pair(KINDS[kind], end, tmp_path_factory.mktemp(kind))


class TestESM(EncoderParity):
    """ESM-2, with and without its dropout of tokens."""
