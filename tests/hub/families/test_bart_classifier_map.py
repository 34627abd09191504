"""A BART with a classifier, of `transformers`: the same logits, and the same weights back."""

import numpy as np
import pytest
import torch
import transformers
from keras import ops
from safetensors.numpy import load_file

from keras_transformer import TextClassifier, load_pretrained
from keras_transformer.hub.families import VARIANTS
from keras_transformer.hub.hugging_face_checkpoint import read_model, write_model
from keras_transformer.models import TransformerClassifier
from tests.hub.families.parity import BART, configure, fill
from tests.hub.families.test_general_fields import known_fields
from tests.pretrained_files import tokenizer_files

LABELS = {0: "contradiction", 1: "neutral", 2: "entailment"}
SIZES = BART | dict(decoder_ffn_dim=40, decoder_attention_heads=2, id2label=LABELS)
TEXTS = ["a man sleeps", "the dog runs and the man reads", "nobody sleeps"]


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """A random model of `transformers` with its tokenizer, its folder, and ours read from there."""
    folder = tmp_path_factory.mktemp("bart")
    ids = tokenizer_files("bart", folder, TEXTS)
    torch.manual_seed(0)
    theirs = transformers.BartForSequenceClassification(transformers.BartConfig(**SIZES | ids))
    fill(theirs.eval())
    theirs.save_pretrained(folder)
    return theirs, folder, read_model(folder, dtype="float32")


def test_logits(pair):
    theirs, _, ours = pair
    assert type(ours) is TransformerClassifier
    ids = np.random.default_rng(0).integers(5, 50, (3, 9)).astype("int32")
    ids[:, 3] = ids[0, 8] = ids[1, 5] = ids[2, 4] = 2  # ends: the last one counts
    ids[1, 6:] = ids[2, 5:] = 1
    mask = torch.tensor(ids != 1).long()
    with torch.no_grad():
        expected = theirs(input_ids=torch.tensor(ids).long(), attention_mask=mask).logits
    found = ops.convert_to_numpy(ours({"token_ids": ids}))
    np.testing.assert_allclose(found, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.once("weights are written as arrays")
def test_round_trip(pair, tmp_path):
    theirs, folder, ours = pair
    write_model(tmp_path, ours)
    before, after = (load_file(x / "model.safetensors") for x in (folder, tmp_path))
    assert before.keys() == after.keys()
    assert all(np.array_equal(before[name], after[name]) for name in before)
    again = type(theirs).from_pretrained(tmp_path)
    assert again.config.id2label == LABELS
    assert all(torch.equal(x, theirs.state_dict()[name]) for name, x in again.state_dict().items())
    assert read_model(tmp_path).config == ours.config


@pytest.mark.once("logits are equal under each in the other tests")
def test_pairs_of_texts(pair, tmp_path):
    """Pairs are classified as by the pipelines of `transformers`, zero-shot ones included."""
    theirs, folder, _ = pair
    load_pretrained(folder).save(tmp_path)
    classifier = TextClassifier.load(tmp_path)
    tokenizer = transformers.BartTokenizer.from_pretrained(folder)
    pairs = [(TEXTS[0], TEXTS[2]), (TEXTS[1], "a dog")]
    for pair_of_texts, found in zip(pairs, classifier.classify(pairs), strict=True):
        with torch.no_grad():
            logits = theirs(**tokenizer(*pair_of_texts, return_tensors="pt")).logits[0]
        odds = dict(zip(LABELS.values(), logits.softmax(-1).tolist(), strict=True))
        assert {x.label: x.probability for x in found} == pytest.approx(odds, abs=1e-4)
    (alone,) = classifier.classify([TEXTS[1]])
    assert len(alone) == 3


@pytest.mark.once("what the files say")
def test_fields(pair, tmp_path):
    table = VARIANTS["bart", "BartForSequenceClassification"].table
    columns = {*table.read, *table.harmless, *table.refused}
    assert known_fields("bart") - {"rope_scaling", "rope_theta"} <= columns
    folder = pair[1]
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    configure(tmp_path, problem_type="multi_label_classification")
    assert read_model(tmp_path).config.problem_type == "multi_label_classification"
    configure(tmp_path, classifier_dropout=2.0)
    with pytest.raises(ValueError, match="classifier_dropout must be a number in .*, got 2.0"):
        read_model(tmp_path)
