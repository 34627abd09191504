"""Tokenizers of BLEU: by the language's code in all its forms, or by script."""

import importlib.util

import pytest
import sacrebleu

from keras_transformer.evaluation.tokenizers import (
    bleu_metric,
    lengths_of,
    ter_metric,
    tokenizer_of,
)
from keras_transformer.text.languages import M2M100, MBART50, NLLB200

pytestmark = pytest.mark.once("texts: no tensor is read")
JAPANESE = ["老人は公園で犬を見ました。", "彼女は猫が好きです。"]
KOREAN = ["노인이 개를 보았다", "개가 노인을 보았다."]


@pytest.mark.parametrize(
    "codes,expected",
    [
        ("zh zh_CN zh-TW zho_Hans zho_Hant yue_Hant zh-Hant-HK cmn Chinese", "zh"),
        ("ja ja_XX jpn_Jpan jpn ja-JP Japanese", "ja-mecab"),
        ("ko ko_KR kor_Hang kor", "ko-mecab"),
        ("th th_TH tha_Thai lo lao_Laoo km khm_Khmr my_MM mya_Mymr bo bod_Tibt dzo_Tibt", "char"),
        ("en de_DE deu_Latn arb_Arab zho_Latn cjk_Latn kac_Latn vi vie_Latn", "13a"),
    ],
)
def test_codes_of_languages(codes, expected):
    assert {tokenizer_of(code) for code in codes.split()} == {expected}


def test_languages_of_pretrained_models():
    chosen = {code: tokenizer_of(code) for code in (*M2M100, *MBART50, *NLLB200)}
    without = {code for code, name in chosen.items() if name != "13a"}
    assert without == set(
        "zh ja ko th lo km my zh_CN ja_XX ko_KR th_TH km_KH my_MM zho_Hans zho_Hant yue_Hant "
        "jpn_Jpan kor_Hang tha_Thai lao_Laoo khm_Khmr mya_Mymr shn_Mymr bod_Tibt dzo_Tibt".split()
    )


@pytest.mark.parametrize(
    "text,expected",
    [
        ("老人看见了一只狗 (dog).", "zh"),
        (JAPANESE[0], "ja-mecab"),
        (KOREAN[0], "ko-mecab"),
        ("ชายชราเห็นสุนัข", "char"),
        ("The 老人 loves dogs.", "13a"),
        ("", "13a"),
    ],
)
def test_scripts_decide_without_a_language(text, expected):
    assert tokenizer_of(None, [text]) == expected
    assert tokenizer_of("xx", [text]) == expected


@pytest.mark.parametrize("language,extra", [("ja", "ja"), ("kor_Hang", "ko")])
def test_without_mecab_characters_are_counted(language, extra, monkeypatch):
    name = f"sacrebleu.tokenizers.tokenizer_{extra}_mecab"
    theirs = importlib.import_module(name)
    monkeypatch.setattr(theirs, "MeCab", None)
    with pytest.warns(UserWarning, match=rf"BLEU counts characters: .*sacrebleu\[{extra}\]"):
        metric = bleu_metric(None, language)
    assert metric.corpus_score(JAPANESE, [JAPANESE]).score == pytest.approx(100)
    assert "tok:char" in str(metric.get_signature())
    with pytest.raises(
        ValueError, match=f"tokenize must be a tokenizer that can be loaded, got '{extra}-"
    ):
        bleu_metric(f"{extra}-mecab")


@pytest.mark.parametrize(
    "language,module,texts", [("ja", "MeCab", JAPANESE), ("ko", "mecab_ko", KOREAN)]
)
def test_with_mecab(language, module, texts):
    pytest.importorskip(module, reason="MeCab is not installed")
    theirs = sacrebleu.corpus_bleu(texts, [texts[::-1]], tokenize=f"{language}-mecab")
    assert bleu_metric(None, language).corpus_score(texts, [texts[::-1]]).score == theirs.score


def test_a_model_that_cannot_be_downloaded(monkeypatch, tmp_path):
    from sacrebleu.tokenizers import tokenizer_spm

    def refuse(*_, **__):
        raise OSError("no network")

    monkeypatch.setattr(tokenizer_spm, "SACREBLEU_DIR", str(tmp_path))
    monkeypatch.setattr(tokenizer_spm, "download_file", refuse)
    with pytest.raises(ValueError, match="can be loaded, got 'flores200'"):
        bleu_metric("flores200")


def test_lengths():
    assert lengths_of(["a b", "c"]) == ("words", [2, 1])
    assert lengths_of(["他 看见狗。"]) == ("characters", [5])


def test_ter_of_japanese():
    metric = ter_metric("ja_XX")
    assert metric.corpus_score([JAPANESE[0].replace("犬", "猫")], [[JAPANESE[0]]]).score < 50
    assert not ter_metric("ko").asian_support
