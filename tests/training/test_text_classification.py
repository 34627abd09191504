"""Classifying made-up texts whose class one word says, from scratch and after masked words."""

import gzip
import json
import random

import keras
import pytest

from keras_transformer import CausalLM, MaskFiller
from keras_transformer.models import GPT, GPTConfig
from keras_transformer.saved.folder import load_with_tokenizer
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.training.masked_language_model import train as pretrain
from keras_transformer.training.text_classification import train

WORDS = "ba be bi bo bu da de di do du ga ge gi go gu la le li lo lu".split()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    generator = random.Random(0)
    folder, files = tmp_path_factory.mktemp("texts"), {}
    for name, count in (("train", 600), ("validation", 60), ("test", 60)):
        lines = ["sentence\tlabel"]
        for _ in range(count):
            words, label = generator.choices(WORDS, k=generator.randint(2, 9)), generator.random()
            words.insert(generator.randrange(len(words)), "good" if label < 0.5 else "bad")
            lines.append(f"{' '.join(words)}\t{int(label < 0.5)}")
        files[f"{name}_file"] = folder / f"{name}.tsv.gz"
        files[f"{name}_file"].write_bytes(gzip.compress("\n".join(lines).encode()))
    return files


SIZES = dict(vocab_size=64, d_model=16, num_layers=1, num_heads=2, dropout=0.0, max_length=32)
STEPS = dict(tokens_per_batch=512, warmup_steps=20, peak_learning_rate=5e-3)


def accuracy(folder):
    return json.loads((folder / "metrics.json").read_text())["test_accuracy"]


def test_from_scratch(files, tmp_path):
    train(**files, output=tmp_path / "run", **SIZES, **STEPS, epochs=6)
    assert accuracy(tmp_path / "run") > 0.9
    model = keras.saving.load_model(tmp_path / "run" / "model.keras")
    assert model.config.labels == ("0", "1")


def test_after_pretraining(files, tmp_path):
    text, held_out = files["train_file"], files["validation_file"]
    pretrain([text], held_out, tmp_path / "masked", **SIZES, **STEPS, epochs=2)
    metrics = json.loads((tmp_path / "masked" / "metrics.json").read_text())["validation"]
    assert 0 < metrics["loss"] < 4.2  # of log 64
    start = tmp_path / "masked"
    (candidates,) = MaskFiller.load(start).fill(["ba [MASK] be"], top_k=3)
    assert candidates[0].token in (*WORDS, "good", "bad")
    train(**files, output=tmp_path / "run", start_from=start, **STEPS, epochs=6)
    assert accuracy(tmp_path / "run") > 0.9
    model, tokenizer = load_with_tokenizer(tmp_path / "run", "classifier")
    assert tokenizer.fingerprint() == load_with_tokenizer(start, "encoder")[1].fingerprint()
    assert model.config.d_model == SIZES["d_model"]


def test_unknown_label(files, tmp_path):
    path = tmp_path / "dev.tsv"
    path.write_text("sentence\tlabel\nba good\t1\nba be\tneutral\n")
    message = r"dev.tsv: a label must be one of \('0', '1'\), got 'neutral'"
    with pytest.raises(ValueError, match=message):
        train(**files | {"validation_file": path}, output=tmp_path / "run", **SIZES)


def test_a_file_without_column_names(files, tmp_path):
    path = tmp_path / "plain.tsv"
    path.write_text("ba good\t1\nba bad\t0\nba be good\t1\nbad\t0\n")
    for name in ("train_file", "test_file"):
        with pytest.raises(
            ValueError, match=r"line 1 of .*plain.tsv must be column names.*got '1'"
        ):
            train(**files | {name: path}, output=tmp_path / "run", **SIZES)


def test_nothing_to_learn_from(files, tmp_path):
    path = tmp_path / "some.tsv"
    path.write_text("sentence\tlabel\n")
    for name in ("train_file", "test_file"):
        with pytest.raises(ValueError, match="texts below the column .*some.tsv must be one"):
            train(**files | {name: path}, output=tmp_path / "run", **SIZES)
    path.write_text("sentence\tlabel\nba good\t1\n")
    with pytest.raises(ValueError, match=r"labels in .*some.tsv must be two or more, got \('1',\)"):
        train(**files | {"train_file": path}, output=tmp_path / "run", **SIZES)


def test_it_starts_from_encoders_alone(files, tmp_path):
    tokenizer = TextTokenizer.train(WORDS, "characters")
    model = GPT(GPTConfig(tokenizer.vocab_size, d_model=8, num_layers=1, num_heads=2))
    CausalLM(model, tokenizer).save(tmp_path)
    with pytest.raises(ValueError, match="is not a saved encoder but a GPT"):
        train(**files, output=tmp_path / "run", start_from=tmp_path)
