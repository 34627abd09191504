"""The config: its defaults are the paper's, each field changes something, bad values are named."""

import dataclasses
import functools
import json

import numpy as np
import pytest
from keras import ops

from keras_transformer.config import TransformerConfig
from keras_transformer.running.search_functions import translation_function
from keras_transformer.search import Search

SOURCE = np.array([[4, 1, 3, 0], [8, 9, 11, 3]], "int32")
TARGET = np.array([[2, 7, 8, 4, 1], [2, 5, 6, 3, 0]], "int32")

numpy = ops.convert_to_numpy


def shapes(model):
    return [(weight.path, tuple(weight.shape)) for weight in model.weights]


def tables(model):
    return model.target_embedding.sinusoids.shape


def logits(model):
    return numpy(model({"source_ids": SOURCE, "target_ids": TARGET})).round(3).tolist()


def randomness(model):
    inputs = {"source_ids": SOURCE, "target_ids": TARGET}
    once, again = (numpy(model(inputs, training=training)) for training in (False, True))
    return bool(np.abs(once - again).max() > 1e-3)


def added_losses(model):
    inputs = {"source_ids": SOURCE, "target_ids": TARGET, "alignment": np.zeros_like(TARGET)}
    if not model.config.guided_alignment:
        inputs.pop("alignment")
    model(inputs)
    return len(model.losses)


def translations(model):
    search = translation_function(Search(beam_size=1, max_extra_length=4), model)
    ids, _ = search(*map(ops.convert_to_tensor, (SOURCE, np.array([10, 10], "int32"))))
    return numpy(ids).tolist()


# field -> (another value, what shows it, changes that both models have)
OWN = dict(share_embeddings=False)
VARIED = dict(norm_first=True, tie_output=False, scale=1.0, seed=1)  # no one token for ever
CASES = {
    "source_vocab_size": (15, shapes, OWN),
    "target_vocab_size": (15, shapes, OWN),
    "d_model": (12, shapes, {}),
    "d_ff": (12, shapes, {}),
    "num_encoder_layers": (2, shapes, {}),
    "num_decoder_layers": (1, shapes, {}),
    "num_heads": (3, logits, {}),
    "decoder_d_ff": (12, shapes, {}),
    "num_decoder_heads": (3, logits, {}),
    "decoder_recurrence": ("ssru", shapes, {}),
    "dropout": (0.0, randomness, {}),
    "layer_drop": (0.9, randomness, dict(dropout=0.0)),
    "activation": ("silu", logits, {}),
    "norm_first": (True, logits, {}),
    "positions": ("none", logits, {}),
    "position_offset": (2, logits, {}),
    "scale_embeddings": (False, logits, {}),
    "norm_embeddings": (True, shapes, {}),
    "epsilon": (0.5, logits, {}),
    "output_bias": (True, shapes, {}),
    "guided_alignment": (0.5, added_losses, {}),
    "max_length": (40, tables, {}),
    "share_embeddings": (False, shapes, {}),
    "tie_output": (False, shapes, {}),
    "pad_id": (1, logits, {}),
    "bos_id": (4, translations, VARIED),
    "eos_id": (9, translations, VARIED),
}


@pytest.fixture(scope="module")
def observed(tiny_transformer):
    @functools.cache
    def observe(show, changes):
        return show(tiny_transformer(**dict(changes)))

    return lambda show, changes: observe(show, tuple(sorted(changes.items())))


@pytest.mark.once("what a graph is made of is chosen without tensors")
@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(TransformerConfig)])
def test_each_field_changes_something(observed, field):
    value, show, common = CASES[field]
    assert observed(show, common) != observed(show, common | {field: value})


@pytest.mark.once("what a graph is made of is chosen without tensors")
@pytest.mark.parametrize("field", ["d_model", "num_heads", "max_length"])
def test_the_same_fields_give_the_same(observed, tiny_transformer, field):
    _, show, common = CASES[field]
    assert observed(show, common) == show(tiny_transformer(**common))


def test_no_case_is_left_over():
    assert set(CASES) == {field.name for field in dataclasses.fields(TransformerConfig)}


def test_presets_are_the_papers_table_3():
    base, big = TransformerConfig.base(37_000), TransformerConfig.big(37_000)
    for config, sizes in (
        (base, (6, 6, 512, 2048, 8, 0.1)),
        (big, (6, 6, 1024, 4096, 16, 0.3)),
        (TransformerConfig.tiny(10_000), (4, 4, 128, 256, 4, 0.3)),
    ):
        assert sizes == (
            config.num_encoder_layers,
            config.num_decoder_layers,
            config.d_model,
            config.d_ff,
            config.num_heads,
            config.dropout,
        )
        paper = ("relu", False, "sinusoidal", True, True)
        assert paper == (
            config.activation,
            config.norm_first,
            config.positions,
            config.share_embeddings,
            config.tie_output,
        )
    assert base.source_vocab_size == base.target_vocab_size == 37_000


def test_presets_take_changes():
    config = TransformerConfig.tiny(100, dropout=0.0, target_vocab_size=50, share_embeddings=False)
    assert (config.dropout, config.source_vocab_size, config.target_vocab_size) == (0.0, 100, 50)


def test_to_dict_and_back_through_json():
    config = TransformerConfig.big(100, positions="learned", eos_id=7)
    assert TransformerConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_one_end_or_several():
    one, several = TransformerConfig.tiny(100), TransformerConfig.tiny(100, eos_id=[3, 9, 3])
    assert one.eos_ids == (3,) and one.to_dict()["eos_id"] == 3
    assert TransformerConfig.tiny(100, eos_id=(3,)) == one
    assert several.eos_ids == (3, 9) and hash(several) != hash(one)
    assert TransformerConfig.from_dict(json.loads(json.dumps(several.to_dict()))) == several


def test_a_decoder_like_the_encoder():
    config = TransformerConfig.tiny(100)
    same = dataclasses.replace(config, decoder_d_ff=256, num_decoder_heads=4)
    assert same == config and hash(same) == hash(config) and same.decoder_d_ff is None
    other = dataclasses.replace(config, decoder_d_ff=64, num_decoder_heads=2)
    assert other.decoder_sizes == dict(num_heads=2, d_ff=64)
    assert config.decoder_sizes == dict(num_heads=4, d_ff=256)


def test_from_dict_names_unknown_fields():
    with pytest.raises(ValueError, match=r"unknown config fields \['d_modle'\].*'d_model'"):
        TransformerConfig.from_dict(TransformerConfig.tiny(100).to_dict() | {"d_modle": 8})


def test_a_config_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        TransformerConfig.tiny(100).d_model = 8


WHOLE = "a whole number of at least 1"


@pytest.mark.parametrize(
    "changes,message",
    [
        *(
            ({name: value}, f"{name} must be {WHOLE}, got {value}")
            for name in (
                "source_vocab_size",
                "target_vocab_size",
                "d_model",
                "d_ff",
                "num_encoder_layers",
                "num_decoder_layers",
                "num_heads",
                "decoder_d_ff",
                "num_decoder_heads",
                "max_length",
            )
            for value in (0, -1, 2.5, True)
        ),
        (
            {"num_heads": 3},
            "d_model must be divisible by num_heads, got d_model=128 and num_heads=3",
        ),
        ({"d_model": 9, "num_heads": 3}, "d_model must be even for sinusoidal positions, got 9"),
        ({"dropout": 1}, "dropout must be in [0, 1), got 1"),
        ({"dropout": -0.1}, "dropout must be in [0, 1), got -0.1"),
        ({"layer_drop": 1.0}, "layer_drop must be in [0, 1), got 1.0"),
        ({"guided_alignment": -1}, "guided_alignment must be at least 0, got -1"),
        (
            {"activation": "swoosh"},
            "activation must be one of ('gelu', 'gelu_tanh', 'relu', 'silu'), got 'swoosh'",
        ),
        (
            {"positions": "rotary"},
            "positions must be one of ('learned', 'none', 'sinusoidal', 'sinusoidal_halves', "
            "'sinusoidal_tensor2tensor'), got 'rotary'",
        ),
        (
            {"target_vocab_size": 99},
            "share_embeddings needs one vocabulary, got source_vocab_size=100 and "
            "target_vocab_size=99; pass share_embeddings=False",
        ),
        ({"pad_id": -1}, "pad_id must be in [0, 100), got -1"),
        ({"bos_id": 100}, "bos_id must be in [0, 100), got 100"),
        (
            {"eos_id": 60, "target_vocab_size": 60, "share_embeddings": False},
            "eos_id must be in [0, 60), got 60",
        ),
        ({"eos_id": (3, 100)}, "eos_id must be in [0, 100), got 100"),
        ({"eos_id": []}, "eos_id must be one or more ids, got []"),
        ({"pad_id": 3}, "pad_id and eos_id must differ, both are 3"),
        ({"pad_id": 5, "eos_id": [3, 5]}, "pad_id and eos_id must differ, both are 5"),
        ({"position_offset": -1}, "position_offset must be a whole number of at least 0, got -1"),
        ({"epsilon": 0}, "epsilon must be above 0, got 0"),
    ],
)
def test_bad_values_are_named(changes, message):
    with pytest.raises(ValueError) as caught:
        TransformerConfig.tiny(100, **changes)
    assert str(caught.value) == message


def test_an_odd_width_is_fine_without_sinusoids():
    TransformerConfig.tiny(100, d_model=9, num_heads=3, positions="learned")
