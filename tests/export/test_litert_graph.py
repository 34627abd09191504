"""Models as signatures: steps with caches, and results of encoders, as the Keras model has them."""

import keras
import numpy as np
import pytest

from keras_transformer import ImageClassifier, QuestionAnswerer, TextEmbedder
from keras_transformer.config import TransformerConfig
from keras_transformer.models import BERT, GPT, LLaMA, Speech, Transformer, ViT
from keras_transformer.models.bert import BERTConfig
from keras_transformer.models.gpt import GPTConfig
from keras_transformer.models.llama import LLaMAConfig
from keras_transformer.models.speech_to_text import SpeechConfig
from keras_transformer.models.vit import ViTConfig
from keras_transformer.tasks.image_format import ImageFormat
from keras_transformer.text.text_tokenizer import TextTokenizer

interpreter = pytest.importorskip("ai_edge_litert.interpreter", reason="LiteRT is not installed")
if keras.backend.backend() != "tensorflow":
    pytest.skip("TensorFlow writes the graphs", allow_module_level=True)

from keras_transformer.export import litert_graph  # noqa: E402
from keras_transformer.export.litert_file import described, write  # noqa: E402

SIZES = dict(d_model=16, d_ff=24, num_heads=2)
LAYERS = dict(num_encoder_layers=1, num_decoder_layers=2)
TOKENS = np.array([[2, 8, 9, 5, 7, 11, 6]], "int32")


@pytest.fixture
def runners(tmp_path):
    """`runners(model, signatures)`: the functions of a file with these signatures."""

    def load(model, signatures):
        write(model, tmp_path / "model.tflite", signatures, "float32")
        runner = interpreter.Interpreter(str(tmp_path / "model.tflite"))
        for name, facts in described(signatures).items():
            one = runner.get_signature_runner(name)
            assert {*facts["inputs"]} == {*one.get_input_details()}
            assert {*facts["outputs"]} == {*one.get_output_details()}
        return [runner.get_signature_runner(name) for name in signatures]

    return load


def empty(signatures, places):
    """Caches without tokens for one row."""
    inputs = described(signatures)["decode"]["inputs"]
    shapes = {name: x["shape"] for name, x in inputs.items() if name.startswith("past_")}
    return {name: np.zeros([1, x[1], x[2] or places, x[3]], "f") for name, x in shapes.items()}


def check_steps(decode, past, tokens, start, expected, **memory):
    """The logits of each step are those of the model in one pass."""
    for i in range(start, tokens.shape[1]):
        inputs = dict(token_ids=tokens[:, i : i + 1], position=np.int32(i))
        new = decode(**inputs, **memory, **past)
        past = {name: new[name.replace("past", "present")] for name in past}
        np.testing.assert_allclose(new["logits"], expected[:, i], atol=1e-4)


@pytest.mark.parametrize("kind", ["text", "sound"])
def test_encoder_decoder(kind, randomize, runners, rng):
    if kind == "text":
        config = TransformerConfig(30, 30, max_length=16, **SIZES, **LAYERS)
        model, source = Transformer(config), {"source_ids": np.array([[5, 6, 7, 3]], "int32")}
    else:
        config = SpeechConfig(30, num_mels=8, max_frames=16, max_length=16, **SIZES, **LAYERS)
        model, source = Speech(config), {"features": rng.normal(size=(1, 9, 8)).astype("f")}
    randomize(model)
    expected = keras.ops.convert_to_numpy(model(source | {"target_ids": TOKENS}))
    signatures = litert_graph.encoder_decoder(model)
    encode, decode = runners(model, signatures)
    memory = encode(**source)
    assert ("source_mask" in memory) == (kind == "text")
    for places in (7, 12):
        check_steps(decode, empty(signatures, places), TOKENS, 0, expected, **memory)


@pytest.mark.parametrize("kind", ["gpt", "windows"])
def test_decoder_only(kind, randomize, runners):
    if kind == "gpt":
        model = GPT(GPTConfig(30, num_layers=2, max_length=16, **SIZES))
    else:
        sizes = SIZES | dict(num_heads=4, num_kv_heads=2, window=4)
        model = LLaMA(LLaMAConfig(30, num_layers=2, max_length=16, **sizes))
    randomize(model)
    expected = keras.ops.convert_to_numpy(model({"token_ids": TOKENS}))
    signatures = litert_graph.decoder_only(model)
    prefill, decode = runners(model, signatures)
    first = prefill(token_ids=TOKENS[:, :3])
    np.testing.assert_allclose(first["logits"], expected[:, 2], atol=1e-4)
    past = empty(signatures, 9)
    check_steps(decode, past, TOKENS, 0, expected)
    for name, x in past.items():
        x[:, :, :3] = first[name.replace("past", "present")]
    check_steps(decode, past, TOKENS, 3, expected)


def test_tasks(randomize, runners, rng):
    tokenizer = TextTokenizer.train(["a good film", "bad films"], kind="bytes", vocab_size=270)
    ids = np.array([[5, 6, 7, 8], [9, 5, 0, 0]], "int32")
    for head, kind in (("span_extraction", QuestionAnswerer), ("sentence_embedding", TextEmbedder)):
        config = BERTConfig(tokenizer.vocab_size, num_layers=1, max_length=16, head=head, **SIZES)
        task = kind(randomize(BERT(config)), tokenizer)
        inputs = {"token_ids": ids, "type_ids": ids * 0}
        expected = task.function()(inputs)
        (predict,) = runners(task.model, litert_graph.predictor(task))
        outputs = predict(**inputs)
        expected = expected if isinstance(expected, dict) else {"outputs": expected}
        assert outputs.keys() == expected.keys()
        for name, x in expected.items():
            np.testing.assert_allclose(outputs[name], x, atol=1e-4)
    config = ViTConfig(3, image_size=8, patch_size=4, num_layers=1, **SIZES)
    image_format = ImageFormat((0.5,) * 3, (0.5,) * 3)
    task = ImageClassifier(randomize(ViT(config)), ("a", "b", "c"), image_format)
    images = rng.normal(size=(2, 8, 8, 3)).astype("f")
    (predict,) = runners(task.model, litert_graph.predictor(task))
    expected = task.function()(images)
    np.testing.assert_allclose(predict(images=images)["outputs"], expected, atol=1e-4)


def test_what_is_refused():
    scaling = dict(rope_type="dynamic", factor=2.0, original_max_position_embeddings=8)
    config = LLaMAConfig(30, num_layers=1, max_length=16, scaling=scaling, **SIZES)
    with pytest.raises(ValueError, match="rotary rates by length must be None .*, got 'dynamic'"):
        litert_graph.decoder_only(LLaMA(config))
