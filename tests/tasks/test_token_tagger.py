"""TokenTagger: what a script trained; entities as seqeval counts them; proteins."""

import itertools
import json
import random

import numpy as np
import pytest
from keras import ops
from seqeval.metrics.sequence_labeling import get_entities

from keras_transformer import TokenTagger
from keras_transformer.models import BERT, ESM, BERTConfig, ESMConfig
from keras_transformer.tasks.text_classifier import Label
from keras_transformer.tasks.token_tagger import _entities
from keras_transformer.text.text_tokenizer import TextTokenizer
from tests.tasks.encoder_folders import tagger_folder
from tests.text.test_encodings import folder_of, spaced


@pytest.fixture(scope="module")
def tagger(tmp_path_factory):
    return TokenTagger.load(tagger_folder(tmp_path_factory.mktemp("tagger")))


def test_it_gives_the_known_answers(tagger, tmp_path):
    texts = ["ba mister Ga, be du (mister  Ga Lo)!", "", "be bo ba du"]
    tagger.save(tmp_path)
    for own in (tagger, TokenTagger.load(tmp_path)):
        first, *others = own.tag(texts)
        assert [(x.label, x.text, x.start, x.end) for x in first] == [
            ("person", "Ga", 10, 12),
            ("person", "Ga Lo", 29, 34),
        ]
        assert others == [[], []] and all(0.5 < x.score <= 1 for x in first)


@pytest.mark.once("made of parts that are tested under each backend")
def test_tags_are_those_of_each_sentence_alone(tagger):
    generator = random.Random(1)
    sentences = [
        generator.choices("ba be mister Ga Lo du".split(), k=k) for k in (3, 9, 1, 5, 5, 7)
    ]
    labels = tagger.model.config.labels
    for words, tags in zip(sentences, tagger.tag_words(sentences), strict=True):
        ((ids, starts),) = tagger.tokenizer.encode_words([words])
        logits = ops.convert_to_numpy(tagger.model({"token_ids": np.array([ids])}))[0][starts]
        assert [x.label for x in tags] == [labels[i] for i in logits.argmax(-1)]
        odds = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
        assert [x.probability for x in tags] == pytest.approx(odds.max(-1).tolist(), abs=1e-4)


def test_words_after_the_cut(tagger):
    with pytest.warns(UserWarning, match="at most 24 tokens each.*it is cut"):
        (tags,) = tagger.tag_words([["ba"] * 30])
    assert tags[-1] == Label("O", 0.0) and tags[0].probability > 0
    with pytest.raises(ValueError, match="at most 24 tokens each"):
        tagger.tag(["ba " * 30], strict=True)


@pytest.mark.once("no tensor")
def test_entities_are_those_of_seqeval():
    generator = random.Random(0)
    for _ in range(300):
        tags = generator.choices(["O", "B-a", "I-a", "B-b", "I-b"], k=8)
        places, text = [(2 * i, 2 * i + 1) for i in range(8)], "a b c d e f g h"
        found = list(_entities(text, places, [Label(tag, 0.5) for tag in tags]))
        expected = [(kind, 2 * i, 2 * j + 1) for kind, i, j in get_entities(tags)]
        assert [(x.label, x.start, x.end) for x in found] == expected
        assert all(x.text == text[x.start : x.end] and x.score == 0.5 for x in found)


def test_letters_of_a_protein_are_words(tmp_path, randomize):
    (tmp_path / "vocab.txt").write_text("\n".join("<cls> <pad> <eos> <unk> L A G V <mask>".split()))
    (tmp_path / "config.json").write_text('{"model_type": "esm"}')
    tokenizer = TextTokenizer.read(tmp_path)
    sizes = dict(d_model=8, num_layers=1, num_heads=2, mask_id=8, labels=("C", "E", "H"))
    model = randomize(ESM(ESMConfig(9, head="token_classification", **sizes)), 3.0)
    tagger = TokenTagger(model, tokenizer)
    (tags,), (runs,) = tagger.tag_words([list("LAGVVAL")]), tagger.tag(["LAGVVAL"])
    assert "".join(x.label * (x.end - x.start) for x in runs) == "".join(x.label for x in tags)
    assert all(x.label != y.label for x, y in itertools.pairwise(runs))
    assert "".join(x.text for x in runs) == "LAGVVAL"


@pytest.fixture(scope="module")
def of_bytes(tmp_path_factory):
    """A random tagger with RoBERTa's kind of tokenizer, and that of `transformers`."""
    folder = tmp_path_factory.mktemp("bytes")
    theirs, ours = folder_of("roberta", folder / "one"), TextTokenizer.read(folder / "one")
    sizes = dict(d_model=8, num_layers=1, num_heads=2, head="token_classification")
    model = BERT(BERTConfig(ours.vocab_size, **sizes, labels=("O", "B-LOC")))
    return TokenTagger(model, ours), theirs


@pytest.mark.once("the ids of texts: no tensor")
def test_words_are_read_as_in_their_text(of_bytes, monkeypatch):
    tagger, theirs = of_bytes
    read = []

    def run(ids, *_):
        read.extend(ids)
        return [np.ones((len(row), 2)) for row in ids]

    monkeypatch.setattr(tagger, "_run", run)
    texts = ["Ann lives in Rome, near Rome.", " Rome."]
    tagger.tag(texts)
    assert read == theirs(texts)["input_ids"]
    read.clear()
    words = [["Ann", "lives", "in", "Rome", "."]]
    tagger.tag_words(words)
    assert read == spaced(theirs)(words, is_split_into_words=True)["input_ids"]


@pytest.mark.once("the ids of texts: no tensor")
def test_a_folder_of_before_words_had_spaces(of_bytes, tmp_path, monkeypatch):
    of_bytes[0].save(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config.pop("spaced_words") is True and TokenTagger.load(tmp_path).spaced_words
    (tmp_path / "config.json").write_text(json.dumps(config))
    old = TokenTagger.load(tmp_path)
    read = []

    def run(ids, *_):
        read.extend(ids)
        raise InterruptedError

    monkeypatch.setattr(old, "_run", run)
    with pytest.raises(InterruptedError):
        old.tag(["in Rome"])
    plain = old.tokenizer.encode_words([["in", "Rome"]], spaced=False)
    assert read == [plain[0][0]] != [old.tokenizer.encode_words([["in", "Rome"]])[0][0]]
