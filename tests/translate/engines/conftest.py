"""Small translators for which CTranslate2 and our own engine compute the same."""

import json

import numpy as np
import pytest

from keras_transformer.text import SentencePieceTokenizer
from keras_transformer.text.context import SEPARATOR
from keras_transformer.translate.translator import Translator
from tests.small_translator import made_tokenizer, make

RARE = -40.0  # added to the logits of tokens that are never taken


@pytest.fixture(scope="session")
def made_folder(tmp_path_factory):
    """`made_folder(seed)`: the folder of a small translator.

    Padding and BOS have no probability, as in a trained model. CTranslate2 takes them out before
    the softmax and our search after it, so that a model which gives them much differs.
    """
    tokenizer = made_tokenizer(SEPARATOR)

    def make_one(seed):
        folder = tmp_path_factory.mktemp("translator") / "saved"
        translator = make(tokenizer, seed, output_bias=True)
        (bias,) = (x for x in translator.model.variables if x.path.endswith("output_bias/bias"))
        values = np.zeros(bias.shape, "float32")
        values[[tokenizer.pad_id, tokenizer.bos_id]] = RARE
        bias.assign(values)
        translator.save(folder)
        return folder

    return make_one


@pytest.fixture(scope="session")
def folder(made_folder):
    return made_folder(5)  # some translations end, some are cut


@pytest.fixture(scope="session")
def ours(folder):
    return Translator.load(folder)


@pytest.fixture(scope="session")
def theirs(folder):
    return Translator.load(folder, engine="ctranslate2")


@pytest.fixture(scope="session")
def saved_model(tmp_path_factory):
    """A SavedModel that answers with its input, and its batch's size as score."""
    tf = pytest.importorskip("tensorflow")
    pytest.importorskip("tensorflow_text")
    texts = tf.TensorSpec([None], tf.string)

    class Echo(tf.Module):
        @tf.function(input_signature=[texts])
        def translate(self, texts):
            return {"translations": tf.strings.join(["best ", texts])}

        @tf.function(input_signature=[texts])
        def nbest(self, texts):
            count = tf.cast(tf.shape(texts)[0], "float32")
            rows = [tf.strings.join([x, texts]) for x in ("best ", "other ", "none ")]
            scores = tf.stack([-count, -count - 1, tf.constant(-1e9)])
            ones = tf.ones([tf.shape(texts)[0], 1])
            return {"translations": tf.stack(rows, 1), "scores": ones * scores}

        @tf.function(input_signature=[texts, texts])
        def score(self, sources, targets):
            length = tf.strings.length(sources) - 2 * tf.strings.length(targets)
            return {"scores": tf.cast(length, "float32")}

    folder = tmp_path_factory.mktemp("serving") / "echo"
    echo = Echo()
    signatures = {name: getattr(echo, name) for name in ("translate", "nbest", "score")}
    for version in ("1", "12"):
        tf.saved_model.save(echo, str(folder / version), signatures)
    del signatures["score"]
    tf.saved_model.save(echo, str(folder.parent / "unscored"), signatures)
    tf.saved_model.save(tf.Module(), str(folder.parent / "other" / "1"))
    return folder


@pytest.fixture(scope="session")
def onnx_folder(tmp_path_factory):
    from tests.translate.engines import test_graph_runner as graphs  # skips without its packages

    folder = tmp_path_factory.mktemp("graphs")
    graphs.write_encoder(folder / "encoder.onnx")
    graphs.write_decoder(folder / "decoder.onnx")
    tokenizer = SentencePieceTokenizer.train(
        [" ".join("abc"), " ".join("cab")] * 9, ["a b c"] * 9, vocab_size=16, byte_fallback=False
    )
    for name in ("source", "target"):
        (folder / f"{name}.spm").write_bytes(tokenizer.source_model)
    facts = dict(
        pad_id=0, bos_id=2, eos_id=1, unk_id=6, never_ids=[0, 2], max_length=8,
        skipped_ids=[0, 1, 2], symbols="", source_frame=[[], [1]], target_frame=[[], [1]],
        source_pieces=[*graphs.TARGET, "<unk>"], target_pieces=graphs.TARGET,
    )  # fmt: skip
    (folder / "translator.json").write_text(json.dumps(facts))
    return folder
