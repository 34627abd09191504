"""The options of blocks: taken from keyword arguments, passed to sub-layers, checked."""

import dataclasses

import pytest

from keras_transformer.layers import DecoderBlock, EncoderBlock
from keras_transformer.layers.block_options import (
    AddNormOptions,
    AttentionOptions,
    BlockOptions,
    ExpertOptions,
    FeedForwardOptions,
)

pytestmark = pytest.mark.once("options are plain values")

PARTS = (AttentionOptions, ExpertOptions, AddNormOptions)
# Each value differs from the default.
VALUES = dict(
    num_heads=4, num_kv_heads=2, head_dim=3, use_bias=False, qkv_bias=True, output_bias=True,
    qk_norm=True, query_scale=0.5, soft_cap=3.0, window=5, global_tokens=1, d_ff=12,
    activation="gelu", gated=True, norm_first=True, dropout=0.3, norm="rms", epsilon=1e-3,
    norm_input=False, attention_norm_input=True, norm_output=True, residual_scale=0.5,
    layer_scale=0.1,
    kernel=None,  # a kernel has neither window nor soft_cap
    num_experts=3, experts_per_token=1, normalize_routing=False, balance_loss=0.1,
)  # fmt: skip


def test_a_block_has_the_options_of_its_sub_layers():
    fields = [field.name for part in PARTS for field in dataclasses.fields(part)]
    names = {field.name for field in dataclasses.fields(BlockOptions)}
    assert names == {*fields, "attention_norm_input"} == set(VALUES)


@pytest.mark.parametrize("part", PARTS)
def test_a_sub_layer_gets_its_own(part):
    found = BlockOptions(**VALUES).part(part)
    names = [field.name for field in dataclasses.fields(part)]
    assert found == {name: VALUES[name] for name in names}
    assert part(**found).to_dict() == found


def test_the_norm_before_attention_may_differ():
    options = BlockOptions(**VALUES)
    assert options.of_attention_norm() == options.part(AddNormOptions) | dict(norm_input=True)
    options = dataclasses.replace(options, attention_norm_input=None)
    assert options.of_attention_norm() == options.part(AddNormOptions)


def test_taking_removes_what_is_known():
    given = {"d_ff": 12, "gated": True, "name": "block"}
    options = FeedForwardOptions.pop_from(given, activation="gelu")
    assert options == FeedForwardOptions(d_ff=12, gated=True, activation="gelu")
    assert given == {"name": "block"}


def test_what_older_files_say_of_the_scale():
    given = {"num_heads": 2, "d_ff": 4, "scaled": False}
    assert BlockOptions.pop_from(given).query_scale == 1.0
    assert given == {}
    assert AttentionOptions.pop_from({"num_heads": 2, "scaled": True}).query_scale is None


def test_plain_values_there_and_back():
    options = BlockOptions(**VALUES)
    assert options.to_dict() == VALUES
    assert BlockOptions(**options.to_dict()) == options
    with pytest.raises(dataclasses.FrozenInstanceError):
        options.d_ff = 3


@pytest.mark.parametrize("block", [EncoderBlock, DecoderBlock])
def test_each_option_of_a_block_is_in_its_config(block):
    config = block(**VALUES).get_config()
    assert {name: config[name] for name in VALUES} == VALUES
    assert block.from_config(config).get_config() == config


@pytest.mark.parametrize(
    "wrong,message",
    [
        (dict(num_kv_heads=3), "num_kv_heads must divide num_heads=4, got 3"),
        (dict(window=0), "window must be at least 1 or None, got 0"),
        (dict(global_tokens=-1), "global_tokens must be at least 0, got -1"),
        (dict(qk_norm="last"), r"qk_norm must be one of \(False, True, 'rotated', 'wh.*'last'"),
        (dict(residual_scale=0.0), "residual_scale must be above 0, got 0.0"),
        (dict(layer_scale=-0.1), "layer_scale must be above 0 or None, got -0.1"),
        (dict(query_scale=0.0), "query_scale must be above 0 or None, got 0.0"),
        (dict(soft_cap=-1.0), "soft_cap must be above 0 or None, got -1.0"),
        (dict(num_experts=0), "num_experts must be a whole number of at least 1, got 0"),
        (dict(experts_per_token=0), "experts_per_token must be a whole number of at least 1, got"),
        (dict(experts_per_token=4), "experts_per_token must be at most num_experts=3, got 4"),
        (dict(balance_loss=-0.1), "balance_loss must be a number of at least 0, got -0.1"),
        (dict(use_bias=True), "use_bias must be False with num_experts, got True"),
        (dict(norm_first=False), "norm_input must be True without norm_first, got False"),
        (
            dict(norm_first=False, norm_input=True),
            "norm_output must be False without norm_first, got True",
        ),
    ],
)
def test_values_out_of_range(wrong, message):
    with pytest.raises(ValueError, match=message):
        BlockOptions(**VALUES | wrong)
