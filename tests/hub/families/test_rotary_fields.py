"""Every way to write rotary positions in a `config.json`: the rates that `transformers` has."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from keras_transformer.hub.families import FAMILIES
from keras_transformer.layers.rotary import rates

BASE = dict(
    model_type="llama", vocab_size=99, hidden_size=64, intermediate_size=24, num_hidden_layers=1,
    num_attention_heads=4, bos_token_id=1, eos_token_id=2, max_position_embeddings=64,
    rms_norm_eps=1e-6,
)  # fmt: skip


def their_rates(config, length=None):
    config = LlamaConfig.from_dict(copy.deepcopy(config))
    kind = config.rope_parameters["rope_type"]
    default = LlamaRotaryEmbedding.compute_default_rope_parameters
    compute = ROPE_INIT_FUNCTIONS[kind] if kind != "default" else default
    found, factor = compute(config, seq_len=length)
    return found.numpy(), factor


def our_rates(config, length=0):
    config = FAMILIES["llama"].read(config, [])
    head_dim = config.head_dim or config.d_model // config.num_heads
    return rates(head_dim, config.theta, config.scaling, length)


def assert_same(config):
    expected, expected_factor = their_rates(config)
    found, factor = our_rates(config)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert factor == pytest.approx(expected_factor, rel=1e-6)


LINEAR = dict(rope_type="linear", factor=4.0, rope_theta=5000.0)
LLAMA3 = dict(
    rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, rope_theta=5e5,
    original_max_position_embeddings=16,
)  # fmt: skip
YARN = dict(rope_type="yarn", factor=4.0, rope_theta=5000.0, original_max_position_embeddings=32)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        dict(rope_theta=500.0),
        dict(rope_theta=500.0, rope_scaling=None),
        dict(rope_theta=500.0, rope_parameters=dict(rope_type="default", rope_theta=7.0)),
        dict(rope_theta=500.0, rope_scaling=dict(type="linear", factor=2)),
        dict(rope_scaling=dict(type="yarn", rope_type="linear", factor=2.0)),
        dict(rope_scaling=dict(type="linear", factor=2.0), rope_parameters=YARN),
        dict(rope_scaling={}, rope_parameters=YARN),
        dict(rope_parameters=dict(factor=2.0, rope_theta=9.0)),
        dict(rope_parameters=LLAMA3),
        dict(rope_parameters=LLAMA3, original_max_position_embeddings=8),
        dict(rope_parameters=LINEAR, original_max_position_embeddings=8),
        dict(rope_parameters=YARN, original_max_position_embeddings=8),
        dict(rope_scaling=dict(rope_type="yarn", factor=2.0), rope_theta=50.0),
        dict(rope_parameters=YARN | dict(factor=None)),
        dict(rope_parameters=YARN | dict(factor=None), original_max_position_embeddings=8),
        dict(rope_parameters=YARN | dict(factor=0.5)),
        dict(rope_parameters=YARN | dict(mscale=1.0, mscale_all_dim=0.707)),
        dict(rope_parameters=YARN | dict(mscale=0.707, mscale_all_dim=None)),
        dict(rope_parameters=YARN | dict(mscale=0, mscale_all_dim=1.0)),
        dict(rope_parameters=YARN | dict(mscale=2.0, mscale_all_dim=1.0, attention_factor=0.8)),
        dict(rope_parameters=YARN | dict(attention_factor=0.0)),
        dict(rope_parameters=YARN | dict(attention_factor=None, beta_fast=None, beta_slow=None)),
        dict(rope_parameters=YARN | dict(truncate=None, beta_fast=30.5, beta_slow=0.7)),
        dict(rope_parameters=YARN | dict(truncate=False)),
        dict(rope_parameters=YARN | dict(original_max_position_embeddings=1)),
        dict(rope_parameters=YARN | dict(original_max_position_embeddings=10**9, rope_theta=7.0)),
        dict(rope_parameters=LINEAR | dict(partial_rotary_factor=1.0)),
        dict(partial_rotary_factor=None, rope_parameters=LINEAR),
        dict(head_dim=6, rope_parameters=YARN),
    ],
    ids=str,
)
def test_fields_and_which_of_them_wins(fields):
    assert_same(BASE | fields)


DYNAMIC = dict(rope_type="dynamic", factor=4.0, rope_theta=5000.0)
LONG = dict(
    rope_type="longrope", rope_theta=5000.0, short_factor=[1 + i / 8 for i in range(8)],
    long_factor=[2.0 + i for i in range(8)], original_max_position_embeddings=16,
)  # fmt: skip


@pytest.mark.parametrize("length", [9, 16, 17, 64, 65, 200])
@pytest.mark.parametrize(
    "fields",
    [
        dict(rope_parameters=DYNAMIC),
        dict(rope_parameters=DYNAMIC | dict(original_max_position_embeddings=8)),
        dict(rope_scaling=dict(type="dynamic", factor=2), max_position_embeddings=16),
        dict(rope_parameters=LONG),
        dict(rope_parameters=LONG | dict(factor=32.0)),
        dict(rope_parameters=LONG | dict(factor=0.5)),
        dict(rope_parameters=LONG | dict(factor=None, attention_factor=1.3)),
        dict(rope_parameters=LONG, original_max_position_embeddings=32),
    ],
    ids=str,
)
def test_rates_that_depend_on_the_length(fields, length):
    expected, expected_factor = their_rates(BASE | fields, length)
    found, factor = our_rates(BASE | fields, length)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert factor == pytest.approx(expected_factor, rel=1e-6)


def test_the_longest_sequence_of_a_dynamic_scaling():
    """It is the original length times the factor; with other scalings, that of the file."""
    scaled = FAMILIES["llama"].read(BASE | dict(rope_parameters=DYNAMIC), [])
    assert (scaled.max_length, scaled.scaling["original_max_position_embeddings"]) == (256, 64)
    assert FAMILIES["llama"].read(BASE | dict(rope_parameters=LONG), []).max_length == 64


NUMBERS = {
    "factor": st.floats(0.5, 40) | st.integers(1, 40),
    "attention_factor": st.none() | st.floats(0.0, 2.0),
    "beta_fast": st.none() | st.floats(1.0, 64.0),
    "beta_slow": st.none() | st.just(0.0) | st.floats(1e-6, 1.0),  # theirs overflows below
    "mscale": st.none() | st.floats(0.0, 2.0),
    "mscale_all_dim": st.none() | st.floats(0.0, 2.0),
    "truncate": st.none() | st.booleans(),
    "original_max_position_embeddings": st.integers(1, 10**6),
    "low_freq_factor": st.floats(0.1, 2.0),
    "high_freq_factor": st.floats(2.1, 9.0),
    "rope_theta": st.floats(1.5, 1e7),
}
NEEDED = ("factor", "low_freq_factor", "high_freq_factor")
SCALINGS = st.fixed_dictionaries(
    {"rope_type": st.sampled_from(["default", "linear", "llama3", "yarn"])}
    | {name: NUMBERS[name] for name in NEEDED},
    optional={name: numbers for name, numbers in NUMBERS.items() if name not in NEEDED},
)
CONFIGS = st.fixed_dictionaries(
    {},
    optional={
        "rope_theta": NUMBERS["rope_theta"],
        "rope_scaling": st.none() | SCALINGS,
        "rope_parameters": st.none() | SCALINGS,
        "original_max_position_embeddings": NUMBERS["original_max_position_embeddings"],
        "head_dim": st.none() | st.sampled_from([2, 6, 32, 128]),
        "max_position_embeddings": st.integers(1, 10**6),
    },
)


@settings(max_examples=60)
@given(CONFIGS)
def test_the_whole_space(fields):
    assert_same(BASE | fields)


@pytest.mark.parametrize(
    "fields,message",
    [
        (dict(rope_parameters=[LINEAR]), r"rope_parameters must be an object or null, got \[\{"),
        (dict(rope_scaling="linear"), "rope_scaling must be an object or null, got 'linear'"),
        (dict(rope_theta=None), "rope_theta must be a number above 0, got None"),
        (dict(rope_parameters=LINEAR | dict(rope_theta=None)), "rope_theta must be a number above"),
        (dict(rope_parameters=LINEAR | dict(rope_theta="1e4")), "rope_theta must be .*, got '1e4'"),
        (dict(rope_parameters=LINEAR | dict(rope_type=None)), "rope_type of scaling must be one"),
        (dict(rope_parameters=LINEAR | dict(rope_type="axial")), "rope_type .*, got 'axial'"),
        (
            dict(rope_parameters=LONG | dict(short_factor=[1.0])),
            "short_factor .* 8 numbers, .*got 1",
        ),
        (dict(rope_parameters=LONG | dict(long_factor=2)), "long_factor of scaling must be a list"),
        (dict(rope_parameters=LINEAR | dict(rope_type=["yarn"])), r"rope_type .*, got \['yarn'\]"),
        (dict(rope_parameters=LINEAR | dict(factor=None)), "factor of scaling must be a number ab"),
        (dict(rope_parameters=YARN | dict(factor=-1)), "factor of scaling must be .*, got -1"),
        (dict(rope_parameters=YARN | dict(beta_fast="32")), "beta_fast of scaling .* got '32'"),
        (dict(rope_parameters=YARN | dict(mscale=[1])), r"mscale of scaling must be .*, got \[1\]"),
        (dict(rope_parameters=YARN | dict(rope_theta=1)), "theta must be .* above 1 for .*'yarn'"),
        (
            dict(rope_parameters=YARN, original_max_position_embeddings=None),
            "original_max_position_embeddings of scaling must be a number above 0, got None",
        ),
        (
            dict(rope_parameters=LLAMA3 | dict(low_freq_factor=4.0)),
            "high_freq_factor of scaling must be above low_freq_factor=4.0, got 4.0",
        ),
        (dict(rope_parameters=dict(rope_type="llama3", factor=2.0)), "must have .*low_freq_factor"),
        (dict(partial_rotary_factor=0.5), "partial_rotary_factor must be 1, got 0.5"),
        (
            dict(rope_parameters=LINEAR | dict(partial_rotary_factor=0.25)),
            "partial_rotary_factor must be 1, got 0.25",
        ),
        (
            dict(rope_parameters=dict(full_attention=LINEAR)),
            "rope_parameters must hold one set of numbers for all layers, got .*full_attention",
        ),
    ],
)
def test_what_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        our_rates(BASE | fields)
