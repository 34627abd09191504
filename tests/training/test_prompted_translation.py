"""The script for translating language models: from scratch, by LoRA, with any prompt."""

import itertools
import json

import pytest

from keras_transformer import CausalLM, Translator
from keras_transformer.training.prompted_translation import train

pytestmark = pytest.mark.once("the script calls the library; tests of its parts run under each")

WORDS = {"one": "eins", "two": "zwei", "six": "sechs"}
TINY = dict(
    vocab_size=280, d_model=32, num_layers=1, num_heads=2, length=48, rows=4, epochs=14,
    peak_learning_rate=0.02, warmup_steps=10,
)  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    rows = [*itertools.product(WORDS, repeat=2)] + [(x,) for x in WORDS]
    lines = [f"{' '.join(row)}\t{' '.join(WORDS[x] for x in row)}\n" for row in rows]
    (folder / "train.tsv").write_text("".join(lines * 6))
    (folder / "test.tsv").write_text("".join(lines))
    return folder


def options(files, output, **changes):
    data = {f"{x}_files": [files / f"{x}.tsv"] for x in ("train", "test")}
    return TINY | data | dict(validation_files=[files / "test.tsv"], output=output) | changes


@pytest.fixture(scope="module")
def trained(files, tmp_path_factory):
    output = tmp_path_factory.mktemp("trained")
    train(**options(files, output))
    return output


def test_it_learns_to_translate_and_to_stop(trained):
    translator = Translator.load(trained)
    assert (translator.source_language, translator.target_language) == ("en", "de")
    assert translator.directions == (("en", "de"),)
    assert translator.translate(["two six", "one"]) == ["zwei sechs", "eins"]
    metrics = json.loads((trained / "metrics.json").read_text())
    assert metrics["test"]["exact_match"] == 100 and metrics["training"]["validation_loss"] < 0.1


def test_lora_goes_on_from_it_and_saves_an_adapter(files, trained, tmp_path):
    lora = dict(start_from=trained, lora_rank=2, epochs=1, test_files=None)
    train(**options(files, tmp_path / "run", **lora))
    adapted = Translator.load(tmp_path / "run" / "adapter")
    assert adapted.translate(["six one"]) == ["sechs eins"]
    prompts = [CausalLM.load(x).prompt for x in (trained, tmp_path / "run")]
    assert prompts[0] == prompts[1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(train_files=None), "--train is required"),
        (dict(corpus="grammar"), "--train must be left out with --corpus"),
        (dict(length=1), "length must be a whole number of at least 2"),
        (dict(length=8), "the training text must be pairs of at most 8 tokens"),
        (dict(prompt="babel"), "prompt must be one of"),
        (dict(prompt="tower"), "chat must be false for a model without"),
    ],
)
def test_what_does_not_fit_is_refused(files, tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        train(**options(files, tmp_path, **changes))
