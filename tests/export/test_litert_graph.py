"""The graphs of LiteRT: their signatures, and weights in fewer bits."""

import os

import keras
import numpy as np
import pytest

from keras_transformer.config import TransformerConfig
from keras_transformer.models import Transformer

interpreter = pytest.importorskip("ai_edge_litert.interpreter", reason="LiteRT is not installed")
if keras.backend.backend() != "tensorflow":
    pytest.skip("TensorFlow writes the graphs", allow_module_level=True)

from keras_transformer.export import litert_graph  # noqa: E402

SIZES = dict(d_model=64, d_ff=64, num_heads=2, num_encoder_layers=1, num_decoder_layers=1)


def test_logits_of_steps(randomize, tmp_path):
    model = randomize(Transformer(TransformerConfig(99, 99, max_length=16, **SIZES)))
    source = np.array([[5, 6, 7, 3]], "int32")
    target = np.array([[model.config.bos_id, 8, 9]], "int32")
    expected = keras.ops.convert_to_numpy(model({"source_ids": source, "target_ids": target}))
    signatures, sizes = litert_graph.functions(model), {}
    bounds = {"float32": 1e-4, "float16": 0.05, "int8-weights": 0.3, "int8": 0.5}
    for kind, bound in bounds.items():
        path = tmp_path / kind
        litert_graph.write(model, path, signatures, kind)
        sizes[kind] = os.path.getsize(path)
        runner = interpreter.Interpreter(str(path))
        encode, decode = map(runner.get_signature_runner, ("encode", "decode"))
        memory = encode(source_ids=source)
        past = {f"past_{x}_0": np.zeros((1, 2, 8, 32), "float32") for x in ("key", "value")}
        for i, token in enumerate(target[0]):
            new = decode(token_ids=np.array([[token]]), position=np.int32(i), **memory, **past)
            past = {name: new[name.replace("past", "present")] for name in past}
            np.testing.assert_allclose(new["logits"], expected[:, i], atol=bound)
    entry = litert_graph.described(signatures)["decode"]["inputs"]["past_key_0"]
    assert entry == {"dtype": "float32", "shape": [None, 2, None, 32]}
    assert sizes["int8-weights"] < sizes["int8"] < sizes["float16"] < sizes["float32"]
