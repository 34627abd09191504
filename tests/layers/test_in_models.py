"""Our layers inside a user's own Keras code: `Sequential`, subclassed and functional models."""

import warnings

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.layers import (
    AddNorm,
    AudioEmbedding,
    Decoder,
    DecoderBlock,
    Encoder,
    EncoderBlock,
    FeedForward,
    FramePrenet,
    MultiHeadAttention,
    PatchEmbedding,
    PositionalEmbedding,
    RelativeBias,
    padding_mask,
)
from keras_transformer.layers.layer import replacing_weights
from tests.backends import cases

RNG = np.random.default_rng(0)
IDS = np.array([[3, 4, 5, 0, 0], [1, 2, 0, 0, 0], [5, 6, 7, 8, 9]], "int32")
X = RNG.standard_normal((3, 5, 8)).astype("float32")
FRAMES = RNG.standard_normal((3, 6, 4)).astype("float32")
IMAGES = RNG.standard_normal((3, 4, 4, 3)).astype("float32")
numpy = ops.convert_to_numpy


@keras.saving.register_keras_serializable("test_in_models")
class Relative(keras.layers.Layer):
    """A `RelativeBias` as a user's layer would have it: of positions, not of its input."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.bias = RelativeBias(2, 4, 8, dtype=self.dtype_policy)

    def build(self, x_shape):
        self.bias.build()

    def call(self, x):
        places = ops.arange(5, dtype="int32")
        return x + ops.sum(self.bias(places, places))


LAYERS = {  # how to make one, and what it is called with: tensors, the second of them the memory
    "positions": (lambda **k: PositionalEmbedding(11, 8, max_length=9, **k), IDS),
    "learned": (lambda **k: PositionalEmbedding(11, 8, "learned", 9, norm=True, **k), IDS),
    "add_norm": (lambda **k: AddNorm(norm_first=True, **k), X),
    "feed_forward": (lambda **k: FeedForward(12, gated=True, **k), X),
    "encoder_block": (lambda **k: EncoderBlock(2, 12, dropout=0.0, **k), X),
    "encoder": (lambda **k: Encoder(1, 2, 12, norm_first=True, relative_positions=(4, 8), **k), X),
    "rotary": (lambda **k: Encoder(1, 2, 12, rotary={"head_dim": 4}, norm="rms", **k), X),
    "audio": (lambda **k: AudioEmbedding(8, 6, **k), FRAMES),
    "prenet": (lambda **k: FramePrenet(8, 6, hidden=4, **k), FRAMES),
    "patches": (lambda **k: PatchEmbedding(8, (4, 4), 2, **k), IMAGES),
    "relative": (lambda **k: Relative(**k), X),
    "attention": (lambda **k: MultiHeadAttention(2, causal=True, **k), X),
    "decoder_block": (lambda **k: DecoderBlock(2, 12, dropout=0.0, cross_attention=False, **k), X),
    "decoder": (lambda **k: Decoder(1, 2, 12, norm_first=True, **k), X, X),
    "cross_attention": (lambda **k: MultiHeadAttention(2, cross_attention=True, **k), X, X),
}
WITH_CACHE = ("attention", "decoder_block", "decoder", "cross_attention")  # what they give besides


@keras.saving.register_keras_serializable("test_in_models")
class Own(keras.Model):
    """A user's model around a layer of ours."""

    def __init__(self, inner, **kwargs):
        super().__init__(**kwargs)
        self.inner = inner
        self.pool = keras.layers.GlobalAveragePooling1D()
        self.dense = keras.layers.Dense(3)

    def call(self, inputs):
        x, memory = inputs if isinstance(inputs, list | tuple) else (inputs, None)
        x = self.inner(x) if memory is None else self.inner(x, memory=memory)
        return self.dense(self.pool(x[0] if isinstance(x, tuple) else x))

    def get_config(self):
        return super().get_config() | {"inner": keras.saving.serialize_keras_object(self.inner)}

    @classmethod
    def from_config(cls, config):
        return cls(**config | {"inner": keras.saving.deserialize_keras_object(config["inner"])})


@pytest.fixture(autouse=True)
def no_warnings():
    """Keras only warns where it cannot build, and then loads nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.filterwarnings("ignore", message=".*`x.T` on tensors")  # Keras's own
        yield


def logits(model, inputs):
    return numpy(ops.cast(ops.stop_gradient(model(inputs)), "float32"))


def alone():
    """Where each layer is tried."""
    for name in LAYERS:
        yield name, "subclassed"
        if name not in WITH_CACHE:
            yield name, "sequential"


# `Sequential` has a way of its own for what is no float, and a layer of two inputs for its second.
ELSEWHERE = [("learned", "sequential"), ("decoder", "subclassed"), ("relative", "subclassed")]


@pytest.mark.parametrize(("name", "kind"), cases(alone(), *ELSEWHERE))
def test_alone_in_a_saved_model(name, kind, saved_and_loaded):
    make, *inputs = LAYERS[name]
    inner = make()
    if kind == "sequential":
        inner = keras.Sequential([make(dtype="mixed_bfloat16")])
    model = Own(inner)
    inputs = [ops.convert_to_tensor(x) for x in inputs]
    inputs = inputs if len(inputs) > 1 else inputs[0]
    expected = logits(model, inputs)
    loaded = saved_and_loaded(model)
    assert len(loaded.weights) == len(model.weights)
    np.testing.assert_array_equal(logits(loaded, inputs), expected)


@pytest.mark.parametrize("name", [name for name in LAYERS if name != "relative"])
def test_the_shape_of_what_comes_out_is_known_before_a_call(name):
    make, *inputs = LAYERS[name]
    layer = make()
    shape = layer.compute_output_shape(*(x.shape for x in inputs))
    assert not layer.built
    layer.build(*(x.shape for x in inputs))
    again = layer.compute_output_shape(*((None, *x.shape[1:]) for x in inputs))
    first, first_again = (x[0] if name in WITH_CACHE else x for x in (shape, again))
    length = {"audio": 3, "prenet": 6}.get(name, 5)
    assert (first, first_again) == ((3, length, 8), (None, length, 8))


@pytest.mark.parametrize("kind", cases(["subclassed", "sequential"], "subclassed"))
def test_fit_of_an_uncalled_model_and_of_its_copy(kind, saved_and_loaded):
    """The model's variables are made by a call on shapes alone."""
    model = Own(LAYERS["positions"][0](dtype="mixed_bfloat16"))
    if kind == "sequential":
        model = keras.Sequential(
            [LAYERS["learned"][0](), *Own(LAYERS["encoder_block"][0]()).layers]
        )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.01), loss)
    first, second = model.fit(IDS, np.arange(3), epochs=2, verbose=0).history["loss"]
    assert second < first
    loaded = saved_and_loaded(model)
    losses = [x.fit(IDS, np.arange(3), verbose=0).history["loss"] for x in (model, loaded)]
    np.testing.assert_allclose(*losses, rtol=1e-3 if kind == "subclassed" else 1e-5)


def test_ids_that_come_as_floats():
    layer = PositionalEmbedding(1000, 8, dtype="mixed_bfloat16")
    ids = np.array([[257, 998, 999]], "int32")
    expected = logits(layer, ids)
    np.testing.assert_array_equal(logits(layer, ids.astype("float32")), expected)
    message = "inputs must be whole numbers, got bfloat16, .* up to 256 only: put keras.Input"
    with pytest.raises(ValueError, match=message):
        layer(ops.cast(ids, "bfloat16"))


@pytest.mark.once("made of parts that are tested under each backend")
@pytest.mark.parametrize("cleared", cases([False, True], True))
def test_other_values_of_the_variables(cleared):
    """`stateless_call` and what is built on it give the variables values for one call."""
    if cleared:
        keras.utils.clear_session()
    encoder = LAYERS["encoder"][0]()
    encoder.build(X.shape)
    trained, others = encoder.trainable_variables, encoder.non_trainable_variables
    values = [ops.convert_to_tensor(v) * 0.5 for v in trained]
    given, _ = encoder.stateless_call(values, [v.value for v in others], ops.convert_to_tensor(X))
    assert np.abs(logits(encoder, X) - numpy(given)).max() > 0.1
    for variable, value in zip(trained, values, strict=True):
        variable.assign(value)
    np.testing.assert_allclose(logits(encoder, X), numpy(given), atol=1e-5)


def test_distributed_over_time():
    layer = LAYERS["encoder_block"][0]()
    inputs = keras.Input((None, 5, 8))
    model = keras.Model(inputs, keras.layers.TimeDistributed(layer)(inputs))
    both = np.stack([X, 2 * X], axis=1)
    expected = np.stack([logits(layer, X), logits(layer, 2 * X)], axis=1)
    np.testing.assert_allclose(logits(model, both), expected, atol=1e-5)


def masked_parts(mask_zero):
    """An embedding, and all that attends to what it gives, or passes it on."""
    return dict(
        embedding=keras.layers.Embedding(11, 8, mask_zero=mask_zero),
        add_norm=AddNorm(norm_first=True),
        encoder=Encoder(1, 2, 12),
        feed_forward=FeedForward(12),
        block=EncoderBlock(2, 12),
        decoder=Decoder(1, 2, 12),
        decoder_block=DecoderBlock(2, 12),
        cross=MultiHeadAttention(2, cross_attention=True),
        attention=MultiHeadAttention(2),
    )


def masked_call(parts, ids, mask=None):
    cross = dict(attention_mask=mask, cross_attention_mask=mask)
    x = parts["add_norm"](parts["embedding"](ids))
    memory = parts["feed_forward"](parts["encoder"](x, attention_mask=mask))
    memory = parts["block"](memory, attention_mask=mask)
    y, _ = parts["decoder"](x, memory=memory, **cross)
    y, _ = parts["decoder_block"](y, memory=memory, **cross)
    y, _ = parts["cross"](y, memory=memory, attention_mask=mask)
    return parts["attention"](y, attention_mask=mask)[0]


def test_the_mask_of_an_embedding_is_that_of_the_attention(randomize, saved_and_loaded):
    models, called = [], []
    for mask_zero in (True, False):
        ids, parts = keras.Input((None,), dtype="int32"), masked_parts(mask_zero)
        mask = None if mask_zero else padding_mask(ids)
        models.append(randomize(keras.Model(ids, masked_call(parts, ids, mask))))
        mask = None if mask_zero else padding_mask(ops.convert_to_tensor(IDS))
        called.append(logits(lambda x: masked_call(parts, x, mask), IDS))  # noqa: B023
    implicit, explicit = models
    expected = logits(explicit, IDS)
    for found in (logits(implicit, IDS), logits(saved_and_loaded(implicit), IDS), *called):
        np.testing.assert_allclose(found, expected, atol=1e-6)
    alone = logits(implicit, IDS[:1, :3])  # the first sentence without its padding
    np.testing.assert_allclose(expected[:1, :3], alone, atol=1e-5)


def test_a_mask_that_is_given_counts_alone():
    x = keras.layers.Embedding(11, 8, mask_zero=True)(IDS)
    encoder = LAYERS["encoder"][0]()
    own = np.zeros((3, 1, 1, 5), "bool")
    own[..., 1:] = True
    given = logits(lambda x: encoder(x, attention_mask=own), x)
    plain = logits(lambda x: encoder(x, attention_mask=own), ops.copy(x))
    np.testing.assert_array_equal(given, plain)


MODES = ("int8", "int4") if keras.backend.backend() == "torch" else ("int8",)  # none knows it


@pytest.mark.once("made of parts that are tested under each backend")
@pytest.mark.parametrize("mode", MODES)
def test_a_quantized_model_of_a_users_own(mode, saved_and_loaded):
    ids = keras.Input((None,), dtype="int32")
    embedding = PositionalEmbedding(11, 8, "learned", 9)
    again = PositionalEmbedding(11, 8, "none", tokens=embedding.tokens)
    x = keras.layers.Dense(8)(LAYERS["encoder"][0]()(embedding(ids)))
    y, _ = LAYERS["cross_attention"][0]()(again(ids), memory=x)
    model = keras.Model(ids, embedding(y, reverse=True))
    floats = logits(model, IDS)
    with warnings.catch_warnings(), replacing_weights():
        warnings.simplefilter("ignore")  # each layer that has nothing to quantize
        model.quantize(mode)
    expected = logits(model, IDS)
    assert np.abs(expected - floats).max() > 0
    for _ in range(2 if mode == "int8" else 1):  # saved, loaded, saved and loaded
        model = saved_and_loaded(model)
        np.testing.assert_array_equal(logits(model, IDS), expected)
        matrices = {keras.backend.standardize_dtype(w.dtype) for w in model.weights if w.ndim == 2}
        assert "int8" in matrices


def test_a_token_table_that_layers_share(saved_and_loaded):
    ids = keras.Input((None,), dtype="int32")
    first = PositionalEmbedding(11, 8)
    second = PositionalEmbedding(11, 8, norm=True, tokens=first.tokens)
    model = keras.Model(ids, keras.layers.Add()([first(ids), second(ids)]))
    loaded = saved_and_loaded(model)
    np.testing.assert_array_equal(logits(loaded, IDS), logits(model, IDS))
    one, other = (x for x in loaded.layers if isinstance(x, PositionalEmbedding))
    assert one.tokens is other.tokens
