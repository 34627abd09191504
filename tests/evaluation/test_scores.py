"""Evaluation: parity with sacreBLEU, exact match by hand, and the published Multi30k form."""

import gzip
import os
import sys
from pathlib import Path

import pytest
import sacrebleu

from keras_transformer.evaluation import scores as evaluation

HYPOTHESES = ["The cat sat on the mat.", "Two dogs run!", " A man sleeps. ", "it rains"]
REFERENCES = ["The cat sat on the mat.", "Two dogs are running.", "A man sleeps.", "It rains"]


@pytest.mark.parametrize("tokenize", ["13a", "intl", "char", "none"])
@pytest.mark.parametrize("lowercase", [False, True])
def test_evaluate_equals_sacrebleu(tokenize, lowercase):
    metrics = evaluation.evaluate(HYPOTHESES, REFERENCES, tokenize=tokenize, lowercase=lowercase)
    bleu = sacrebleu.corpus_bleu(
        HYPOTHESES, [REFERENCES], tokenize=tokenize, lowercase=lowercase, force=True
    )
    assert metrics["bleu"] == bleu.score
    chrf = sacrebleu.CHRF(lowercase=lowercase).corpus_score(HYPOTHESES, [REFERENCES])
    assert metrics["chrf"] == chrf.score
    assert metrics["ter"] == sacrebleu.corpus_ter(HYPOTHESES, [REFERENCES]).score
    assert f"tok:{tokenize}" in metrics["bleu_signature"]
    assert f"case:{'lc' if lowercase else 'mixed'}" in metrics["bleu_signature"]
    assert sacrebleu.__version__ in metrics["chrf_signature"]
    assert sacrebleu.__version__ in metrics["ter_signature"]


CHINESE = ["老人在公园里看见了一只狗。", "她喜欢猫。"]
OTHER_CHINESE = ["老人在公园里看见了一只猫。", "她喜欢狗。"]


@pytest.mark.parametrize("language", [None, "zh", "zho_Hans", "zh_CN"])
def test_chinese_counts_characters(language):
    """With sacreBLEU's default, 13a, BLEU is 0 and TER 100: each sentence is one word."""
    assert sacrebleu.corpus_bleu(OTHER_CHINESE, [CHINESE]).score == 0
    metrics = evaluation.evaluate(OTHER_CHINESE, CHINESE, language=language)
    expected = sacrebleu.corpus_bleu(OTHER_CHINESE, [CHINESE], tokenize="zh").score
    assert metrics["bleu"] == expected > 50 and "tok:zh" in metrics["bleu_signature"]
    theirs = dict(normalized=True, asian_support=True)
    expected = sacrebleu.corpus_ter(OTHER_CHINESE, [CHINESE], **theirs).score
    assert metrics["ter"] == expected < 20 and "asian:yes" in metrics["ter_signature"]
    chosen = evaluation.evaluate(OTHER_CHINESE, CHINESE, tokenize="13a", language=language)
    assert "tok:13a" in chosen["bleu_signature"]


def test_rouge_refuses_what_it_cannot_count():
    with pytest.raises(ValueError, match="letters a to z only, and no reference has one"):
        evaluation.rouge(OTHER_CHINESE, CHINESE)


def test_exact_match_by_hand():
    assert evaluation.evaluate(HYPOTHESES, REFERENCES)["exact_match"] == 50.0
    assert evaluation.evaluate(HYPOTHESES, REFERENCES, lowercase=True)["exact_match"] == 75.0
    assert evaluation.evaluate(HYPOTHESES, REFERENCES)["sentences"] == 4


def test_perfect_translations():
    metrics = evaluation.evaluate(REFERENCES, REFERENCES)
    scores = {name: metrics[name] for name in ("bleu", "chrf", "ter", "exact_match")}
    assert scores == pytest.approx({"bleu": 100, "chrf": 100, "ter": 0, "exact_match": 100})


def test_moses_splits_punctuation_but_neither_hyphens_nor_entities():
    assert evaluation.moses(["Grün-weiße Hüte & „Bälle“, z.B. hier."], "de") == [
        'Grün-weiße Hüte & " Bälle " , z.B. hier .'
    ]
    assert evaluation.moses(["The man's dog doesn't bark."], "en") == [
        "The man 's dog doesn 't bark ."
    ]


def test_published_bleu_ignores_case_and_quotes_and_counts_moses_tokens():
    references = ["Ein Mann ruft „Hallo“, und der Hund-Besitzer geht.", "Es regnet."]
    shouted = ['EIN MANN RUFT "HALLO", UND DER HUND-BESITZER GEHT.', "es regnet ."]
    score, signature = evaluation.published_bleu(shouted, references, "de")
    assert score == pytest.approx(100)
    assert "case:lc" in signature and "tok:none" in signature

    other = ["Ein Mann ruft, und der Hund-Besitzer steht.", "Es regnet."]
    tokenised = [
        ["ein mann ruft , und der hund-besitzer steht .", "es regnet ."],
        ['ein mann ruft " hallo " , und der hund-besitzer geht .', "es regnet ."],
    ]
    expected = sacrebleu.corpus_bleu(tokenised[0], [tokenised[1]], tokenize="none", force=True)
    assert evaluation.published_bleu(other, references, "de")[0] == expected.score


def test_multi30k_references_have_the_published_number_of_tokens():
    if "KT_DATA" not in os.environ:
        pytest.skip("KT_DATA is not set: real data is not here")
    path = Path(os.environ["KT_DATA"]) / "multi30k" / "test_2016_flickr.de.gz"
    lines = gzip.decompress(path.read_bytes()).decode().split("\n")[:-1]
    tokens = [line.split() for line in evaluation.moses([line.lower() for line in lines], "de")]
    # reflen of the Transformer-Tiny baseline of Wu et al. 2021, as their repository prints it.
    assert sum(map(len, tokens)) == 12103


def test_table_shows_every_metric():
    shown = evaluation.table({"bleu": 41.0234, "sentences": 1000, "bleu_signature": "nrefs:1"})
    assert shown.splitlines() == [
        "bleu            41.02",
        "sentences       1000",
        "bleu_signature  nrefs:1",
    ]


def test_rouge_by_hand():
    pytest.importorskip("rouge_score")
    found = evaluation.rouge(["the cat sat on the mat", "Yes!"], ["The cat was on a mat.", "no"])
    # 4 of 6 and 6 words in common, "the" once; one of 5 and 5 pairs; "the cat on mat"; then none
    assert found == pytest.approx({"rouge1": 100 / 3, "rouge2": 10, "rougeL": 100 / 3})
    texts = ["Life cycle", "history and background of it"]
    perfect = dict.fromkeys(("rouge1", "rouge2", "rougeL"), 100)
    assert evaluation.rouge(texts, texts) == pytest.approx(perfect)


def test_missing_rouge_score_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "rouge_score.rouge_scorer", None)
    with pytest.raises(ImportError, match='pip install "rouge-score>='):
        evaluation.rouge(["a"], ["a"])


FUNCTIONS = [evaluation.evaluate, evaluation.published_bleu, evaluation.rouge]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    ("hypotheses", "references", "message"),
    [
        (["a"], ["a", "b"], "got 1 and 2"),
        ([], [], "must not be empty"),
        ("abc", ["a", "b", "c"], "hypotheses must be a sequence of strings"),
        (["a"], "a", "references must be a sequence of strings"),
        (["a", None], ["a", "b"], r"hypotheses\[1\] must be a string, got NoneType"),
        (["a"], [["a"]], r"references\[0\] must be a string, got list"),
    ],
)
def test_bad_texts(function, hypotheses, references, message):
    arguments = ("de",) if function is evaluation.published_bleu else ()
    with pytest.raises(ValueError, match=message):
        function(hypotheses, references, *arguments)


def test_unknown_tokenize():
    with pytest.raises(ValueError, match=r"tokenize must be one of .*13a.*got 'moses'"):
        evaluation.evaluate(["a"], ["a"], tokenize="moses")


def test_moses_wants_a_sequence():
    with pytest.raises(ValueError, match="texts must be a sequence"):
        evaluation.moses("one text", "en")


def test_missing_sacremoses_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    with pytest.raises(ImportError, match='pip install "sacremoses>='):
        evaluation.published_bleu(["a"], ["a"], "en")
