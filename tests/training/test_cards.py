"""The model card of a run: its command, options, data and numbers."""

import hashlib
import json
from pathlib import Path

import pytest

from keras_transformer.language.causal_lm import CausalLM
from keras_transformer.models import GPT, GPTConfig
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.training import cards
from keras_transformer.training.runs import run_into

pytestmark = pytest.mark.once("text alone")


def save(output, metrics):
    output.mkdir(parents=True, exist_ok=True)
    tokenizer = TextTokenizer.train(["abc"], "characters", 10)
    sizes = dict(d_model=8, d_ff=8, num_layers=1, num_heads=1, max_length=8)
    CausalLM(GPT(GPTConfig(tokenizer.vocab_size, **sizes)), tokenizer).save(output)
    (output / "metrics.json").write_text(json.dumps(metrics))


@run_into()
def train(text: list[Path], output: Path, rate: float = 0.1, saves: bool = True) -> None:
    output.mkdir(parents=True, exist_ok=True)
    if saves:
        save(output, {"validation": {"loss": 1.5}})


def test_a_run_writes_its_card(tmp_path, monkeypatch):
    own = ["python", "-m", "training.x", "--text", "/home/ann/a.txt"]
    monkeypatch.setattr(cards.sys, "orig_argv", own)
    (tmp_path / "a.txt").write_text("abc")
    train([tmp_path / "a.txt"], tmp_path / "run")
    text = (tmp_path / "run" / "README.md").read_text("utf-8")
    assert f"| `a.txt` | 3 | {hashlib.sha256(b'abc').hexdigest()} |" in text
    assert "```bash\npython -m training.x --text a.txt\n```" in text
    assert '| text | ["a.txt"] |' in text and "| rate | 0.1 |" in text
    assert "### validation" in text and "| loss | 1.5 |" in text
    assert str(tmp_path) not in text
    for package in ("keras_transformer", "keras", "python"):
        assert f"{package} " in text


@pytest.mark.parametrize("has_folder", [False, True])
def test_files_of_a_recipes_corpora(tmp_path, has_folder):
    @run_into()
    def trained(recipe: str, output: Path, data_folder: Path | None = None):
        tables = [{"source": "a.tsv"}, {"source": "a.tsv", "validation_source": "b.tsv"}]
        save(output, {"training": {"recipe": {"corpora": tables}}})

    for name in "ab":
        (tmp_path / f"{name}.tsv").write_text(name)
    recipe = "mine.toml" if has_folder else str(tmp_path / "mine.toml")
    trained(recipe, tmp_path / "run", tmp_path if has_folder else None)
    text = (tmp_path / "run" / "README.md").read_text("utf-8")
    for name in "ab":
        line = f"| `{name}.tsv` | 1 | {hashlib.sha256(name.encode()).hexdigest()} |"
        assert text.count(line) == 1


def test_a_run_that_saves_no_model_has_no_card(tmp_path):
    train([], tmp_path / "run", saves=False)
    assert not (tmp_path / "run" / "README.md").exists()


def test_an_edited_card_survives_the_next_run(tmp_path):
    train([], tmp_path)
    (tmp_path / "README.md").write_text("mine")
    train([], tmp_path, rate=0.2)
    assert (tmp_path / "README.md").read_text() == "mine"


@pytest.mark.parametrize(
    "arguments,expected",
    [
        (["/bin/python", "-m", "training.dna", "--o", "a b"], "python -m training.dna --o 'a b'"),
        (["/x/python3", "/x/bin/keras-transformer", "train"], "keras-transformer train"),
        (["python"], ""),
    ],
)  # fmt: skip
def test_commands(arguments, expected):
    assert cards.command(arguments) == expected


def test_a_large_file_has_no_hash(tmp_path, monkeypatch):
    monkeypatch.setattr(cards, "LARGE", 2)
    (tmp_path / "a.txt").write_text("abc")
    train([tmp_path / "a.txt"], tmp_path / "run")
    assert "| `a.txt` | 3 |  |\n" in (tmp_path / "run" / "README.md").read_text("utf-8")
