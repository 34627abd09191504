"""T5, mT5 and UMT5: the same logits and searches, and the same weights back."""

import json

import keras
import numpy as np
import pytest
import torch
import transformers

from keras_transformer import models
from keras_transformer.hub.hugging_face_checkpoint import read_model, write_model
from tests.backends import cases
from tests.hub.families.parity import (
    VOCABULARY,
    EncoderDecoderParity,
    configure,
    edit,
    pair_batch,
    read_pair,
)

T5 = dict(vocab_size=VOCABULARY, d_model=16, d_kv=6, d_ff=24, num_layers=2, num_heads=3)
T5 |= dict(decoder_start_token_id=0)


def t5(**changes):
    return transformers.T5ForConditionalGeneration(transformers.T5Config(**T5 | changes))


def t5_untied(**changes):
    model = t5(tie_word_embeddings=False, **changes)
    model.lm_head.weight = torch.nn.Parameter(torch.randn(VOCABULARY, 16))
    return model


def mt5():
    config = transformers.MT5Config(**T5 | dict(feed_forward_proj="gated-gelu"))
    return transformers.MT5ForConditionalGeneration(config)


def umt5(**changes):
    config = transformers.UMT5Config(**T5 | changes)
    return transformers.UMT5ForConditionalGeneration(config)


def umt5_untied():
    model = umt5(feed_forward_proj="gated-silu")
    model.lm_head.weight = torch.nn.Parameter(torch.randn(VOCABULARY, 16))
    return model


MODELS = {
    "t5": t5,
    "t5-far": lambda: t5(
        relative_attention_num_buckets=8, relative_attention_max_distance=9, num_decoder_layers=1
    ),
    "t5-gated": lambda: t5(feed_forward_proj="gated-gelu"),
    "t5-begins-with-another": lambda: t5(pad_token_id=1, eos_token_id=2),
    "t5-gated-untied": lambda: t5_untied(feed_forward_proj="gated-silu"),
    "mt5": mt5,
    "umt5": lambda: umt5(num_decoder_layers=1, relative_attention_num_buckets=8),
    "umt5-untied": umt5_untied,
}


@pytest.fixture(scope="module", params=cases(MODELS, "t5-gated-untied", "umt5"))
def pair(request, tmp_path_factory):
    """A random model of `transformers`, its folder, and ours read from there."""
    torch.manual_seed(0)
    return read_pair(MODELS[request.param]().eval(), tmp_path_factory.mktemp(request.param))


class TestT5(EncoderDecoderParity):
    """The first T5s, v1.1 and mT5."""


def test_what_the_first_t5s_had_besides(tmp_path):
    t5().save_pretrained(tmp_path)

    def besides(tensors):
        tensors["lm_head.weight"] = tensors["shared.weight"].copy()
        unused = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
        tensors[unused] = np.zeros((32, 3), "float32")

    edit(tmp_path, besides)
    model = read_model(tmp_path)
    assert model.config.tie_output and model.config.scale_output
    write_model(tmp_path / "mt5", read_model(tmp_path), kind="t5")


def test_an_output_that_is_missing(tmp_path):
    """The config of a T5 v1.1 says that there is one, as `transformers` wrote it before 5.23."""
    model = t5_untied()
    model.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config.pop("scale_decoder_outputs") is False
    (tmp_path / "config.json").write_text(json.dumps(config | dict(tie_word_embeddings=False)))
    assert not read_model(tmp_path).config.tie_output
    edit(tmp_path, lambda tensors: tensors.pop("lm_head.weight"))
    with pytest.raises(ValueError, match="lack lm_head.weight; .* if tie_word_embeddings is true"):
        read_model(tmp_path)


@pytest.mark.once("made of parts that are tested under each backend")
def test_what_the_feed_forward_is(tmp_path):
    """Two fields say it, and the one that `transformers` has split comes first."""
    t5().save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    usual = json.loads(path.read_text())
    assert (usual.pop("dense_act_fn"), usual.pop("is_gated_act")) == ("relu", False)
    for fields in (
        dict(feed_forward_proj="gelu"),
        dict(feed_forward_proj="gelu", dense_act_fn="silu"),
        dict(feed_forward_proj="gated-gelu", dense_act_fn="gelu", is_gated_act=False),
    ):
        path.write_text(json.dumps(usual | fields))
        theirs = transformers.T5ForConditionalGeneration.from_pretrained(tmp_path).eval()
        ours = read_model(tmp_path, dtype="float32")
        source, target = pair_batch(ours.config)
        inputs = dict(input_ids=torch.tensor(source), decoder_input_ids=torch.tensor(target))
        mask = torch.tensor(source != ours.config.pad_id).long()
        with torch.no_grad():
            expected = theirs(**inputs, attention_mask=mask).logits
        found = ours({"source_ids": source, "target_ids": target})
        np.testing.assert_allclose(keras.ops.convert_to_numpy(found), expected, atol=1e-4)
    path.write_text(json.dumps(usual | dict(is_encoder_decoder=False)))
    with pytest.raises(ValueError, match="config.json .* is_encoder_decoder must be True, got Fal"):
        read_model(tmp_path)


@pytest.mark.once("fields and arrays in files")
@pytest.mark.parametrize("kind", ["t5", "mt5", "umt5"])
def test_tied_and_unscaled(kind, tmp_path):
    """Files of an mT5: neither the scale nor the tie is lost where both are written."""
    sizes = dict(d_model=16, head_dim=6, d_ff=24, num_heads=3)
    sizes |= dict(num_encoder_layers=1, num_decoder_layers=1)
    sizes |= dict(positions_by_layer=kind == "umt5")
    config = models.T5Config(VOCABULARY, **sizes, tie_output=True, scale_output=False)
    write_model(tmp_path, models.T5(config), kind)
    assert read_model(tmp_path).config == config


@pytest.mark.once("a config is read without tensors")
def test_the_umt5s_of_the_hub_do_not_scale(tmp_path):
    """They say that the output is not tied, which `transformers` 5.23 overrides."""
    umt5_untied().save_pretrained(tmp_path)
    assert read_model(tmp_path).config.scale_output
    configure(tmp_path, tie_word_embeddings=False)
    config = read_model(tmp_path).config
    assert not config.scale_output and not config.tie_output and config.positions_by_layer
