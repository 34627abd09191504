"""The maps of KerasHub's backbones: names on both sides, and fields computed by hand."""

import dataclasses

import pytest

from keras_transformer.hub.backbones import BACKBONES, FIELDS

pytestmark = pytest.mark.once("maps are plain values")

LLAMA, VIT = BACKBONES["LlamaBackbone"].computed, BACKBONES["ViTBackbone"].computed
LLAMA3 = dict(
    rope_frequency_adjustment_factor=8.0, rope_low_freq_factor=1.0, rope_high_freq_factor=4.0,
    rope_pretraining_sequence_length=64,
)  # fmt: skip
IMAGES = dict(image_shape=(8, 16, 3), patch_size=(4, 4), use_mha_bias=True)


def config_fields(backbone):
    return {field.name for field in dataclasses.fields(backbone.model.config_class)}


@pytest.mark.parametrize("name", BACKBONES)
def test_the_fields_of_a_backbone_are_those_of_our_config(name):
    backbone = BACKBONES[name]
    assert backbone.fields.keys() <= config_fields(backbone)


def test_each_translated_field_is_in_a_config():
    known = set().union(*map(config_fields, BACKBONES.values()))
    assert set(FIELDS.values()) <= known


@pytest.mark.parametrize("name", BACKBONES)
def test_a_block_on_one_side_is_a_block_on_the_other(name):
    for ours, theirs in BACKBONES[name].layers.items():
        theirs = (theirs,) if isinstance(theirs, str) else theirs
        assert {part.count("*") for part in theirs} == {ours.count("*")}
        assert len(theirs) == {"query_key_value": 3, "key_value": 2}.get(ours.split("/")[-1], 1)


@pytest.mark.parametrize(
    "config,scaling",
    [
        ({}, None),
        ({"rope_scaling_factor": 1.0}, None),
        ({"rope_scaling_factor": 2.0}, {"rope_type": "linear", "factor": 2.0}),
        (
            LLAMA3,
            {
                "rope_type": "llama3",
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 64,
            },
        ),
    ],
    ids=["none", "one", "linear", "llama3"],
)
def test_the_scaling_of_rotations(config, scaling):
    assert LLAMA(config, ())["scaling"] == scaling


def test_a_table_for_the_output_means_that_it_is_not_tied():
    assert LLAMA({}, ["token_embedding/embeddings"])["tie_output"] is True
    assert LLAMA({}, ["token_embedding/reverse_embeddings"])["tie_output"] is False


def test_sizes_of_images():
    sizes = dict(image_size=(8, 16), num_channels=3, patch_size=4, qkv_bias=True)
    assert VIT(IMAGES, ()) == sizes
    with pytest.raises(ValueError, match=r"patch_size must be one number, got \(4, 2\)"):
        VIT(IMAGES | dict(patch_size=(4, 2)), ())
