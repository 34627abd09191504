"""GPT-2 of `transformers`: the same logits, and the same weights back."""

import pytest
import torch
import transformers

from keras_transformer.hub.hugging_face_checkpoint import read_model
from tests.hub.families.parity import DECODER_IDS, DecoderOnlyParity, assert_refused

SIZES = dict(n_embd=16, n_layer=2, n_head=2, n_positions=32)
CONFIGURATIONS = {
    "gpt2": dict(),
    "gpt2-untied-relu": dict(tie_word_embeddings=False, activation_function="relu", n_inner=20),
}


@pytest.fixture(scope="module", params=CONFIGURATIONS)
def pair(request, tmp_path_factory):
    torch.manual_seed(0)
    options = SIZES | DECODER_IDS | CONFIGURATIONS[request.param]
    config = transformers.GPT2Config(initializer_range=0.3, **options)
    theirs = transformers.GPT2LMHeadModel(config).eval()
    folder = tmp_path_factory.mktemp("theirs")
    theirs.save_pretrained(folder)
    return "gpt2", theirs, folder, read_model(folder, dtype="float32")


class TestGPT(DecoderOnlyParity):
    """GPT-2, tied or not."""


NO_IDS = dict(pad_token_id=None, bos_token_id=None)


@pytest.mark.parametrize(
    "options,message",
    [
        (dict(scale_attn_by_inverse_layer_idx=True), "scale_attn_by_inverse_layer_idx"),
        # What is not said is the end's: errors name the field that the file has.
        (NO_IDS | dict(eos_token_id=50256), r"eos_token_id must be in \[0, 99\), .*got 50256"),
        (
            NO_IDS | dict(eos_token_id=[5, 99]),
            r"eos_token_id must be in \[0, 99\), .*got \[5, 99\]",
        ),
        (dict(bos_token_id=50256), r"bos_token_id must be in \[0, 99\), .*got 50256"),
        (
            NO_IDS | dict(eos_token_id=None),
            "eos_token_id is null or missing, but the model needs a token that",
        ),
    ],
    ids=["attention", "end", "ends", "beginning", "none"],
)
def test_what_is_not_known_is_refused(options, message, tmp_path):
    assert_refused(tmp_path, message, model_type="gpt2", **SIZES, **options)
