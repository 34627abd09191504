"""Errors that all objects on encoders share: wrong head, wrong tokenizer, NaN weights."""

import numpy as np
import pytest
import transformers

from keras_transformer import MaskFiller, TextClassifier, TextEmbedder, TokenTagger
from keras_transformer.models import BERT, BERTConfig
from keras_transformer.text.text_tokenizer import TextTokenizer

SIZES = dict(d_model=8, num_layers=1, num_heads=2, max_length=16)


@pytest.fixture(scope="module")
def pieces():
    return TextTokenizer.train(["a good film", "bad films"], "wordpiece", 40)


def model_of(tokenizer, head):
    return BERT(BERTConfig(tokenizer.vocab_size, head=head, **SIZES))


def test_a_folder_of_another_task(pieces, translator, tmp_path):
    TokenTagger(model_of(pieces, "token_classification"), pieces).save(tmp_path / "tagger")
    with pytest.raises(
        ValueError, match="text classifier but a token tagger: use TokenTagger and the command tag"
    ):
        TextClassifier.load(tmp_path / "tagger")
    message = (
        r"the model's head must be 'sequence_classification' \(use TokenTagger and the command"
    )
    with pytest.raises(ValueError, match=message):
        TextClassifier(model_of(pieces, "token_classification"), pieces)
    translator.save(tmp_path / "translator")
    with pytest.raises(ValueError, match="is not a saved text classifier but a translator"):
        TextClassifier.load(tmp_path / "translator")
    with pytest.raises(ValueError, match="there is no such folder"):
        TokenTagger.load(tmp_path / "none")


def test_another_tokenizer(pieces):
    larger = pieces.with_special_tokens(["[NEW]"])
    with pytest.raises(ValueError, match="the tokenizer does not match the model: it has"):
        TextClassifier(model_of(pieces, "sequence_classification"), larger)


def test_weights_that_are_not_numbers(pieces):
    classifier = TextClassifier(model_of(pieces, "sequence_classification"), pieces)
    classifier.model.weights[0].assign(np.full(classifier.model.weights[0].shape, np.nan))
    with pytest.raises(ValueError, match="model must give finite outputs"):
        classifier.classify(["a film"])


@pytest.mark.once("made of parts that are tested under each backend")
def test_precision(pieces, tmp_path):
    classifier = TextClassifier(model_of(pieces, "sequence_classification"), pieces)
    classifier.save(tmp_path)
    texts = ["a film", "bad bad films"]
    (a, b), (c, d) = (
        x.classify(texts) for x in (classifier, TextClassifier.load(tmp_path, precision="int8"))
    )
    for one, other in ((a, c), (b, d)):
        ours = {x.label: x.probability for x in one}
        assert {x.label: x.probability for x in other} == pytest.approx(ours, abs=0.05)


@pytest.mark.once("the ids of texts: no tensor")
@pytest.mark.parametrize("task", ["classify", "pairs", "embed", "fill", "tag", "tag_words"])
def test_a_text_that_is_cut_keeps_its_last_special_token(pieces, task, tmp_path, monkeypatch):
    pieces.save(tmp_path)
    theirs = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(tmp_path / "tokenizer.json"), mask_token="[MASK]"
    )
    kinds = dict(embed=(TextEmbedder, "masked_lm"), fill=(MaskFiller, "masked_lm"))
    kinds |= dict.fromkeys(("tag", "tag_words"), (TokenTagger, "token_classification"))
    kind, head = kinds.get(task, (TextClassifier, "sequence_classification"))
    one, read = kind(model_of(pieces, head), pieces), []

    def run(ids, *_, **options):
        read.extend(ids)
        raise InterruptedError

    monkeypatch.setattr(one, "_run", run)
    text = "a good film " * 9 if task != "fill" else "a [MASK] film" + " a good film" * 9
    given = {"pairs": (text, "bad films"), "tag_words": text.split()}.get(task, text)
    with pytest.warns(UserWarning, match="it is cut"), pytest.raises(InterruptedError):
        getattr(one, {"pairs": "classify"}.get(task, task))([given])
    expected = theirs([given] if task == "pairs" else [text], truncation=True, max_length=16)
    assert read == expected["input_ids"] and read[0][-1] == pieces.id_of("[SEP]")
