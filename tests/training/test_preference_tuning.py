"""The script for preferences: translators and language models follow them, reward models too."""

import json

import pytest

from keras_transformer import CausalLM, Translator
from keras_transformer.data.preferences import PreferenceBatches
from keras_transformer.language.preference_inputs import (
    encoded_answers,
    reference_log_probabilities,
)
from keras_transformer.language.rewarder import Rewarder
from keras_transformer.models import GPT, GPTConfig
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.training.preference_tuning import train
from tests.small_translator import TEXTS, made_tokenizer, make

OPTIONS = dict(tokens_per_batch=128, peak_learning_rate=0.01, warmup_steps=2, epochs=6)


@pytest.fixture(scope="module")
def preferences(tmp_path_factory):
    """A file in which the shorter answer is always preferred."""
    path = tmp_path_factory.mktemp("preferences") / "pairs.jsonl"
    pairs = [dict(prompt=x, chosen="one", rejected="nine six two") for x in TEXTS]
    path.write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    return path


@pytest.fixture(scope="module", params=["language model", "translator"])
def start(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("start")
    if request.param == "translator":
        make(made_tokenizer()).save(folder)
    else:
        pieces = TextTokenizer.train(TEXTS, kind="bytes", vocab_size=280)
        sizes = dict(d_model=16, num_layers=1, num_heads=2, max_length=40, eos_id=5)
        CausalLM(GPT(GPTConfig(pieces.vocab_size, **sizes)), pieces).save(folder)
    return folder


@pytest.mark.parametrize("loss,rank", [("sigmoid", 2), ("cpo", 0)])
def test_a_model_follows_them(start, preferences, tmp_path, loss, rank):
    own = dict(loss=loss, lora_rank=rank, validation_file=preferences)
    train(preferences, start_from=start, output=tmp_path / "run", **own, **OPTIONS)
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert metrics["val_accuracy"] == 1 and metrics["accuracy"] > 0.5
    kind = CausalLM if "task" in json.loads((start / "config.json").read_text()) else Translator

    def preferred(folder):
        """How much more probable the preferred answers are, as a mean of logarithms."""
        model = kind.load(folder)
        sides = [["one"] * len(TEXTS), ["nine six two"] * len(TEXTS)]
        ids = encoded_answers(model.tokenizer, model.model.config, TEXTS, *sides)
        bos_id = None if kind is CausalLM else model.model.config.bos_id
        batches = PreferenceBatches(*ids, bos_id=bos_id, tokens_per_batch=128, max_length=40)
        chosen, rejected = reference_log_probabilities(model.model, batches).mean(axis=0)
        return chosen - rejected

    assert preferred(tmp_path / "run") > preferred(start) + 0.5
    if rank:
        whole, adapted = (preferred(tmp_path / "run" / x) for x in ("", "adapter"))
        assert adapted == pytest.approx(whole, abs=1e-4)


def test_a_reward_model_learns_them(start, preferences, tmp_path):
    train(preferences, start_from=start, output=tmp_path, loss="reward", **OPTIONS)
    assert json.loads((tmp_path / "metrics.json").read_text())["accuracy"] > 0.9
    answers = ["nine six two", "one"]
    assert Rewarder.load(tmp_path).best_of(TEXTS[:1], [answers]) == ["one"]


def test_bad_input(start, preferences, tmp_path):
    with pytest.raises(ValueError, match="loss must be one of .*, got 'dpo'"):
        train(preferences, start_from=start, output=tmp_path / "run", loss="dpo")
    with pytest.raises(ValueError, match="beta must be above 0, got 0"):
        train(preferences, start_from=start, output=tmp_path / "run", beta=0)
    with pytest.raises(ValueError, match="is not a saved model"):
        train(preferences, start_from=tmp_path, output=tmp_path / "run")
    line = dict(prompt="one " * 99, chosen="one", rejected="two")
    (tmp_path / "long.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(ValueError, match=r"long.jsonl must be pairs of at most 40 tokens"):
        train(tmp_path / "long.jsonl", start_from=start, output=tmp_path / "run")
