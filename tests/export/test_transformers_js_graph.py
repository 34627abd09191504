"""The modules traced into graphs for transformers.js: logits step by step, as of the whole model.

`test_transformers_js.py` runs the graphs.
"""

import keras
import numpy as np
import pytest

if keras.backend.backend() != "torch":
    pytest.skip("modules of PyTorch", allow_module_level=True)
pytest.importorskip("onnxscript")

import torch

from keras_transformer.backend import portable
from keras_transformer.export.transformers_js_graph import CrossGraph, EncoderGraph, StepGraph

SOURCE = torch.tensor([[5, 6, 7, 3, 9, 9], [8, 9, 10, 11, 12, 3], [4, 3, 9, 9, 9, 9]])
# It hides tokens that are no padding.
VALID = torch.tensor([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1], [1, 1, 0, 0, 0, 0]])
TARGET = torch.tensor([[2, 4, 5, 6], [2, 7, 8, 9], [2, 10, 3, 12]])


def logits_of(model, target):
    """Return the logits (B, T, V) of a target, step by step."""
    with portable(), torch.no_grad():
        memory = EncoderGraph(model).eval()(SOURCE, VALID)
        cross = CrossGraph(model).eval()(memory)
        step = StepGraph(model).eval()
        past, rows = [x[:, :, :0] for x in cross], []
        for i in range(target.shape[1]):
            logits, *past = step(target[:, i : i + 1], VALID, cross, past)
            assert [x.shape[2] for x in past] == [i + 1] * len(past)
            rows.append(logits)
    return torch.cat(rows, dim=1).numpy()


def test_step_by_step_the_graphs_give_the_logits_of_the_model(tiny_transformer):
    model = tiny_transformer(num_decoder_layers=2, tie_output=False)
    source = torch.where(VALID == 0, model.config.pad_id, SOURCE)
    expected = model({"source_ids": source.int(), "target_ids": TARGET.int()})
    expected, logits = keras.ops.convert_to_numpy(expected), logits_of(model, TARGET)
    np.testing.assert_allclose(logits[:2], expected[:2], atol=1e-4)
    np.testing.assert_allclose(logits[2, :2], expected[2, :2], atol=1e-4)
    assert logits[2, 2].argmax() == 3  # EOS follows EOS


def test_a_translation_ends_at_the_maximum_length(tiny_transformer):
    model = tiny_transformer(max_length=6)
    likeliest = logits_of(model, torch.full((3, 8), 5)).argmax(-1)
    assert set(likeliest[:, 4:].flat) == {3} != set(likeliest[:, :4].flat)
