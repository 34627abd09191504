"""Scaled rotary positions: the rates of the models that files were made from."""

import numpy as np
import pytest

from keras_transformer.hub.gguf.checkpoint import unpacked
from keras_transformer.hub.gguf.rope_scaling import (
    FACTORS,
    LONG,
    SHORT,
    read_scaling,
    write_scaling,
)
from keras_transformer.hub.hugging_face_checkpoint import read_model
from keras_transformer.layers.rotary import rates
from tests.hub.gguf.files import SIZES, byte_facts, facts_of, model_of, tensors_of, write
from tests.hub.gguf.test_checkpoint import assert_same_logits

LLAMA3 = dict(
    rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
    original_max_position_embeddings=8,
)  # fmt: skip
SCALINGS = {
    "linear": dict(rope_type="linear", factor=4.0),
    "yarn": dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=8),
    "llama3": LLAMA3,
}
PHI3 = dict(
    rope_type="longrope", short_factor=[1.0, 1.5, 1.6, 1.7], long_factor=[2.0, 7.0, 8.0, 9.0],
)  # fmt: skip


def factors_of(scaling, head_dim, theta):
    plain, slowed = (rates(head_dim, theta, x)[0] for x in (None, scaling))
    return (plain / slowed).astype("float32")


@pytest.mark.parametrize("name", SCALINGS)
def test_logits(name, tmp_path):
    rotary = SCALINGS[name] | dict(rope_theta=500.0)
    theirs = model_of("llama", **SIZES, rope_parameters=rotary)
    facts = facts_of("llama", theirs.config) | byte_facts()
    tensors = tensors_of("llama", theirs)
    if name == "llama3":
        tensors[FACTORS] = factors_of(LLAMA3, 8, 500.0)
    with unpacked(write(tmp_path / "tiny.gguf", "llama", facts, tensors)) as folder:
        assert_same_logits(read_model(folder), theirs)


def test_long_and_short_factors_of_a_phi3(tmp_path):
    """Texts of 20 tokens have the long factors; those of 8 tokens the short ones."""
    rotary = PHI3 | dict(rope_theta=500.0, original_max_position_embeddings=8)
    theirs = model_of("phi3", **SIZES, rope_parameters=rotary, original_max_position_embeddings=8)
    facts = facts_of("phi3", theirs.config) | byte_facts()
    facts["phi3.rope.scaling.original_context_length"] = 8
    tensors = tensors_of("phi3", theirs)
    for name, key in ((SHORT, "short_factor"), (LONG, "long_factor")):
        tensors[name] = np.array(PHI3[key], "float32")
    with unpacked(write(tmp_path / "tiny.gguf", "phi3", facts, tensors)) as folder:
        assert_same_logits(read_model(folder), theirs)


class File:
    """A file with these tensors."""

    path = "x.gguf"

    def __init__(self, **tensors):
        self.tensors = {x.replace("__", "."): np.array(y, "float32") for x, y in tensors.items()}

    def read(self, name):
        return self.tensors[name]


FACTS = dict(context_length=131072)
CONFIG = dict(head_dim=64, rope_theta=500000.0, max_position_embeddings=131072)


@pytest.mark.parametrize(
    "changes", [{}, dict(factor=32.0), dict(original_max_position_embeddings=2048, factor=4.0)]
)
def test_the_parameters_of_llama3_are_found_again(changes):
    usual = LLAMA3 | dict(original_max_position_embeddings=8192) | changes
    result = read_scaling(File(rope_freqs__weight=factors_of(usual, 64, 5e5)), FACTS, CONFIG)
    assert result == dict(rope_scaling=usual)


def test_other_factors_hold_for_all_lengths():
    factors = np.linspace(1, 3, 32)
    scaling = read_scaling(File(rope_freqs__weight=factors), FACTS, CONFIG)["rope_scaling"]
    assert scaling["rope_type"] == "longrope"
    for length in (10, 200000):
        result, sharpening = rates(64, 5e5, scaling | dict(factor=1.0), length)
        np.testing.assert_allclose(result, rates(64, 5e5, None)[0] / factors, rtol=1e-6)
        assert sharpening == 1.0


@pytest.mark.parametrize(
    "facts,tensors,message",
    [
        ({"type": "dynamic"}, {}, "rope.scaling.type in x.gguf must be one of .*'dynamic'"),
        ({"type": "longrope"}, {}, "must be another without rope_factors_short.weight"),
        ({"type": "linear"}, {FACTORS: [1.0]}, "must be 'none' beside rope_freqs.weight"),
        ({}, {SHORT: [1.0]}, "factors in x.gguf must be rope_factors_short.weight and"),
        ({"attn_factor": 2.0}, {}, "rope.scaling.attn_factor in x.gguf must be 1.0, got 2.0"),
    ],
)
def test_what_is_refused(facts, tensors, message):
    file = File(**{x.replace(".", "__"): y for x, y in tensors.items()})
    with pytest.raises(ValueError, match=message):
        read_scaling(file, FACTS | {f"rope.scaling.{x}": y for x, y in facts.items()}, CONFIG)


def test_none_changes_nothing():
    for facts in ({}, {"rope.scaling.type": "none", "rope.scaling.factor": 3.0}):
        assert read_scaling(File(), FACTS | facts, CONFIG) == {}


@pytest.mark.parametrize("name", SCALINGS)
def test_there_and_back(name):
    scaling = SCALINGS[name]
    config = CONFIG | dict(rope_parameters=scaling | dict(rope_theta=5e5))
    keys, tensors = write_scaling(config, 64)
    file = File(**{x.replace(".", "__"): y for x, y in tensors.items()})
    again = read_scaling(file, FACTS | keys, CONFIG)["rope_scaling"]
    result, expected = (rates(64, 5e5, dict(factor=1.0) | x)[0] for x in (again, scaling))
    np.testing.assert_allclose(result, expected, rtol=1e-6)


def test_what_cannot_be_written():
    for scaling in (dict(rope_type="dynamic", factor=2.0), PHI3):
        with pytest.raises(ValueError, match="rope_type of scaling must be 'linear', 'yarn'"):
            write_scaling(dict(rope_parameters=scaling | dict(rope_theta=5e5)), 8)
    sharp = SCALINGS["yarn"] | dict(attention_factor=1.5, rope_theta=5e5)
    with pytest.raises(ValueError, match="scaling must be without .*attention_factor"):
        write_scaling(dict(rope_parameters=sharp), 8)
