"""The decoder and its block against PyTorch; causality; the cache; padding."""

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from keras import ops

from keras_transformer.layers import Decoder, DecoderBlock, Encoder, record_attention

SHAPE = BATCH, LENGTH, WIDTH = 2, 5, 6
MEMORY = 4
HEADS, INNER = 2, 10

numpy = ops.convert_to_numpy


@pytest.fixture
def x(rng):
    return rng.standard_normal(SHAPE).astype("float32")


@pytest.fixture
def memory(rng):
    return rng.standard_normal((BATCH, MEMORY, WIDTH)).astype("float32")


@pytest.fixture
def real():
    """Which memory positions are no padding."""
    return np.arange(MEMORY)[None] < np.array([2, 4])[:, None]


@pytest.fixture(scope="module")
def decoders(randomize):
    """A post-norm and a pre-norm decoder."""

    def build(norm_first):
        decoder = Decoder(2, HEADS, INNER, norm_first=norm_first)
        decoder.build(SHAPE, (BATCH, MEMORY, WIDTH))
        return randomize(decoder)

    return {norm_first: build(norm_first) for norm_first in (False, True)}


@pytest.mark.parametrize("norm_first", [False, True])
def test_block_equals_pytorchs(x, memory, real, from_torch, shake, norm_first):
    torch = pytest.importorskip("torch")
    theirs = shake(
        torch.nn.TransformerDecoderLayer(WIDTH, HEADS, INNER, 0.0, "gelu", 1e-6, True, norm_first)
    )
    block = DecoderBlock(HEADS, INNER, activation="gelu", norm_first=norm_first)
    block.build(SHAPE, memory.shape)
    from_torch(block, theirs)
    with torch.no_grad():
        expected = theirs(
            torch.from_numpy(x),
            torch.from_numpy(memory),
            tgt_mask=torch.from_numpy(~np.tri(LENGTH, dtype=bool)),
            memory_key_padding_mask=torch.from_numpy(~real),
        )
    ours, _ = block(x, memory=memory, cross_attention_mask=real[:, None, None])
    np.testing.assert_allclose(numpy(ours), expected.numpy(), atol=2e-5)


@pytest.mark.parametrize("norm_first", [False, True])
@hypothesis.settings(
    max_examples=10, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture]
)
@hypothesis.given(place=st.integers(0, LENGTH - 1), seed=st.integers(0, 2**32 - 1))
def test_the_future_changes_nothing(x, memory, decoders, norm_first, place, seed):
    other = x.copy()
    noise = np.random.default_rng(seed).standard_normal(x[:, place:].shape)
    other[:, place:] += noise.astype("float32")
    one, another = (numpy(decoders[norm_first](y, memory=memory)[0]) for y in (x, other))
    np.testing.assert_array_equal(one[:, :place], another[:, :place])
    assert np.abs(one[:, place] - another[:, place]).max() > 0


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("first", [1, 3])
def test_prefill_and_steps_equal_one_pass(x, memory, real, decoders, norm_first, first):
    decoder, mask = decoders[norm_first], real[:, None, None]
    whole, _ = decoder(x, memory=memory, cross_attention_mask=mask)
    output, caches = decoder(x[:, :first], memory=memory, cross_attention_mask=mask)
    np.testing.assert_allclose(numpy(output), numpy(whole)[:, :first], atol=1e-5)
    room = ((0, 0), (0, 0), (0, LENGTH - first), (0, 0))
    caches = [
        {
            "self": {name: ops.pad(value, room) for name, value in cache["self"].items()},
            "cross": cache["cross"],
        }
        for cache in caches
    ]
    for i in range(first, LENGTH):
        output, caches = decoder(x[:, i : i + 1], cross_attention_mask=mask, cache=caches, index=i)
        np.testing.assert_allclose(numpy(output)[:, 0], numpy(whole)[:, i], atol=1e-5)


def test_padding_of_the_memory_changes_nothing(x, memory, real, rng, decoders):
    mask = real[:, None, None]
    plain, _ = decoders[False](x, memory=memory, cross_attention_mask=mask)
    memory[~real] = 10 * rng.standard_normal(memory[~real].shape)
    other, _ = decoders[False](x, memory=memory, cross_attention_mask=mask)
    np.testing.assert_allclose(numpy(other), numpy(plain), atol=1e-5)
    unmasked, _ = decoders[False](x, memory=memory)
    assert np.abs(numpy(unmasked) - numpy(plain)).max() > 1e-2


def test_attention_mask_stands_beside_the_causal_order(x, memory, decoders):
    mask = np.ones((1, 1, LENGTH, LENGTH), bool)
    mask[..., 1] = False
    with record_attention() as weights:
        decoders[False](x, memory=memory, attention_mask=mask)
    allowed = mask[0, 0] & np.tri(LENGTH, dtype=bool)
    recorded = [value for path, value in weights.items() if path.endswith("self_attention")]
    assert len(recorded) == 2
    for value in recorded:
        np.testing.assert_array_equal(numpy(value)[0, 0] > 0, allowed)


def test_recorded_paths(x, memory):
    with record_attention() as weights:
        Decoder(1, HEADS, INNER, name="decoder")(x, memory=memory)
    keys = {"self_attention": LENGTH, "cross_attention": MEMORY}
    assert list(weights) == [f"decoder/block_0/{name}" for name in keys]
    for value, key_length in zip(weights.values(), keys.values(), strict=True):
        assert tuple(value.shape) == (BATCH, HEADS, LENGTH, key_length)
        np.testing.assert_allclose(numpy(value).sum(-1), 1, atol=1e-6)


def test_without_cross_attention_it_is_a_causal_encoder(x, randomize):
    decoder = Decoder(2, HEADS, INNER, cross_attention=False)
    decoder.build(SHAPE)
    randomize(decoder)
    whole, caches = decoder(x)
    assert [set(cache) for cache in caches] == [{"self"}, {"self"}]
    room = ((0, 0), (0, 0), (0, LENGTH - 2), (0, 0))
    _, caches = decoder(x[:, :2])
    caches = [
        {"self": {name: ops.pad(value, room) for name, value in cache["self"].items()}}
        for cache in caches
    ]
    step, _ = decoder(x[:, 2:3], cache=caches, index=2)
    np.testing.assert_allclose(numpy(step)[:, 0], numpy(whole)[:, 2], atol=1e-5)


def test_without_the_causal_mask_it_is_an_encoder(x, randomize):
    options = dict(relative_positions=(8, 6), norm_first=True, window=3)
    decoder = Decoder(2, HEADS, INNER, cross_attention=False, causal=False, **options)
    decoder.build(SHAPE)
    randomize(decoder)
    encoder = Encoder(2, HEADS, INNER, **options)
    encoder.build(SHAPE)
    encoder.set_weights(decoder.get_weights())
    np.testing.assert_allclose(numpy(decoder(x)[0]), numpy(encoder(x)), atol=1e-5)


def test_dropout_in_training_only(x, memory):
    block = DecoderBlock(HEADS, INNER, dropout=0.5)
    plain, trained = (numpy(block(x, memory=memory, training=on)[0]) for on in (False, True))
    assert np.abs(plain - trained).max() > 1e-2
    np.testing.assert_array_equal(plain, numpy(block(x, memory=memory)[0]))


OPTIONS = dict(num_heads=HEADS, d_ff=INNER, dropout=0.25, activation="gelu")


@pytest.mark.once("test_every_layer.py saves each layer under each backend")
@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_block_round_trips(x, memory, round_trips, dtype):
    layer = DecoderBlock(**OPTIONS, norm_first=True, dtype=dtype, name="block")
    round_trips(layer, x=x, memory=memory)


@pytest.mark.once("test_every_layer.py saves each layer under each backend")
@pytest.mark.parametrize("norm_first", [False, True])
def test_stack_round_trips(x, memory, round_trips, norm_first):
    round_trips(Decoder(2, **OPTIONS, norm_first=norm_first, name="decoder"), x=x, memory=memory)


@pytest.mark.once("test_every_layer.py saves each layer under each backend")
def test_decoder_only_round_trips(x, round_trips):
    round_trips(Decoder(2, **OPTIONS, cross_attention=False, causal=False, name="decoder"), x=x)
    round_trips(DecoderBlock(**OPTIONS, cross_attention=False, name="block"), x=x)


def test_a_mask_for_each_block(x, randomize):
    """Two windows have caches of different sizes, and so masks of their own."""
    decoder = Decoder(2, HEADS, INNER, cross_attention=False, by_layer=[dict(window=2), {}])
    decoder.build(SHAPE)
    randomize(decoder)
    whole, _ = decoder(x)
    _, caches = decoder(x[:, :-1])
    ring = {}
    for name, keys in caches[0]["self"].items():
        keys = numpy(keys)[:, :, -2:]  # positions 2 and 3, in places 0 and 1
        ring[name] = ops.convert_to_tensor(keys)
    room = {}
    for name, keys in caches[1]["self"].items():
        room[name] = ops.convert_to_tensor(np.pad(numpy(keys), ((0, 0), (0, 0), (0, 1), (0, 0))))
    masks = [np.ones((1, 1, 1, 2), bool), np.ones((1, 1, 1, LENGTH), bool)]
    step, _ = decoder(
        x[:, -1:],
        attention_mask=[ops.convert_to_tensor(mask) for mask in masks],
        cache=[{"self": ring, "cross": None}, {"self": room, "cross": None}],
        index=LENGTH - 1,
    )
    np.testing.assert_allclose(numpy(step)[:, 0], numpy(whole)[:, -1], atol=1e-5)
