"""The script for chats: a model learns to reply and to stop; it resumes; whole and LoRA."""

import json
import random

import numpy as np
import pytest
from keras import ops

from keras_transformer import CausalLM
from keras_transformer.data.windows import PackedRows
from keras_transformer.language.chat import Chat
from keras_transformer.models import LLaMA, LLaMAConfig
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.training.chat_tuning import train
from keras_transformer.weights import weights_of
from tests.backends import sample
from tests.language.chats import chat_folder

pytestmark = pytest.mark.once("the script calls the library; tests of its parts run under each")

WORDS = "ba be bi bo bu".split()


def dialogue(generator):
    """Two questions; each reply repeats the word that is asked for."""
    messages = []
    for word in generator.sample(WORDS, 2):
        messages.append({"role": "user", "content": word})
        messages.append({"role": "assistant", "content": f"{word}!"})
    return {"messages": messages}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A model that was trained on nothing, and dialogues."""
    folder, generator = tmp_path_factory.mktemp("chat"), random.Random(0)
    for name, count in (("train", 96), ("validation", 8)):
        lines = [json.dumps(dialogue(generator)) + "\n" for _ in range(count)]
        (folder / f"{name}.jsonl").write_text("".join(lines))
    tokenizer = TextTokenizer.train(["ba be bi bo bu user assistant\n!"], "characters")
    sizes = dict(d_model=32, d_ff=48, num_layers=2, num_heads=2, max_length=64, tie_output=True)
    config = LLaMAConfig(tokenizer.vocab_size, bos_id=0, eos_id=0, **sizes)
    CausalLM(LLaMA(config), tokenizer).save(folder / "start")
    return folder


def options(files, output, **changes):
    data = dict(data_files=[files / "train.jsonl"], validation_files=[files / "validation.jsonl"])
    run = dict(epochs=12, rows=4, peak_learning_rate=0.01, warmup_steps=10)
    return dict(start_from=files / "start", output=output, **data) | run | changes


@pytest.mark.parametrize("lora_rank", sample([0, 4], 0))
def test_it_learns_to_reply(files, tmp_path, lora_rank):
    train(**options(files, tmp_path / "run", lora_rank=lora_rank))
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())["training"]
    # To guess the word costs log 5 of the five tokens of a reply: 0.32.
    assert metrics["validation_loss"] < (0.5 if lora_rank else 0.1)
    chat = Chat.load(tmp_path / "run")
    messages = [{"role": "user", "content": "bo"}]
    if not lora_rank:
        assert chat.reply(messages, max_new_tokens=20) == "bo!"
        messages += [{"role": "assistant", "content": "bo!"}, {"role": "user", "content": "ba"}]
        assert chat.reply(messages, max_new_tokens=20) == "ba!"
    else:  # the adapter has the tables of the vocabulary, which has grown
        adapted = CausalLM.load(tmp_path / "run" / "adapter")
        for one, other in zip(adapted.model.weights, chat.writer.model.weights, strict=True):
            np.testing.assert_allclose(*map(ops.convert_to_numpy, (one, other)), atol=1e-6)
        assert adapted.template == chat.writer.template
    again = options(files, tmp_path / "run", lora_rank=lora_rank)
    train(**again)  # nothing is left to train
    assert json.loads((tmp_path / "run" / "metrics.json").read_text())["training"][
        "loss"
    ] == pytest.approx(metrics["loss"])
    with pytest.raises(ValueError, match=r"belong to another run \(rows: 4 before, 2 now, steps"):
        train(**again | {"rows": 2})


def test_a_run_that_fails_goes_on(files, tmp_path, monkeypatch):
    """It ends with the weights of a run that did not."""
    make = PackedRows.batch

    def failing(self, step):
        if step == 40:  # of 24 batches each epoch
            raise OSError("the disk is gone")
        return make(self, step)

    with monkeypatch.context() as patched:
        patched.setattr(PackedRows, "batch", failing)
        with pytest.raises(OSError, match="the disk is gone"):
            train(**options(files, tmp_path / "one", epochs=2, dropout=0.1))
    for name in ("one", "other"):
        train(**options(files, tmp_path / name, epochs=2, dropout=0.1))
    one, other = (weights_of(CausalLM.load(tmp_path / x).model) for x in ("one", "other"))
    for path, value in one.items():
        np.testing.assert_array_equal(value, other[path], path)


def test_a_folder_in_hugging_faces_layout(files, tmp_path):
    chat_folder(tmp_path / "theirs", "llama-3", max_length=128)
    start = options(files, tmp_path / "run", start_from=tmp_path / "theirs", epochs=1)
    train(**start)
    chat = Chat.load(tmp_path / "run")
    assert chat.template.source.startswith("{{- bos_token }}")
    assert isinstance(chat.reply([{"role": "user", "content": "bo"}], max_new_tokens=3), str)


def test_bad_input(files, tmp_path):
    short = options(files, tmp_path / "run", epochs=1)
    with pytest.raises(
        ValueError, match=r"row_length must be at most 64, the max_length of .*start"
    ):
        train(**short | {"row_length": 65})
    with pytest.raises(ValueError, match="at least one dialogue, all 96 have more than 9 tokens"):
        train(**short | {"row_length": 8})
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"messages": [{"role": "user", "content": "ba"}]}')
    with pytest.raises(ValueError, match="bad.jsonl, line 1: expected replies"):
        train(**short | {"data_files": [bad]})
    assert not (tmp_path / "run").exists()
