"""Every public layer, alone and in functional, `Sequential` and subclassed models of Keras."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer import layers
from keras_transformer.layers import (
    SSRU,
    AddNorm,
    AudioEmbedding,
    Decoder,
    DecoderBlock,
    DisentangledAttention,
    DisentangledEncoder,
    Encoder,
    EncoderBlock,
    FeedForward,
    FramePrenet,
    MixtureOfExperts,
    MultiHeadAttention,
    PatchEmbedding,
    PositionalEmbedding,
    RelativeBias,
    Rotary,
)
from tests.backends import BACKEND, EVERY_CASE, cases

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 5, 8)).astype("float32")
Y = RNG.standard_normal((3, 4, 8)).astype("float32")
IDS = np.array([[3, 4, 5, 0, 0], [1, 2, 0, 0, 0], [5, 6, 7, 8, 9]], "int32")
FRAMES = RNG.standard_normal((3, 6, 4)).astype("float32")
IMAGES = RNG.standard_normal((3, 4, 4, 3)).astype("float32")
RELATIVE = RNG.standard_normal((6, 8)).astype("float32")
PLACES = np.arange(5, dtype="int32")
ROWS = np.abs(PLACES[None] - PLACES[:, None])
LAYERS = {  # how to make one, and the tensors of a call
    "AddNorm": (lambda **k: AddNorm(norm_first=True, **k), dict(x=X, sublayer_output=X)),
    "AudioEmbedding": (lambda **k: AudioEmbedding(8, 6, **k), dict(features=FRAMES)),
    "Decoder": (lambda **k: Decoder(1, 2, 12, **k), dict(x=X, memory=Y)),
    "DecoderBlock": (lambda **k: DecoderBlock(2, 12, **k), dict(x=X, memory=Y)),
    "DisentangledAttention": (
        lambda **k: DisentangledAttention(2, **k),
        dict(query=X, relative=RELATIVE, rows=ROWS),
    ),
    "DisentangledEncoder": (
        lambda **k: DisentangledEncoder(1, 2, 12, num_buckets=4, max_distance=5, **k),
        dict(x=X),
    ),
    "Encoder": (lambda **k: Encoder(1, 2, 12, norm_first=True, **k), dict(x=X)),
    "EncoderBlock": (lambda **k: EncoderBlock(2, 12, **k), dict(x=X)),
    "FeedForward": (lambda **k: FeedForward(12, gated=True, **k), dict(x=X)),
    "FramePrenet": (lambda **k: FramePrenet(8, 6, hidden=4, **k), dict(frames=FRAMES)),
    "MixtureOfExperts": (
        lambda **k: MixtureOfExperts(12, 3, gated=True, balance_loss=0.1, **k),
        dict(x=X),
    ),
    "MultiHeadAttention": (
        lambda **k: MultiHeadAttention(2, cross_attention=True, **k),
        dict(query=X, memory=Y),
    ),
    "PatchEmbedding": (lambda **k: PatchEmbedding(8, (4, 4), 2, **k), dict(images=IMAGES)),
    "PositionalEmbedding": (lambda **k: PositionalEmbedding(11, 8, **k), dict(inputs=IDS)),
    "RelativeBias": (
        lambda **k: RelativeBias(2, 4, 8, **k),
        dict(query_positions=PLACES, key_positions=PLACES),
    ),
    "Rotary": (lambda **k: Rotary(4, **k), dict(positions=PLACES)),
    "SSRU": (lambda **k: SSRU(**k), dict(x=X)),
}


def test_every_public_layer_is_here():
    found = {name for name in layers.__all__ if isinstance(getattr(layers, name), type)}
    assert found == LAYERS.keys()


@keras.saving.register_keras_serializable("test_every_layer")
class Subclassed(keras.Model):
    """A user's model of layers by name, and a function of the layers and the inputs."""

    def __init__(self, parts, dtype=None, **kwargs):
        super().__init__(dtype=dtype, **kwargs)
        self.parts = parts

    def call(self, inputs):
        return combined(self.parts, **inputs) if len(self.parts) > 1 else self._only(inputs)

    def _only(self, inputs):
        (layer,) = self.parts.values()
        return layer(**inputs)

    def get_config(self):
        parts = {name: keras.saving.serialize_keras_object(x) for name, x in self.parts.items()}
        return super().get_config() | {"parts": parts}

    @classmethod
    def from_config(cls, config):
        parts = config.pop("parts")
        made = {name: keras.saving.deserialize_keras_object(x) for name, x in parts.items()}
        return cls(made, **config)


def summary(model):
    lines = []
    model.summary(print_fn=lambda line, line_break=True: lines.append(line))
    return "\n".join(lines)


@pytest.mark.parametrize("name", LAYERS)
def test_shapes_summary_config_and_clone(name):
    make, arrays = LAYERS[name]
    tensors = {key: ops.convert_to_tensor(x) for key, x in arrays.items()}
    specs = {key: keras.KerasTensor(x.shape, str(x.dtype)) for key, x in arrays.items()}
    shapes = {f"{key}_shape": x.shape for key, x in arrays.items()}
    layer = make()
    model = Subclassed({name: layer})
    is_built = layer.built  # without weights, a layer is built at once
    inferred = layer.compute_output_spec(**specs), layer.compute_output_shape(**shapes)
    assert layer.built == is_built
    outputs = model(tensors)
    inferred += layer.compute_output_spec(**specs), layer.compute_output_shape(*shapes.values())
    expected = keras.tree.map_structure(lambda x: tuple(x.shape), outputs)
    for spec, shape in zip(inferred[::2], inferred[1::2], strict=True):
        assert keras.tree.map_structure(lambda x: x.shape, spec) == expected == shape
        both = zip(*map(keras.tree.flatten, (spec, outputs)), strict=True)
        assert all(x.dtype == keras.backend.standardize_dtype(y.dtype) for x, y in both)
    assert layer.name in summary(model)
    config = layer.get_config()
    assert type(layer).from_config(config).get_config() == config
    inputs = {
        key: keras.Input(batch_shape=x.shape, dtype=str(x.dtype), name=key)
        for key, x in arrays.items()
    }
    functional = keras.Model(inputs, layer(**inputs))
    clone = keras.models.clone_model(functional)
    clone.set_weights(functional.get_weights())
    assert_same(clone(tensors), outputs)


def assert_same(found, expected):
    for one, other in zip(*map(keras.tree.flatten, (found, expected)), strict=True):
        np.testing.assert_array_equal(
            *(ops.convert_to_numpy(ops.stop_gradient(x)) for x in (one, other))
        )


def combined(parts, ids, x, frames, images):
    """Return logits (B, 3) to which every layer contributes."""
    ids = ops.cast(ids, "int32")  # Keras builds a loaded model with floats
    places = ops.cumsum(ops.ones_like(ids[0])) - 1
    rows = ops.abs(ops.expand_dims(places, 0) - ops.expand_dims(places, 1))
    x = parts["AddNorm"](parts["AddNorm"](parts["PositionalEmbedding"](ids), x))
    memory = parts["Encoder"](parts["MixtureOfExperts"](parts["FeedForward"](x)))
    memory = parts["DisentangledEncoder"](memory)
    x, _ = parts["DecoderBlock"](x, memory=memory)
    x, _ = parts["Decoder"](x, memory=memory)
    x, _ = parts["MultiHeadAttention"](x, memory=memory)
    x, _ = parts["DisentangledAttention"](x, memory[0], rows)
    bias, rotation = parts["RelativeBias"](places, places), parts["Rotary"](places)
    x = parts["EncoderBlock"](x, bias=bias, rotation=rotation)
    frames = [parts[name](frames) for name in ("AudioEmbedding", "FramePrenet")]
    vectors = [ops.mean(y, axis=1) for y in (x, *frames, parts["PatchEmbedding"](images))]
    return parts["logits"](ops.concatenate(vectors, axis=-1))


def new_parts():
    parts = {name: make(dtype="mixed_bfloat16", name=name) for name, (make, _) in LAYERS.items()}
    return parts | {"logits": keras.layers.Dense(3, name="logits")}


DATA = dict(ids=IDS, x=X, frames=FRAMES, images=IMAGES)


def new_inputs():
    return {key: keras.Input(x.shape[1:], dtype=str(x.dtype), name=key) for key, x in DATA.items()}


def functional():
    inputs = new_inputs()
    return keras.Model(inputs, combined(new_parts(), **inputs))


def sequential():
    """A `Sequential` for each input, of the layers that have one input and one output."""
    parts = new_parts()
    chains = dict(
        ids=("PositionalEmbedding", "EncoderBlock", "Encoder", "DisentangledEncoder"),
        x=("FeedForward", "MixtureOfExperts", "AddNorm"),
        frames=("FramePrenet",),
        images=("PatchEmbedding",),
    )
    inputs, vectors = new_inputs(), []
    for key, names in chains.items():
        pool = keras.layers.GlobalAveragePooling1D()
        first = keras.Input(DATA[key].shape[1:], dtype=str(DATA[key].dtype))
        chain = keras.Sequential([first, *(parts[x] for x in names), pool])
        vectors.append(chain(inputs[key]))
    pool = keras.layers.GlobalAveragePooling1D()
    vectors.append(keras.Sequential([parts["AudioEmbedding"], pool])(inputs["frames"]))
    return keras.Model(inputs, parts["logits"](keras.layers.Concatenate()(vectors)))


KINDS = {
    "functional": functional,
    "sequential": sequential,
    "subclassed": lambda: Subclassed(new_parts()),
}
FITTED = cases(KINDS, "subclassed")  # the layers and their gradients are the same in each


@pytest.mark.parametrize("kind", cases(KINDS, "functional", "subclassed"))
def test_fit_summary_save_load_and_clone(kind, saved_and_loaded):
    model = KINDS[kind]()
    if kind in FITTED:
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        how = dict(run_eagerly=True) if BACKEND == "tensorflow" else {}  # a graph takes longer
        model.compile(keras.optimizers.Adam(0.01), loss, **how)
        history = model.fit(DATA, np.arange(3), batch_size=3, verbose=0).history
        assert np.isfinite(history["loss"][0])
    assert "logits" in summary(model)
    copies = [saved_and_loaded(model)]
    if kind != "subclassed":  # Keras clones no others
        copies.append(keras.models.clone_model(model))
        copies[-1].set_weights(model.get_weights())
    for copy in copies:
        assert_same(copy.weights, model.weights)
        if EVERY_CASE:
            assert_same(copy(DATA), model(DATA))
