"""Files of LiteRT: the size and the error of weights in fewer bits."""

import os

import keras
import numpy as np
import pytest

from keras_transformer.config import TransformerConfig
from keras_transformer.models import Transformer

interpreter = pytest.importorskip("ai_edge_litert.interpreter", reason="LiteRT is not installed")
if keras.backend.backend() != "tensorflow":
    pytest.skip("TensorFlow writes the files", allow_module_level=True)

import tensorflow as tf  # noqa: E402

from keras_transformer.export.litert_file import write  # noqa: E402
from keras_transformer.export.litert_graph import encoder_decoder  # noqa: E402

SIZES = dict(d_model=64, d_ff=256, num_heads=2, num_encoder_layers=1, num_decoder_layers=1)


@pytest.mark.parametrize("tied", [False, True])
def test_types_of_weights(tied, randomize, tmp_path):
    config = TransformerConfig(
        99, 99, max_length=16, share_embeddings=tied, tie_output=tied, **SIZES
    )
    model = randomize(Transformer(config))
    source = np.array([[5, 6, 7, 3]], "int32")
    first = np.array([[model.config.bos_id]], "int32")
    expected = keras.ops.convert_to_numpy(model({"source_ids": source, "target_ids": first}))
    signatures, sizes = encoder_decoder(model), {}
    bounds = {"float32": 1e-4, "float16": 0.05, "int8-weights": 0.3, "int8": 0.5}
    for kind, bound in bounds.items():
        path = tmp_path / kind
        write(model, path, signatures, kind)
        sizes[kind] = os.path.getsize(path)
        runner = interpreter.Interpreter(str(path))
        encode, decode = map(runner.get_signature_runner, ("encode", "decode"))
        past = {f"past_{x}_0": np.zeros((1, 2, 8, 32), "f") for x in ("key", "value")}
        inputs = dict(token_ids=first, position=np.int32(0), **encode(source_ids=source))
        np.testing.assert_allclose(decode(**inputs, **past)["logits"], expected[:, 0], atol=bound)
    assert max(sizes["int8-weights"], sizes["int8"]) < sizes["float16"] < sizes["float32"]


def test_what_the_converter_refuses(tmp_path):
    @tf.function
    def predict(texts):
        return {"outputs": tf.strings.lower(texts)}

    signatures = {"predict": predict.get_concrete_function(texts=tf.TensorSpec([2], tf.string))}
    with pytest.raises(
        ValueError, match="represent this Sequential: it has no operation StringLower"
    ):
        write(keras.Sequential(), tmp_path / "model.tflite", signatures, "float32")
