"""The script for language models: a tiny run, continued, and what it cannot take."""

import json

import numpy as np
import pytest

from keras_transformer import CausalLM
from keras_transformer.training.language_model import train
from tests.backends import cases, sample

OPTIONS = dict(
    num_layers=1, num_heads=2, d_model=16, length=16, rows=8, warmup_steps=5,
    peak_learning_rate=0.01,
)  # fmt: skip


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("to be or not to be that is the question\n" * 60)
    return path


@pytest.mark.parametrize("kind", cases(["gpt", "llama", "gpt-performer", "llama-elu"], "gpt"))
def test_it_learns_and_goes_on(kind, text, tmp_path):
    output, (family, _, attention) = tmp_path / "run", kind.partition("-")
    options = dict(text=[text], output=output, family=family, steps=60, **OPTIONS)
    options |= dict(attention=attention or "softmax")
    train(steps_per_epoch=30, **options)
    metrics = json.loads((output / "metrics.json").read_text())["validation"]
    assert metrics["loss"] < 2.0  # of 2.6 for the frequencies of characters
    train(steps_per_epoch=30, **options)  # there is nothing left to do but to measure
    again = json.loads((output / "metrics.json").read_text())["validation"]
    assert again["loss"] == pytest.approx(metrics["loss"], abs=1e-5)
    assert len(CausalLM.load(output).generate(["to be"], max_new_tokens=5)[0]) == 5


@pytest.mark.once("scripts know no backend; tests/models trains these models under each")
@pytest.mark.parametrize("lora_rank", sample([0, 2], 2))
def test_it_goes_on_from_a_trained_model(lora_rank, text, tmp_path):
    train(text=[text], output=tmp_path / "first", steps=20, steps_per_epoch=20, **OPTIONS)
    start = CausalLM.load(tmp_path / "first")
    start.search = {"temperature": 0.5, "top_p": 0.9}
    start.save(tmp_path / "start")
    lines = [json.dumps({"text": f"not to be {x} that is to be"}) + "\n" for x in range(60)]
    (tmp_path / "more.jsonl").write_text("".join(lines))
    options = dict(text=[text, tmp_path / "more.jsonl"], output=tmp_path / "second", length=16)
    options |= dict(start_from=tmp_path / "start", lora_rank=lora_rank, steps=20, rows=8)
    train(steps_per_epoch=20, peak_learning_rate=0.01, warmup_steps=5, **options)
    losses = [
        json.loads((tmp_path / name / "metrics.json").read_text())["validation"]["loss"]
        for name in ("first", "second")
    ]
    assert losses[1] < losses[0]
    first, second = (CausalLM.load(tmp_path / name) for name in ("first", "second"))
    assert first.tokenizer.fingerprint() == second.tokenizer.fingerprint()
    assert second.search == start.search
    assert not (tmp_path / "second" / "data").exists()
    if lora_rank:
        adapted = CausalLM.load(tmp_path / "second" / "adapter")
        np.testing.assert_allclose(adapted.score(["to be"]), second.score(["to be"]), atol=1e-4)
    with pytest.raises(ValueError, match=r"length must be at most 16, the max_length of .*start"):
        train(steps_per_epoch=20, **options | {"length": 17, "output": tmp_path / "third"})


def test_bad_input(text, tmp_path):
    with pytest.raises(ValueError, match="family must be gpt or llama, got 'bert'"):
        train(text=[text], output=tmp_path / "run", family="bert")
    with pytest.raises(ValueError, match=r"attention must be one of \('softmax', .*, got 'fast'"):
        train(text=[text], output=tmp_path / "run", attention="fast")
    with pytest.raises(ValueError, match="steps must be a multiple of steps_per_epoch=30, got 50"):
        train(text=[text], output=tmp_path / "run", steps=50, steps_per_epoch=30)
    with pytest.raises(ValueError, match="steps_per_epoch must be a whole number .*, got 0"):
        train(text=[text], output=tmp_path / "run", steps_per_epoch=0)
    with pytest.raises(ValueError, match="lora_rank must be 0 without --start-from: .*, got 2"):
        train(text=[text], output=tmp_path / "run", lora_rank=2)
    text.write_text("to be\n")
    with pytest.raises(ValueError, match="text.txt must be more than 64 tokens .*, got 1"):
        train(text=[text], output=tmp_path / "run")
