"""TextClassifier: what a script trained, and what `transformers` says of an imported model."""

import json

import numpy as np
import pytest
import torch
import transformers

from keras_transformer import TextClassifier, load_pretrained
from keras_transformer.text.text_tokenizer import TextTokenizer
from tests.backends import cases
from tests.tasks.encoder_folders import classifier_folder

PIECES = "[PAD] [UNK] [CLS] [SEP] [MASK] good bad film the a ##s".split()
PAIRS = [("a good film", "the film"), ("bad films", "the bad film the film"), ("a", "bad")]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return classifier_folder(tmp_path_factory.mktemp("classifier"))


@pytest.mark.once("tests/tasks/test_token_tagger.py trains and tags under each")
def test_it_gives_the_known_answers(trained):
    lines = (trained.parent / "texts.tsv").read_text().splitlines()[1:]
    texts, labels = zip(*(line.split("\t") for line in lines), strict=True)
    found = TextClassifier.load(trained).classify(texts, tokens_per_batch=64)
    right = [own[0].label == label for own, label in zip(found, labels, strict=True)]
    metrics = json.loads((trained / "metrics.json").read_text())
    assert np.mean(right) > 0.9
    assert np.mean(right) == pytest.approx(metrics["test_accuracy"], abs=1e-6)
    for own in found:
        assert sum(x.probability for x in own) == pytest.approx(1, abs=1e-5)
        assert own[0].probability >= own[1].probability


@pytest.mark.once("made of parts that are tested under each backend")
def test_a_text_is_classified_the_same_alone(trained, tmp_path):
    classifier = TextClassifier.load(trained)
    texts = ["ba good", "bad ba be bi bo bu", "", "good"]
    found = classifier.classify(texts)
    for text, own in zip(texts, found, strict=True):
        (alone,) = classifier.classify([text])
        assert [x.label for x in alone] == [x.label for x in own]
        assert alone[0].probability == pytest.approx(own[0].probability, abs=1e-5)
    classifier.save(tmp_path)
    again = TextClassifier.load(tmp_path).classify(texts)
    assert [x[0].label for x in again] == [x[0].label for x in found]
    assert classifier.classify([]) == []


DEBERTA = dict(
    relative_attention=True, pos_att_type=["p2c", "c2p"], share_att_key=True, position_buckets=4,
    norm_rel_ebd="layer_norm", position_biased_input=False,
)  # fmt: skip


@pytest.fixture(scope="module", params=cases(["Bert", "DebertaV2"], "Bert"))
def imported(request, tmp_path_factory):
    """A classifier of pairs, by `transformers` and by us."""
    source, folder = (tmp_path_factory.mktemp(name) for name in ("source", "imported"))
    (source / "vocab.txt").write_text("\n".join(PIECES))
    TextTokenizer.read(source).save(source)
    config = getattr(transformers, f"{request.param}Config")(
        vocab_size=len(PIECES), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=24, max_position_embeddings=12, initializer_range=0.5,
        id2label={0: "no", 1: "maybe", 2: "yes"}, **DEBERTA if request.param != "Bert" else {},
    )  # fmt: skip
    torch.manual_seed(0)
    theirs = getattr(transformers, f"{request.param}ForSequenceClassification")(config).eval()
    theirs.save_pretrained(source)
    load_pretrained(source).save(folder)
    return transformers.BertTokenizer(str(source / "vocab.txt")), theirs, folder


def test_parity_of_pairs(imported):
    tokenizer, theirs, folder = imported
    found = TextClassifier.load(folder).classify(PAIRS)
    for (first, second), own in zip(PAIRS, found, strict=True):
        with torch.no_grad():
            inputs = tokenizer(first, second, return_tensors="pt")
            expected = theirs(**inputs).logits.softmax(-1)[0].tolist()
        names = dict(zip(("no", "maybe", "yes"), expected, strict=True))
        assert {x.label: x.probability for x in own} == pytest.approx(names, abs=1e-4)


@pytest.mark.once("made of parts that are tested under each backend")
def test_what_is_too_long(imported, trained):
    classifier = TextClassifier.load(imported[2])
    with pytest.warns(UserWarning, match="at most 12 tokens each.*got 16.*it is cut"):
        (cut,) = classifier.classify([("a good film", "film " * 10)])
    (same,) = classifier.classify([("a good film", "film " * 6)])
    assert cut[0].probability == pytest.approx(same[0].probability, abs=1e-5)
    with pytest.raises(ValueError, match="at most 12 tokens each"):
        classifier.classify(["film " * 20], strict=True)


def test_bad_input(trained, imported):
    classifier = TextClassifier.load(trained)
    with pytest.raises(ValueError, match="texts must be a sequence of strings, got the one"):
        classifier.classify("good")
    with pytest.raises(ValueError, match="texts must be strings, not pairs: the model has one"):
        classifier.classify(PAIRS)
    with pytest.raises(ValueError, match=r"texts\[1\] must be a pair of strings.*got 'a'"):
        TextClassifier.load(imported[2]).classify([PAIRS[0], "a"])
    with pytest.raises(ValueError, match="tokens_per_batch must be a whole number of at least 1"):
        classifier.classify(["good"], tokens_per_batch=0)


@pytest.mark.once("texts: no tensor differs")
def test_sequences_without_spaces(trained, tmp_path):
    plain = TextClassifier.load(trained)
    TextClassifier(plain.model, plain.tokenizer, letters_per_word=3).save(tmp_path)
    spelled = TextClassifier.load(tmp_path)
    assert spelled.letters_per_word == 3 and plain.letters_per_word is None
    found = spelled.classify(["bagoodba", "be"])
    assert found == plain.classify(["bag ago goo ood odb dba", "be"])
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"letters_per_word": 0}))
    with pytest.raises(ValueError, match="letters_per_word must be a whole number of at least 1"):
        TextClassifier.load(tmp_path)
