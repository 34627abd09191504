"""`keras-transformer compare`: a line for each file of translations."""

import re

import pytest

pytestmark = pytest.mark.once("texts: no tensor is read")


def test_two_files(run, failure, tmp_path):
    lines = [f"the {i} dogs run over the field" for i in range(30)]
    texts = {"reference": lines, "one": [x.replace("dogs", "cats") for x in lines], "two": lines}
    files = {name: tmp_path / name for name in texts}
    for name, file in files.items():
        file.write_text("\n".join(texts[name]) + "\n")
    arguments = "compare", files["one"], files["two"], "--reference", files["reference"]
    first, second = run(*arguments, "--samples", 100).stdout.splitlines()
    assert re.fullmatch(rf"{files['one']}  BLEU [\d.]+ ± [\d.]+  chrF [\d.]+ ± [\d.]+", first)
    assert "BLEU 100.00 ± 0.00 (p = 0.0099)" in second
    printed = run(*arguments, "--samples", 100, "--test", "randomization").stdout
    assert "±" not in printed and "(p = 0.0099)" in printed
    same = "compare", files["one"], files["one"], "--reference", files["reference"]
    assert "systems must be different files" in failure(run(*same, status=2))
    files["two"].write_text("x\n")
    assert "must be 30 texts" in failure(run(*arguments, status=2))
