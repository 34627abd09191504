"""MetricX: scores equal those of its head on `transformers`' mT5; fields that it refuses."""

import json

import numpy as np
import pytest
import sentencepiece
import torch
import transformers

from keras_transformer.hub import hugging_face_checkpoint
from keras_transformer.hub.families import VARIANTS
from keras_transformer.pretrained import load_pretrained

SOURCES = ["the old man loves the dog", "two cats"]
TRANSLATIONS = ["der alte Mann", "zwei Katzen schlafen nicht"]
REFERENCES = ["der alte Mann liebt den Hund", "zwei Katzen"]
SCORE = 250089  # the token whose logit is the score


@pytest.fixture(scope="module")
def metricx(tmp_path_factory):
    """Makes a checkpoint of a MetricX with its tokenizer, and the model of `transformers`."""
    folder = tmp_path_factory.mktemp("metricx")
    lines = [*SOURCES, *REFERENCES, "source: candidate: reference:"] * 4
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_prefix=str(folder / "spiece"), vocab_size=50,
        pad_id=0, eos_id=1, unk_id=2, bos_id=-1, minloglevel=2, hard_vocab_limit=False,
    )  # fmt: skip
    options = {"tokenizer_class": "T5Tokenizer", "extra_ids": 0}
    (folder / "tokenizer_config.json").write_text(json.dumps(options))
    torch.manual_seed(0)
    config = transformers.MT5Config(
        vocab_size=250112, d_model=8, d_kv=4, d_ff=16, num_layers=2, num_decoder_layers=1,
        num_heads=2, tie_word_embeddings=False, decoder_start_token_id=0,
    )  # fmt: skip
    model = transformers.MT5ForConditionalGeneration(config).eval()
    table = torch.zeros(250112, 8)  # not tied to the token table
    table[SCORE] = torch.arange(8) / 2
    model.lm_head.weight = torch.nn.Parameter(table)
    model.save_pretrained(folder)
    change(folder, architectures=["MT5ForRegression"], tie_word_embeddings=False)
    return folder, model


def change(folder, **fields):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def expected(folder, model, lines):
    """Scores of texts by the head of MetricX: a logit of one step of the decoder, clipped."""
    tokenizer = transformers.T5Tokenizer.from_pretrained(folder)
    scores = []
    for line in lines:
        ids = torch.tensor([tokenizer.encode(line)[:-1]])  # without EOS
        with torch.no_grad():
            logits = model(input_ids=ids, decoder_input_ids=torch.tensor([[0]])).logits
        scores.append(float(logits[0, 0, SCORE].clamp(0, 25)))
    return scores


def test_scores_are_those_of_the_head_on_an_mt5(metricx, tmp_path):
    folder, model = metricx
    metric = load_pretrained(folder)
    pairs = list(zip(SOURCES, TRANSLATIONS, strict=True))
    alone = [f"source: {source} candidate: {text}" for source, text in pairs]
    rows = zip(alone, REFERENCES, strict=True)
    referred = [f"{line} reference: {reference}" for line, reference in rows]
    scores = metric.score(SOURCES, TRANSLATIONS)
    np.testing.assert_allclose(scores, expected(folder, model, alone), atol=1e-5)
    assert 0 < scores.max() < 25  # not all are clipped
    scores = metric.score(SOURCES, TRANSLATIONS, REFERENCES)
    np.testing.assert_allclose(scores, expected(folder, model, referred), atol=1e-5)
    assert metric.sign == -1 and not metric.needs_reference
    with pytest.raises(ValueError, match="a learned metric is not written"):
        hugging_face_checkpoint.write_model(tmp_path / "theirs", metric.model)


@pytest.mark.once("a config is read without a backend")
def test_other_outputs_are_refused(metricx):
    table = VARIANTS["mt5", "MT5ForRegression"]
    facts = json.loads((metricx[0] / "config.json").read_text())
    for fields, error in (
        ({"tie_word_embeddings": True}, "tie_word_embeddings must be False, got True"),
        ({"vocab_size": 1000}, "vocab_size must be above 250089, the token of the score"),
    ):
        with pytest.raises(ValueError, match=error):
            table.read(facts | fields, ())
