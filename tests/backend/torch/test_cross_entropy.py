"""The gradients of the projected loss against autograd of the plain formula."""

import numpy as np
import pytest
import torch

from keras_transformer.backend import projected_cross_entropy
from keras_transformer.backend.torch import matrix_products


@pytest.fixture(params=[False, True], ids=["plain", "onednn"], autouse=True)
def library(request, monkeypatch):
    monkeypatch.setattr(matrix_products, "_BY_ONEDNN", request.param)


def tensors(rng, *shapes):
    made = [rng.standard_normal(shape).astype("float32") for shape in shapes]
    return [torch.tensor(x, device="cpu", requires_grad=True) for x in made]


def same(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.detach(), other.detach(), rtol=1e-4, atol=1e-4)


def test_gradients_of_the_projected_loss(rng):
    hidden, table = tensors(rng, (3, 4, 5), (11, 5))
    labels = torch.tensor(rng.integers(1, 11, (3, 4)))
    labels[1, 2:] = 0
    real = labels != 0

    def results(loss):
        return [loss[real], *torch.autograd.grad(loss[real].square().sum(), (hidden, table))]

    plain = torch.nn.functional.cross_entropy(
        (hidden @ table.t()).flatten(0, 1), labels.flatten(), reduction="none", label_smoothing=0.1
    )
    ours, _ = projected_cross_entropy(hidden, table, labels, 0.1, 0)
    same(results(ours), results(plain.view(labels.shape)))
