"""`keras-transformer compare`: a line for each file of translations."""

import re

import pytest
import sacrebleu

from tests.tasks.small_metric import small_metric

pytestmark = pytest.mark.once("texts: no tensor is read")


def test_two_files(run, failure, tmp_path):
    lines = [f"the {i} dogs run over the field" for i in range(30)]
    texts = {"reference": lines, "one": [x.replace("dogs", "cats") for x in lines], "two": lines}
    files = {name: tmp_path / name for name in texts}
    for name, file in files.items():
        file.write_text("\n".join(texts[name]) + "\n")
    arguments = "compare", files["one"], files["two"], "--reference", files["reference"]
    first, second, *signed = run(*arguments, "--samples", 100).stdout.splitlines()
    assert re.fullmatch(rf"{files['one']}  BLEU [\d.]+ ± [\d.]+  chrF [\d.]+ ± [\d.]+", first)
    assert "BLEU 100.00 ± 0.00 (p = 0.0099)" in second
    assert "|tok:13a|" in signed[0] and "|bs:100|" in signed[0] and signed[1].startswith("chrF")
    printed = run(*arguments, "--samples", 100, "--test", "randomization").stdout
    assert "±" not in printed and "(p = 0.0099)" in printed
    same = "compare", files["one"], files["one"], "--reference", files["reference"]
    assert "systems must be different files" in failure(run(*same, status=2))
    files["two"].write_text("x\n")
    assert "must be 30 texts" in failure(run(*arguments, status=2))


def test_scores_of_a_learned_metric(run, failure, tmp_path):
    small_metric("regression").save(tmp_path / "comet")
    texts = dict(source=["the dog", "two cats"] * 5, reference=["der Hund", "zwei Katzen"] * 5)
    texts |= dict(one=["sie", "sie"] * 5, two=texts["reference"])
    files = {name: tmp_path / name for name in texts}
    for name, file in files.items():
        file.write_text("\n".join(texts[name]) + "\n")
    arguments = "compare", files["one"], files["two"], "--reference", files["reference"]
    arguments += "--metric", tmp_path / "comet"
    first, second, *_, signature = run(*arguments, "--source", files["source"]).stdout.splitlines()
    rows = [texts[name] for name in ("source", "one", "reference")]
    assert f"  comet {small_metric('regression').score(*rows).mean():.4f} ± " in first
    assert re.search(r"  comet -?[\d.]+ ± [\d.]+ \(p = [\d.]+\)", second)
    assert signature.endswith("test:bs|samples:1000|seed:12345")
    assert "--metric and --source go together" in failure(run(*arguments, status=2))


def test_chinese_is_found_by_its_script(run, failure, tmp_path):
    """With the tokenizer 13a, BLEU of the first system is 0: a Chinese sentence is one word."""
    lines = [f"老人在第{i}个绿色的公园里看见了一只狗。" for i in range(9)]
    texts = {"reference": lines, "one": [x.replace("狗", "猫") for x in lines], "two": lines}
    files = {name: tmp_path / name for name in texts}
    for name, file in files.items():
        file.write_text("\n".join(texts[name]) + "\n", "utf-8")
    arguments = "compare", files["one"], files["two"], "--reference", files["reference"]
    first, _, signature, _ = run(*arguments, "--samples", 9).stdout.splitlines()
    expected = sacrebleu.corpus_bleu(texts["one"], [lines], tokenize="zh").score
    assert f"BLEU {expected:.2f} ±" in first and expected > 50 and "tok:zh" in signature
    assert "tok:char" in run(*arguments, "--samples", 9, "--tokenize", "char").stdout
    assert "tok:13a" not in run(*arguments, "--samples", 9, "--target-language", "zho_Hans").stdout
    unknown = failure(run(*arguments, "--tokenize", "moses", status=2))
    assert "tokenize must be one of ['13a', 'char'," in unknown
