"""MPNet of `transformers`: the same outputs of each head, and the same weights back."""

import pytest

from keras_transformer.hub.hugging_face_checkpoint import read_model
from tests.backends import cases
from tests.hub.families.encoder_parity import ENDS, EncoderParity, encoder, encoder_pair
from tests.hub.families.parity import configure

# As many positions as show that distances from 128 on share a bucket.
OPTIONS = dict(max_position_embeddings=140)


@pytest.fixture(scope="module", params=cases(ENDS, "ForMaskedLM"))
def pair(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("mpnet")
    return encoder_pair(("MPNet", OPTIONS), request.param, folder)


class TestMPNet(EncoderParity):
    """Learned positions, and relative ones that all blocks share."""


@pytest.mark.once("what the files say")
def test_the_name_of_a_head_that_is_not_there(tmp_path):
    """`all-mpnet-base-v2` of sentence-transformers is called MPNetForMaskedLM."""
    encoder("MPNet", OPTIONS, "Model").save_pretrained(tmp_path)
    configure(tmp_path, architectures=["MPNetForMaskedLM"])
    with pytest.warns(UserWarning, match="no 'masked_lm', the head of MPNetForM.* head 'pooled'"):
        assert read_model(tmp_path).config.head == "pooled"
