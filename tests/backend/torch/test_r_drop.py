"""The gradients of R-Drop's loss against autograd of the plain formula."""

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from keras_transformer.backend import projected_r_drop

ALPHA, SMOOTHING = 3.0, 0.1


def tensor(rng, *shape):
    return torch.tensor(rng.standard_normal(shape).astype("float32"), requires_grad=True)


def plain(hidden, table, labels):
    logits = hidden @ table.t()
    losses = [
        cross_entropy(
            x.flatten(0, 1), labels.flatten(), reduction="none", label_smoothing=SMOOTHING
        ).view(labels.shape)
        for x in logits
    ]
    p, q = logits.log_softmax(-1)
    divergence = ((p.exp() - q.exp()) * (p - q)).sum(-1)
    return sum(losses) / 2 + ALPHA / 4 * divergence


def test_gradients_with_padding_and_in_parts(rng, monkeypatch):
    from keras_transformer.backend.torch import r_drop

    hidden, table = tensor(rng, 2, 3, 4, 5), tensor(rng, 11, 5)
    labels = torch.tensor(rng.integers(1, 11, (3, 4)))
    labels[1, 2:] = 0
    real = labels != 0
    expected = plain(hidden, table, labels)
    for rows in (2, 100):
        monkeypatch.setattr(r_drop, "chunk_rows", lambda *_, rows=rows: rows)
        found, _ = projected_r_drop(hidden, table, labels, SMOOTHING, ALPHA, 0)
        np.testing.assert_allclose(found[real].detach(), expected[real].detach(), atol=1e-5)
        gradients = [
            torch.autograd.grad(x[real].square().sum(), (hidden, table), retain_graph=True)
            for x in (expected, found)
        ]
        for theirs, ours in zip(*gradients, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
    with pytest.raises(RuntimeError, match="can be computed only once"):
        found.sum().backward()
