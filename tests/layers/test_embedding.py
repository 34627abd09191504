"""Embeddings: the sinusoids' formula, learned positions, the tied output."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.layers import PositionalEmbedding, segment_positions, sinusoids

VOCABULARY, WIDTH, LENGTH = 11, 6, 9
IDS = np.array([[4, 3, 0, 7], [1, 10, 4, 4]], "int32")

numpy = ops.convert_to_numpy


def built(randomize, **options):
    layer = PositionalEmbedding(VOCABULARY, WIDTH, max_length=LENGTH, **options)
    layer.build((None, None))
    return randomize(layer)


def formula(position, dimension, width):
    angle = position / 10000 ** (2 * (dimension // 2) / width)
    return np.cos(angle) if dimension % 2 else np.sin(angle)


def test_sinusoids_against_the_formula():
    table = sinusoids(50, 8)
    expected = [[formula(position, d, 8) for d in range(8)] for position in range(50)]
    assert table.dtype == "float32"
    np.testing.assert_allclose(table, expected, atol=1e-6)


def test_other_layouts_of_sinusoids():
    plain, halves = sinusoids(20, 8), sinusoids(20, 8, "sinusoidal_halves")
    np.testing.assert_array_equal(halves, np.concatenate([plain[:, ::2], plain[:, 1::2]], axis=1))
    last = sinusoids(20, 8, "sinusoidal_tensor2tensor")
    rates = np.exp(-np.log(10_000) * np.arange(4) / 3)  # the last one is 1 / 10,000
    angles = np.arange(20)[:, None] * rates
    np.testing.assert_allclose(last, np.hstack([np.sin(angles), np.cos(angles)]), atol=1e-6)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_offset_scale_and_norm(randomize, positions):
    options = dict(positions=positions, scale=False, position_offset=2, norm=True, epsilon=0.1)
    layer = built(randomize, **options)
    table = sinusoids(LENGTH + 2, WIDTH)
    if positions == "learned":
        table = numpy(layer.learned.embeddings)
        assert len(table) == LENGTH + 2
    x = numpy(layer.tokens.embeddings)[IDS] + table[2:6]
    normal = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 0.1)
    expected = normal * numpy(layer.norm.gamma) + numpy(layer.norm.beta)
    np.testing.assert_allclose(numpy(layer(IDS)), expected, atol=1e-5)


def test_a_shared_table(randomize):
    one = built(randomize, positions="learned")
    other = PositionalEmbedding(VOCABULARY, WIDTH, "none", tokens=one.tokens)
    expected = numpy(one.tokens.embeddings)[IDS] * np.sqrt(WIDTH)
    np.testing.assert_allclose(numpy(other(IDS)), expected, atol=1e-5)
    assert [weight.path for weight in other.weights] == [one.tokens.embeddings.path]


def test_another_factor(randomize):
    layer = built(randomize, positions="none", scale=12.0)
    expected = numpy(layer.tokens.embeddings)[IDS] * 12
    np.testing.assert_allclose(numpy(layer(IDS)), expected, rtol=1e-6)


def test_a_shift_of_sinusoids_is_a_rotation():
    # Section 3.5: PE(pos + k) is a linear function of PE(pos), the same at each position.
    table, shift = sinusoids(40, 8).reshape(40, 4, 2), 7
    angles = shift / 10000 ** (np.arange(4) / 4)
    sine, cosine = np.sin(angles), np.cos(angles)
    rotations = np.array([[cosine, sine], [-sine, cosine]])
    np.testing.assert_allclose(
        np.einsum("xyi,piy->pix", rotations, table[:-shift]), table[shift:], atol=1e-5
    )


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "none"])
@pytest.mark.parametrize("index", [0, 5])
def test_scaled_tokens_and_positions(randomize, positions, index):
    layer = built(randomize, positions=positions)
    expected = numpy(layer.tokens.embeddings)[IDS] * np.sqrt(WIDTH)
    if positions == "sinusoidal":
        expected = expected + sinusoids(LENGTH, WIDTH)[index : index + 4]
    elif positions == "learned":
        expected = expected + numpy(layer.learned.embeddings)[index : index + 4]
    np.testing.assert_allclose(numpy(layer(IDS, index=index)), expected, atol=1e-5)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "none"])
def test_positions_begin_anew_in_each_segment(randomize, positions):
    layer = built(randomize, positions=positions)
    segments = np.array([[1, 1, 2, 3], [1, 2, 2, 0]], "int32")
    places = np.array([[0, 1, 0, 0], [0, 0, 1, 0]])
    embedded = numpy(layer(IDS, positions=segment_positions(segments)))
    for b, t in np.ndindex(IDS.shape):
        wanted = numpy(layer(IDS[b : b + 1, t : t + 1], index=int(places[b, t])))[0, 0]
        np.testing.assert_allclose(embedded[b, t], wanted, atol=1e-6)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "none"])
def test_the_weights_are_the_tables_and_nothing_else(randomize, positions):
    shapes = [tuple(weight.shape) for weight in built(randomize, positions=positions).weights]
    assert shapes == [(VOCABULARY, WIDTH)] + [(LENGTH, WIDTH)] * (positions == "learned")


def test_reverse_is_the_product_with_the_transposed_table(rng, randomize):
    layer = built(randomize)
    x = rng.standard_normal((2, 3, WIDTH)).astype("float32")
    expected = x @ numpy(layer.tokens.embeddings).T
    np.testing.assert_allclose(numpy(layer(x, reverse=True)), expected, atol=1e-5)


def test_both_directions_start_at_unit_size():
    layer = PositionalEmbedding(500, 64, positions="none")
    assert abs(numpy(layer(np.arange(500)[None])).std() - 1) < 0.05
    logits = layer(np.random.default_rng(0).standard_normal((1, 50, 64)), reverse=True)
    assert abs(numpy(logits).std() - 1) < 0.05


def test_dropout_in_training_only():
    layer = PositionalEmbedding(VOCABULARY, 64, dropout=0.25)
    ids = np.full((1, 100), 3)
    assert (numpy(layer(ids)) != 0).all()
    assert 0.2 < (numpy(layer(ids, training=True)) == 0).mean() < 0.3


@pytest.mark.once("test_every_layer.py saves each layer under each backend")
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "none"])
@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_round_trips(round_trips, positions, dtype):
    layer = PositionalEmbedding(
        VOCABULARY, WIDTH, positions, LENGTH, dropout=0.25, dtype=dtype, name="embedding"
    )
    round_trips(layer, inputs=IDS)


@pytest.mark.once("test_in_models.py saves a shared table under each backend")
def test_a_tied_graph_saves(randomize, saved_and_loaded):
    layer = PositionalEmbedding(VOCABULARY, WIDTH, max_length=LENGTH)
    ids = keras.Input((None,), dtype="int32")
    model = randomize(keras.Model(ids, layer(layer(ids), reverse=True)))
    loaded = saved_and_loaded(model)
    assert loaded.count_params() == VOCABULARY * WIDTH
    np.testing.assert_allclose(numpy(loaded(IDS)), numpy(model(IDS)), atol=1e-6)


def test_errors_name_the_argument():
    with pytest.raises(ValueError, match=r"positions must be one of .*'sinusoidal'.* got 'rotary'"):
        PositionalEmbedding(VOCABULARY, WIDTH, positions="rotary")
    with pytest.raises(ValueError, match="d_model must be even for sinusoidal positions, got 7"):
        PositionalEmbedding(VOCABULARY, 7)
    PositionalEmbedding(VOCABULARY, 7, positions="learned")


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_more_tokens_than_positions(positions):
    layer = PositionalEmbedding(VOCABULARY, WIDTH, positions, max_length=3)
    with pytest.raises(ValueError, match="inputs must be at most 3 tokens long, got 4"):
        layer(np.zeros((1, 4), "int32"))
    layer(np.zeros((1, 4), "int32"), positions=np.array([[0, 1, 2, 0]], "int32"))
