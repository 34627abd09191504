"""While PyTorch records a graph, or transforms a function, only its own operations are called."""

import numpy as np
import pytest

from keras_transformer.backend import BACKEND, portable

if BACKEND != "torch":
    pytest.skip("recording by PyTorch", allow_module_level=True)

import keras
import torch

from keras_transformer.backend.torch import matrix_products
from keras_transformer.layers import Decoder, Encoder, EncoderBlock, PositionalEmbedding
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.metrics import Perplexity
from keras_transformer.optimizers import adam

IDS = np.array([[3, 4, 5, 6], [1, 2, 7, 8], [9, 1, 2, 2]], "int32")


@pytest.fixture(autouse=True)
def by_onednn(monkeypatch):
    """Take the path of processors on which oneDNN's operations are used most."""
    monkeypatch.setattr(matrix_products, "_BY_ONEDNN", True)


@pytest.fixture(scope="module")
def model():
    """A user's own functional model."""
    ids = keras.Input((None,), dtype="int32")
    embedding = PositionalEmbedding(11, 8, "learned", 9, dropout=0.1)
    x = Encoder(1, num_heads=2, d_ff=12, norm_first=True)(embedding(ids))
    y, _ = Decoder(1, num_heads=2, d_ff=12, norm="rms", window=2)(embedding(ids), memory=x)
    return keras.Model(ids, embedding(y, reverse=True))


def foreign(module):
    """Return the operations of a graph that not every compiler knows."""
    return [node for node in module.graph.nodes if "mkldnn" in str(node.target)]


def test_torch_export(model):
    exported = torch.export.export(model, (torch.tensor(IDS),), strict=False)
    assert not foreign(exported)
    expected = model.predict(IDS, verbose=0)
    np.testing.assert_allclose(exported.module()(torch.tensor(IDS)).detach(), expected, atol=1e-5)


def test_onnx_of_any_batch_and_length(model, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    model(IDS)
    model.export(tmp_path / "model.onnx", format="onnx", verbose=False)
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    (given,) = session.get_inputs()
    for ids in (IDS, IDS[:2, :3], IDS[:1, :1]):
        (found,) = session.run(None, {given.name: ids})
        np.testing.assert_allclose(found, model.predict(ids, verbose=0), atol=1e-5)


def test_compiled_calls_and_their_gradients():
    """Dynamo records for a compiler, here one that runs what it gets."""
    graphs = []

    def compiler(graph, _):
        graphs.append(graph)
        return graph

    block = EncoderBlock(2, 12, dropout=0.5)
    x = torch.randn(2, 4, 8)
    block(x)
    with torch.no_grad():
        found = torch.compile(lambda x: block(x), backend=compiler)(x)
        np.testing.assert_allclose(found, block(x), atol=1e-5)
    compiled = torch.compile(lambda x: block(x, training=True), backend=compiler)
    compiled(x).square().sum().backward()
    assert all(variable.value.grad is not None for variable in block.trainable_variables)
    assert graphs and not any(map(foreign, graphs))


def test_transforms_of_functions():
    block = EncoderBlock(2, 12)
    x = torch.randn(3, 2, 4, 8)
    each = torch.stack([block(part) for part in x])
    mapped = torch.vmap(block)(x)
    np.testing.assert_allclose(mapped.detach(), each.detach(), atol=1e-5)
    x.requires_grad_()
    (expected,) = torch.autograd.grad(sum(block(part).square().sum() for part in x), x)
    found = torch.func.grad(lambda x: torch.vmap(block)(x).square().sum())(x.detach())
    np.testing.assert_allclose(found.detach(), expected, atol=1e-4)


def test_adam_is_that_of_keras():
    def updated(optimizer):
        weight = keras.Variable(np.linspace(-1, 1, 6), dtype="float32")
        optimizer.build([weight])
        for scale in (1.0, -2.0):
            optimizer.apply([weight.value.detach() * scale], [weight])
        return keras.ops.convert_to_numpy(weight)

    options = dict(beta_1=0.9, beta_2=0.98, epsilon=1e-9)
    expected = updated(keras.optimizers.Adam(0.1, **options))
    with portable():
        np.testing.assert_array_equal(updated(adam(0.1)), expected)


def test_a_recorded_training_step(tiny_transformer):
    """It makes logits, as any model's does."""
    inputs, losses = {"source_ids": IDS, "target_ids": IDS}, []
    for recorded in (False, True):
        model = tiny_transformer(dropout=0.0)
        model.compile("sgd", LabelSmoothedCrossentropy(), metrics=[Perplexity()])
        if recorded:
            with portable():
                losses.append(model.train_on_batch(inputs, IDS))
                losses[-1] += model.test_on_batch(inputs, IDS)
        else:
            losses.append(model.train_on_batch(inputs, IDS))
            losses[-1] += model.test_on_batch(inputs, IDS)
    np.testing.assert_allclose(*losses, rtol=1e-4)
    message = "format must be 'onnx' or another .* got 'tf_saved_model': save the model"
    with pytest.raises(ValueError, match=message):
        model.export("unused", verbose=False)
