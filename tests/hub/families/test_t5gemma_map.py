"""T5Gemma: the same logits and searches as in `transformers`, and the same weights back."""

import numpy as np
import pytest
import torch
import transformers
from keras import ops

from keras_transformer.hub.hugging_face_checkpoint import read_model, write_model
from keras_transformer.models import T5Gemma, T5GemmaConfig
from tests.backends import cases
from tests.hub.families.parity import (
    VOCABULARY,
    EncoderDecoderParity,
    configure,
    filled,
)

STACK = dict(
    vocab_size=VOCABULARY, hidden_size=16, intermediate_size=24, num_hidden_layers=2,
    num_attention_heads=4, num_key_value_heads=2, head_dim=6, sliding_window=3,
    query_pre_attn_scalar=5, attn_logit_softcapping=2.0, final_logit_softcapping=4.0,
)  # fmt: skip
LARGER = dict(hidden_size=24, intermediate_size=20, num_hidden_layers=3, num_key_value_heads=4)
UNCAPPED = dict(attn_logit_softcapping=None, final_logit_softcapping=None)
MODELS = {  # encoder and decoder
    "t5gemma": (LARGER | dict(sliding_window=2), {}),
    "t5gemma-full": (dict(layer_types=["full_attention"] * 2), {}),
    "t5gemma-plain": (UNCAPPED, UNCAPPED),
}


def saved(folder, encoder, decoder):
    """A random model of `transformers`, its folder, and ours read from there."""
    torch.manual_seed(0)
    stacks = dict(encoder=STACK | encoder, decoder=STACK | decoder)
    config = transformers.T5GemmaConfig(**stacks, attn_implementation="eager")
    theirs = filled(transformers.T5GemmaForConditionalGeneration(config))
    theirs.save_pretrained(folder)
    return theirs, folder, read_model(folder, dtype="float32")


@pytest.fixture(scope="module", params=cases(MODELS, "t5gemma"))
def pair(request, tmp_path_factory):
    return saved(tmp_path_factory.mktemp(request.param), *MODELS[request.param])


class TestParity(EncoderDecoderParity):
    """Windows, caps, grouped heads, an encoder of other sizes."""


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("usual"), {}, {})


@pytest.mark.once("weights are read as arrays")
def test_without_the_prefix_of_a_bare_model(usual, tmp_path):
    theirs, _, ours = usual
    theirs.base_model.save_pretrained(tmp_path)
    for one, two in zip(ours.weights, read_model(tmp_path).weights, strict=True):
        np.testing.assert_array_equal(*map(ops.convert_to_numpy, (one, two)))


@pytest.mark.once("configs")
def test_special_tokens(usual, tmp_path):
    """Those outside the decoder take precedence; BOS begins the decoder's input."""
    _, _, ours = usual
    write_model(tmp_path, ours)
    found = []
    for changes in ({}, dict(eos_token_id=[5, 1]), dict(decoder_start_token_id=7)):
        configure(tmp_path, **changes)
        config = read_model(tmp_path).config
        found.append((config.pad_id, config.bos_id, config.eos_id))
    assert found == [(0, 2, 1), (0, 2, (5, 1)), (0, 7, (5, 1))]


YARN = dict(rope_type="yarn", factor=2.0, rope_theta=10000.0)
REFUSED = [
    (dict(rope_parameters=YARN), {}, "encoder: rope_parameters must be without a scaling, got .*y"),
    ({}, dict(rope_scaling=dict(type="dynamic", factor=2.0)), "decoder: rope_scaling must be with"),
    (dict(head_dim=8), {}, "head_dim of encoder must be 6, got 8"),
    (dict(rope_parameters=dict(rope_type="default", rope_theta=70.0)), {}, "theta of encoder must"),
    ({}, dict(hidden_activation="relu"), "decoder: hidden_activation must be 'gelu_pytorch_tanh'"),
    ({}, dict(attention_bias=True), "decoder: attention_bias must be False, got True"),
    (dict(sliding_window=None), {}, "encoder: layer_types must be 'full_attention' without a sl"),
    (dict(pruned_heads={"0": [1]}), {}, "encoder: pruned_heads must be an empty object or null"),
]


@pytest.mark.once("configs")
@pytest.mark.parametrize("encoder,decoder,said", REFUSED)
def test_what_is_refused(usual, tmp_path, encoder, decoder, said):
    theirs, _, ours = usual
    write_model(tmp_path, ours)
    stacks = theirs.config.to_dict()
    configure(tmp_path, encoder=stacks["encoder"] | encoder, decoder=stacks["decoder"] | decoder)
    with pytest.raises(ValueError, match=said):
        read_model(tmp_path)


@pytest.mark.once("configs")
def test_what_is_refused_outside_the_stacks(usual, tmp_path):
    theirs, _, ours = usual
    write_model(tmp_path, ours)
    for changes, said in (
        (dict(tie_word_embeddings=False), "tie_word_embeddings must be True, got False"),
        (dict(is_encoder_decoder=False), "is_encoder_decoder must be True, got False"),
        (dict(encoder=None), "encoder must be an object, got None"),
        (dict(encoder=dict(vocab_size=VOCABULARY)), "encoder lacks 'hidden_size'"),
    ):
        configure(tmp_path, **dict(tie_word_embeddings=True) | changes)
        with pytest.raises(ValueError, match=said):
            read_model(tmp_path)
        configure(tmp_path, is_encoder_decoder=True)
    architecture = ["T5GemmaForSequenceClassification"]
    configure(tmp_path, architectures=architecture, encoder=theirs.config.to_dict()["encoder"])
    with pytest.raises(ValueError, match="architectures must be one of .*, got .*Sequence"):
        read_model(tmp_path)


@pytest.mark.once("configs")
def test_windows_that_no_checkpoint_has(tmp_path):
    """An encoder whose tokens see only themselves would be read back with other windows."""
    sizes = dict(d_model=8, d_ff=8, num_encoder_layers=1, num_decoder_layers=1, num_heads=2)
    config = T5GemmaConfig(19, **sizes, num_kv_heads=1, head_dim=4, encoder_window=1)
    with pytest.raises(ValueError, match="it would be read back with encoder_window=2"):
        write_model(tmp_path, T5Gemma(config), "t5gemma")
