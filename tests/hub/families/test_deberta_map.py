"""DeBERTa-v2 and v3 of `transformers`: the same outputs of each head, and the same weights back."""

import numpy as np
import pytest
import transformers
from keras import ops
from safetensors.numpy import load_file

from keras_transformer.hub.hugging_face_checkpoint import read_model, write_model
from tests.backends import cases
from tests.hub.families.encoder_parity import (
    ENDS,
    EncoderParity,
    encoder,
    encoder_batch,
    encoder_pair,
    run,
)
from tests.hub.families.parity import configure

USUAL = dict(
    relative_attention=True, pos_att_type=["p2c", "c2p"], share_att_key=True,
    norm_rel_ebd="layer_norm", position_buckets=4, position_biased_input=False,
)  # fmt: skip
KINDS = {
    "plain": USUAL,
    "near": USUAL | dict(position_buckets=6, max_relative_positions=11, num_attention_heads=3),
    "relu": USUAL | dict(pos_att_type="c2p|p2c", hidden_act="relu", pooler_hidden_act="tanh"),
    "convolution": USUAL | dict(conv_kernel_size=3, conv_act="gelu"),
}
CASES = [("plain", end) for end in ENDS]
CASES += [
    ("near", "ForMaskedLM"),
    ("convolution", "ForTokenClassification"),
    ("relu", "ForMaskedLM"),
    ("relu", "ForSequenceClassification"),
]
ELSEWHERE = [("near", "ForMaskedLM"), ("convolution", "ForTokenClassification")]


@pytest.fixture(scope="module", params=cases(CASES, *ELSEWHERE), ids="-".join)
def pair(request, tmp_path_factory):
    kind, end = request.param
    return encoder_pair(("DebertaV2", KINDS[kind]), end, tmp_path_factory.mktemp(kind))


class TestDeBERTa(EncoderParity):
    """Relative positions alone, in buckets that are fewer than the distances."""


@pytest.mark.once("names of weights")
def test_the_masked_lm_head_of_version_3(tmp_path):
    """It has other names, and the same function; it is written with those of version 2."""
    theirs = encoder("DebertaV2", USUAL | dict(legacy=False), "ForMaskedLM")
    theirs.save_pretrained(tmp_path)
    assert "lm_predictions.lm_head.bias" in load_file(tmp_path / "model.safetensors")
    ours = read_model(tmp_path)
    inputs = encoder_batch(ours.config)
    write_model(tmp_path / "out", ours)
    again = transformers.DebertaV2ForMaskedLM.from_pretrained(tmp_path / "out").eval()
    expected, found = (run(model, inputs, 0).logits.numpy() for model in (theirs, again))
    is_token = inputs["token_ids"] != 0
    np.testing.assert_array_equal(found, expected)
    logits = ops.convert_to_numpy(ours(inputs))
    np.testing.assert_allclose(logits[is_token], expected[is_token], atol=1e-4, rtol=1e-4)
    configure(tmp_path, architectures=None)  # as in the released files
    assert read_model(tmp_path).config.head == "masked_lm"


@pytest.mark.parametrize(
    "changes,message",
    [
        (dict(conv_kernel_size=4), "conv_kernel_size must be 0 or odd, got 4"),
        (dict(conv_kernel_size=3), "conv_act must be 'gelu', got 'tanh'"),
        (dict(conv_kernel_size=3, conv_act="gelu", conv_groups=2), "conv_groups must be 1, got 2"),
        (dict(pos_att_type=["c2p"]), "pos_att_type must be 'c2p' and 'p2c', got"),
        (dict(share_att_key=False), "share_att_key must be True, got False"),
        (dict(norm_rel_ebd="none"), "norm_rel_ebd must be 'layer_norm', got 'none'"),
        (dict(position_biased_input=True), "position_biased_input must be False, got True"),
        (dict(type_vocab_size=2), "type_vocab_size must be 0, got 2"),
        (dict(attention_head_size=5), "attention_head_size must be 6, got 5"),
        (dict(embedding_size=8), "embedding_size must be 12, got 8"),
        (dict(position_buckets=7), "position_buckets must be an even number above 0, got 7"),
        (
            dict(position_buckets=50),
            "max_relative_positions must be at least 27 with position_buckets=50, got 24",
        ),
    ],
)
@pytest.mark.once("configs")
def test_what_is_not_supported(changes, message, tmp_path):
    encoder("DebertaV2", USUAL, "Model").save_pretrained(tmp_path)
    configure(tmp_path, **changes)
    with pytest.raises(ValueError, match=message):
        read_model(tmp_path)
