"""Rewarder: scores do not depend on the batch, and the best answer has the highest."""

import re

import pytest

from keras_transformer.language.rewarder import Rewarder
from keras_transformer.models import GPT, GPTConfig, RewardModel
from keras_transformer.text.text_tokenizer import TextTokenizer
from tests.small_translator import TEXTS

ANSWERS = ["three", "four five six", "one", "nine nine", "ten", "two", "six", "seven one"]


@pytest.fixture(scope="module", params=["translator", "language model"])
def rewarder(request, translator, randomize):
    if request.param == "translator":
        base, tokenizer = translator.model, translator.tokenizer
    else:
        tokenizer = TextTokenizer.train(TEXTS, kind="bytes", vocab_size=280)
        sizes = dict(d_model=16, num_layers=1, num_heads=2, max_length=40, eos_id=5)
        base = GPT(GPTConfig(tokenizer.vocab_size, **sizes))
    return Rewarder(randomize(RewardModel.on(base)), tokenizer)


@pytest.mark.once("made of parts that are tested under each backend")
def test_scores_are_those_of_each_answer_alone(rewarder):
    scores = rewarder.score(TEXTS, ANSWERS)
    alone = [rewarder.score([x], [y])[0] for x, y in zip(TEXTS, ANSWERS, strict=True)]
    assert scores == pytest.approx(alone, rel=1e-4, abs=1e-5)
    assert len(set(scores)) == len(scores) and rewarder.score([], []) == []


def test_the_best_of_several(rewarder):
    candidates = [ANSWERS[:3], ANSWERS[3:4], ANSWERS[4:]]
    best = rewarder.best_of(TEXTS[:3], candidates)
    for prompt, own, one in zip(TEXTS[:3], candidates, best, strict=True):
        scores = rewarder.score([prompt] * len(own), own)
        assert one == own[scores.index(max(scores))]


@pytest.mark.once("files")
def test_a_folder_and_back(rewarder, tmp_path):
    rewarder.save(tmp_path)
    again = Rewarder.load(tmp_path).score(TEXTS, ANSWERS)
    assert again == pytest.approx(rewarder.score(TEXTS, ANSWERS), rel=1e-4, abs=1e-5)


def test_bad_input(rewarder, translator, tmp_path):
    with pytest.raises(ValueError, match="answers must be 2, one for each of the prompts, got 1"):
        rewarder.score(TEXTS[:2], ["one"])
    with pytest.raises(ValueError, match="candidates must be one or more each, got 0"):
        rewarder.best_of(TEXTS[:2], [["one"], []])
    with pytest.raises(ValueError, match="must be at most max_length=40 tokens"):
        rewarder.score(["one " * 99], ["two"])
    translator.save(tmp_path)
    with pytest.raises(ValueError, match=re.escape("is not a saved reward model")):
        Rewarder.load(tmp_path)
