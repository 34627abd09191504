"""BERT, RoBERTa, XLM-RoBERTa and ALBERT: the outputs of `transformers`, and back again."""

import numpy as np
import pytest
from keras import ops

from keras_transformer.hub.hugging_face_checkpoint import read_model
from tests.backends import cases
from tests.hub.families.encoder_parity import (
    ENDS,
    EncoderParity,
    encoder,
    encoder_batch,
    encoder_pair,
)
from tests.hub.families.parity import edit

ALBERT = dict(embedding_size=8, hidden_dropout_prob=0.0)
KINDS = {  # what classes are called, and options
    "bert": ("Bert", {}),
    "bert-relu": ("Bert", dict(hidden_act="relu", layer_norm_eps=1e-2, num_attention_heads=3)),
    "bert-types": ("Bert", dict(type_vocab_size=3, pad_token_id=5, num_hidden_layers=1)),
    "roberta": ("Roberta", dict(type_vocab_size=1, layer_norm_eps=1e-5)),
    "roberta-pad": ("Roberta", dict(pad_token_id=3)),
    "xlm-roberta": ("XLMRoberta", dict(type_vocab_size=1, pad_token_id=1)),
    "camembert": ("Camembert", dict(type_vocab_size=1)),
    "data2vec-text": ("Data2VecText", dict(type_vocab_size=1)),
    "ernie": ("Ernie", {}),
    "albert": ("Albert", ALBERT),
    "albert-deep": ("Albert", ALBERT | dict(num_hidden_layers=5, embedding_size=12)),
    "albert-groups": ("Albert", ALBERT | dict(num_hidden_layers=5, num_hidden_groups=2)),
}
CASES = [(kind, "ForMaskedLM") for kind in KINDS]
CASES += [
    (kind, end) for kind in ("bert", "roberta", "albert") for end in ENDS if end != "ForMaskedLM"
]
CASES += [("xlm-roberta", "Model"), ("xlm-roberta", "ForSequenceClassification")]
CASES += [("bert", "ForPreTraining"), ("bert", "ForNextSentencePrediction")]
CASES += [("albert", "ForPreTraining")]
CASES += [("camembert", "ForTokenClassification"), ("ernie", "ForPreTraining")]
CASES += [("data2vec-text", "ForSequenceClassification")]


# One of each family.
ELSEWHERE = [("bert", "ForPreTraining"), ("roberta", "ForQuestionAnswering")]
ELSEWHERE += [("albert-groups", "ForMaskedLM")]


@pytest.fixture(scope="module", params=cases(CASES, *ELSEWHERE), ids="-".join)
def pair(request, tmp_path_factory):
    kind, end = request.param
    return encoder_pair(KINDS[kind], end, tmp_path_factory.mktemp(kind))


class TestBERT(EncoderParity):
    """BERT, ERNIE, RoBERTa, XLM-RoBERTa, CamemBERT, data2vec and ALBERT."""


@pytest.mark.once("made of parts that are tested under each backend")
def test_as_the_first_berts_were_saved(tmp_path):
    """With TensorFlow's names of norms, copies of tied weights, and another head's weights."""
    folder = tmp_path
    encoder("Bert", {}, "ForMaskedLM").save_pretrained(folder)
    inputs = encoder_batch(read_model(folder).config)
    expected = ops.convert_to_numpy(read_model(folder)(inputs))

    def older(tensors):
        for name in [name for name in tensors if "LayerNorm" in name]:
            other = name.replace(".weight", ".gamma").replace(".bias", ".beta")
            tensors[other] = tensors.pop(name)
        words = tensors["bert.embeddings.word_embeddings.weight"]
        tensors["cls.predictions.decoder.weight"] = words.copy()
        tensors["cls.seq_relationship.weight"] = np.zeros((2, 12), "float32")
        tensors["cls.seq_relationship.bias"] = np.zeros(2, "float32")
        tensors["bert.pooler.dense.weight"] = np.zeros((12, 12), "float32")
        tensors["bert.pooler.dense.bias"] = np.zeros(12, "float32")
        tensors["bert.embeddings.position_ids"] = np.zeros((1, 24), "int64")

    edit(folder, older)
    with pytest.warns(UserWarning, match="of other heads .*: cls.seq_relationship.bias, cls.seq"):
        found = read_model(folder)(inputs)
    np.testing.assert_array_equal(ops.convert_to_numpy(found), expected)
