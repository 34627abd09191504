"""The modules that are traced into ONNX graphs: logits step by step, as of the whole model."""

import keras
import numpy as np
import pytest

if keras.backend.backend() != "torch":
    pytest.skip("modules of PyTorch", allow_module_level=True)
pytest.importorskip("onnxscript")

import torch

from keras_transformer.backend import portable
from keras_transformer.export.onnx_graph import DecoderGraph, EncoderGraph, names, parts_of

SOURCE = torch.tensor([[5, 6, 7, 3, 0, 0], [8, 9, 10, 11, 12, 3], [4, 3, 0, 0, 0, 0]])
TARGET = torch.tensor([[2, 4, 5, 6], [2, 7, 8, 9], [2, 10, 11, 12]])


def test_names_of_keys_and_values():
    assert names("past", 2) == ["past_key_0", "past_value_0", "past_key_1", "past_value_1"]


def test_step_by_step_the_graphs_give_the_logits_of_the_model(tiny_transformer):
    model = tiny_transformer(num_decoder_layers=2, tie_output=False)
    inputs = {"source_ids": SOURCE.int(), "target_ids": TARGET.int()}
    expected = keras.ops.convert_to_numpy(model(inputs))
    with portable(), torch.no_grad():
        mask, *cross = EncoderGraph(model).eval()(SOURCE)
        assert len(cross) == len(names("cross", 2))
        decoder = DecoderGraph(model).eval()
        past = [x[:, :, :0] for x in cross]
        for i in range(TARGET.shape[1]):
            logits, *past = decoder(TARGET[:, i : i + 1], mask, cross, past)
            np.testing.assert_allclose(logits, expected[:, i], atol=1e-4)
            assert [x.shape[2] for x in past] == [i + 1] * len(past)


def test_states_take_the_place_of_keys_and_values(tiny_transformer):
    model = tiny_transformer(num_decoder_layers=2, decoder_recurrence="ssru")
    assert names("past", 2, parts_of(model)) == ["past_state_0", "past_state_1"]
    inputs = {"source_ids": SOURCE.int(), "target_ids": TARGET.int()}
    expected = keras.ops.convert_to_numpy(model(inputs))
    with portable(), torch.no_grad():
        mask, *cross = EncoderGraph(model).eval()(SOURCE)
        decoder = DecoderGraph(model).eval()
        past = [torch.zeros(3, 1, model.config.d_model)] * 2
        for i in range(TARGET.shape[1]):
            token = TARGET[:, i : i + 1]
            logits, *past = decoder(token, mask, cross, past, torch.tensor(i))
            np.testing.assert_allclose(logits, expected[:, i], atol=1e-4)
