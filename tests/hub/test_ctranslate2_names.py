"""Names of weights in CTranslate2, and the settings that are known."""

import re

import ctranslate2.specs as specs
import pytest

from keras_transformer.hub.ctranslate2_names import FIELDS, NUMBERS, check_known, place_of

pytestmark = pytest.mark.once("tables")


def test_places():
    for name, kind, place in (
        ("model.encoder.layers.0.self_attn.v_proj.bias", "bart",
         ("encoder/layer_0/self_attention/linear_0/bias", 2, 3)),
        ("model.decoder.layers.11.encoder_attn.q_proj.weight", "whisper",
         ("decoder/layer_11/attention/linear_0/weight", 0, 1)),
        ("model.decoder.layers.1.encoder_attn.v_proj.weight", "bart",
         ("decoder/layer_1/attention/linear_1/weight", 1, 2)),
        ("model.decoder.layernorm_embedding.bias", "bart",
         ("decoder/layernorm_embedding/beta", 0, 1)),
        ("model.encoder.conv1.weight", "whisper", ("encoder/conv1/weight", 0, 1)),
        ("encoder.block.1.layer.1.layer_norm.weight", "t5",
         ("encoder/layer_1/ffn/layer_norm/gamma", 0, 1)),
        ("decoder.block.1.layer.1.layer_norm.weight", "t5",
         ("decoder/layer_1/attention/layer_norm/gamma", 0, 1)),
        ("decoder.block.0.layer.1.EncDecAttention.k.weight", "t5",
         ("decoder/layer_0/attention/linear_1/weight", 0, 2)),
    ):  # fmt: skip
        assert place_of(name, kind) == place


def test_fields_are_those_of_ctranslate2():
    configs = specs.transformer_spec.TransformerConfig(), specs.whisper_spec.WhisperConfig()
    assert {*FIELDS} == {x for y in configs for x in y.to_dict()} | {"multi_query_attention"}
    spec = specs.TransformerSpec.from_config(1, 2)
    names = {x.rpartition("/")[2] for x in spec.variables() if not re.search("weight|bias", x)}
    assert names - {"gamma", "beta", "encodings"} <= {*NUMBERS} | {"final_logit_softcapping"}


def test_unknown_settings():
    check_known({"encoder/alibi": 0, "decoder/alignment_layer": -1}, NUMBERS, "model.bin")
    with pytest.raises(ValueError, match=r"decoder/alibi in model.bin must be 0, got 1"):
        check_known({"decoder/alibi": 1}, NUMBERS, "model.bin")
    with pytest.raises(ValueError, match="rotary_dim in model.bin must be absent, got 8"):
        check_known({"rotary_dim": 8}, NUMBERS, "model.bin")
