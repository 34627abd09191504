"""The encoder and its block against PyTorch; norm orders; padding."""

import numpy as np
import pytest
from keras import ops

from keras_transformer.layers import Encoder, EncoderBlock, record_attention

SHAPE = BATCH, LENGTH, WIDTH = 2, 5, 6
HEADS, INNER = 2, 10

numpy = ops.convert_to_numpy


@pytest.fixture
def x(rng):
    return rng.standard_normal(SHAPE).astype("float32")


@pytest.fixture
def real():
    """Which tokens are no padding."""
    return np.arange(LENGTH)[None] < np.array([3, 5])[:, None]


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm_first", [False, True])
def test_block_equals_pytorchs(x, real, from_torch, shake, norm_first, activation):
    torch = pytest.importorskip("torch")
    theirs = shake(
        torch.nn.TransformerEncoderLayer(
            WIDTH, HEADS, INNER, 0.0, activation, 1e-6, True, norm_first
        )
    )
    block = EncoderBlock(HEADS, INNER, activation=activation, norm_first=norm_first)
    block.build(SHAPE)
    from_torch(block, theirs)
    with torch.no_grad():
        expected = theirs(torch.from_numpy(x), src_key_padding_mask=torch.from_numpy(~real))
    ours = numpy(block(x, attention_mask=real[:, None, None]))
    np.testing.assert_allclose(ours[real], expected.numpy()[real], atol=2e-5)


@pytest.mark.parametrize("norm_first", [False, True])
def test_stack_equals_pytorchs(x, real, from_torch, shake, norm_first):
    torch = pytest.importorskip("torch")
    layer = torch.nn.TransformerEncoderLayer(
        WIDTH, HEADS, INNER, 0.0, "relu", 1e-6, True, norm_first
    )
    # Pre-norm leaves the stream without a norm; the stack adds the last one.
    norm = torch.nn.LayerNorm(WIDTH, eps=1e-6) if norm_first else None
    theirs = shake(torch.nn.TransformerEncoder(layer, 2, norm, enable_nested_tensor=False))
    encoder = Encoder(2, HEADS, INNER, norm_first=norm_first)
    encoder.build(SHAPE)
    from_torch(encoder, theirs)
    with torch.no_grad():
        expected = theirs(torch.from_numpy(x), src_key_padding_mask=torch.from_numpy(~real))
    ours = numpy(encoder(x, attention_mask=real[:, None, None]))
    np.testing.assert_allclose(ours[real], expected.numpy()[real], atol=2e-5)


@pytest.mark.parametrize("norm_first", [False, True])
def test_what_stands_at_padding_changes_nothing(x, real, rng, randomize, norm_first):
    encoder = Encoder(2, HEADS, INNER, norm_first=norm_first)
    encoder.build(SHAPE)
    randomize(encoder)
    mask = real[:, None, None]
    plain = numpy(encoder(x, attention_mask=mask))
    assert np.abs(plain - numpy(encoder(x))).max() > 1e-2  # the mask does something
    x[~real] = 10 * rng.standard_normal(x[~real].shape)
    np.testing.assert_allclose(numpy(encoder(x, attention_mask=mask))[real], plain[real], atol=1e-5)


def test_masks_a_head_apart(x, randomize):
    block = EncoderBlock(HEADS, INNER)
    block.build(SHAPE)
    randomize(block)
    mask = np.ones((BATCH, HEADS, LENGTH, LENGTH), bool)
    mask[:, 1, :, 2:] = False
    with record_attention() as weights:
        block(x, attention_mask=mask)
    (recorded,) = weights.values()
    assert (numpy(recorded)[~mask] == 0).all() and (numpy(recorded)[mask] > 0).all()


def test_recorded_paths(x):
    with record_attention() as weights:
        Encoder(2, HEADS, INNER, name="encoder")(x)
    assert list(weights) == ["encoder/block_0/attention", "encoder/block_1/attention"]
    for value in weights.values():
        assert tuple(value.shape) == (BATCH, HEADS, LENGTH, LENGTH)
        np.testing.assert_allclose(numpy(value).sum(-1), 1, atol=1e-6)


def test_dropout_in_training_only(x):
    block = EncoderBlock(HEADS, INNER, dropout=0.5)
    assert np.abs(numpy(block(x, training=True)) - numpy(block(x))).max() > 1e-2
    np.testing.assert_array_equal(numpy(block(x)), numpy(block(x)))


OPTIONS = dict(num_heads=HEADS, d_ff=INNER, dropout=0.25, activation="gelu")


@pytest.mark.once("test_every_layer.py saves each layer under each backend")
@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_block_round_trips(x, round_trips, dtype):
    round_trips(EncoderBlock(**OPTIONS, norm_first=True, dtype=dtype, name="block"), x=x)


@pytest.mark.once("test_every_layer.py saves each layer under each backend")
@pytest.mark.parametrize("norm_first", [False, True])
def test_stack_round_trips(x, round_trips, norm_first):
    round_trips(Encoder(2, **OPTIONS, norm_first=norm_first, name="encoder"), x=x)
