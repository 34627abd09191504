"""Where further training of a language model starts, and what it trains."""

import keras
import numpy as np
import pytest

from keras_transformer import CausalLM
from keras_transformer.language.chat import Chat
from keras_transformer.models import GPT, GPTConfig
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.training.language_models import (
    compile_for_text,
    read_start,
    to_train,
    with_chat_template,
)
from keras_transformer.training.task import TaskRun
from tests.language.chats import chat_folder

TEXT = "to be or not to be"
IDS = np.array([[70, 71, 72, 73]])


@pytest.fixture(scope="module")
def writer():
    sizes = dict(d_model=8, num_layers=1, num_heads=2, max_length=64)
    tokenizer = TextTokenizer.train([TEXT], "bytes", 262)
    return CausalLM(GPT(GPTConfig(tokenizer.vocab_size, **sizes)), tokenizer)


@pytest.mark.once("made of parts that are tested under each backend")
def test_folders_of_either_kind(writer, tmp_path):
    writer.save(tmp_path / "ours")
    assert read_start(tmp_path / "ours").score([TEXT]) == pytest.approx(writer.score([TEXT]))
    chat_folder(tmp_path / "theirs")
    start = read_start(tmp_path / "theirs")
    assert start.template is not None and with_chat_template(start) == (start, False)
    with pytest.raises(ValueError, match="absent is not a saved language model"):
        read_start(tmp_path / "absent")


@pytest.mark.once("made of parts that are tested under each backend")
def test_a_folder_of_8_bits_is_trained_and_saved_in_floats(writer, tmp_path):
    writer.save(tmp_path / "int8")
    CausalLM.load(tmp_path / "int8", "int8").save(tmp_path / "int8")
    start = read_start(tmp_path / "int8")
    assert start.score([TEXT]) == pytest.approx(writer.score([TEXT]), rel=1e-2)
    start.save(tmp_path / "further")
    assert "quantization" not in CausalLM.load(tmp_path / "further").model.get_config()


def test_a_model_without_a_template_gets_chatml(writer):
    size = writer.tokenizer.vocab_size
    found, grew = with_chat_template(writer)
    assert grew and found.tokenizer.vocab_size == size + 2
    assert found.tokenizer.id_of("<|im_end|>") == size + 1
    assert found.model.config.vocab_size == -(-(size + 2) // 8) * 8
    assert found.model.config.eos_ids == (0, size + 1)
    assert Chat(found).ends == (0, size + 1)
    # Texts are what they were, also where new tokens share the probability.
    assert found.tokenizer.encode([TEXT]) == writer.tokenizer.encode([TEXT])
    old, new = writer.score([TEXT])[0], found.score([TEXT])[0]
    count = len(writer.tokenizer.encode([TEXT])[0]) - 1
    rows = found.model.config.vocab_size - writer.model.config.vocab_size
    assert -count * np.log1p(3 * rows / size) < new - old < 0
    again, grew = with_chat_template(CausalLM(found.model, found.tokenizer))
    assert not grew and again.tokenizer.fingerprint() == found.tokenizer.fingerprint()


@pytest.mark.once("made of parts that are tested under each backend")
def test_what_lora_trains(writer):
    start, new_tokens = with_chat_template(writer)
    learning = dict(peak_learning_rate=0.01, warmup_steps=2, weight_decay=0.1)
    options = dict(start_from="x", dropout=0.0, precision="float32", **learning)
    run = TaskRun(lora_rank=2, **options)
    for opened in (False, new_tokens):
        model = to_train(run, start, opened)
        names = {weight.path for weight in model.trainable_weights}
        tables = {path for path in names if "lora" not in path}
        assert len(tables) == (1 if opened else 0) and len(names) > 4
        compile_for_text(run, model, 10)
        before = [np.array(keras.ops.convert_to_numpy(x)) for x in model.weights]
        model.fit({"token_ids": IDS}, IDS + 1, verbose=0)
        changed = [
            weight.path
            for weight, old in zip(model.weights, before, strict=True)
            if not np.array_equal(old, keras.ops.convert_to_numpy(weight))
        ]
        assert set(changed) <= names and tables <= set(changed)
    whole = to_train(TaskRun(**options), start)
    assert len(whole.trainable_weights) > len(names)
    with pytest.raises(ValueError, match="lora_rank must be a whole number of at least 0, got -1"):
        TaskRun(lora_rank=-1, **options)
