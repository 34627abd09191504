"""Tokenizers in written files: the same ids when read back, by us and by `transformers`."""

import dataclasses
import json
import types

import pytest
import tokenizers

from keras_transformer.hub.gguf.token_writer import token_facts
from keras_transformer.hub.gguf.tokens import RULES, tokenizer_of
from keras_transformer.models import LLaMAConfig
from keras_transformer.text.text_tokenizer import TextTokenizer
from tests.hub.gguf.files import TOKENS, byte_facts
from tests.hub.gguf.test_tokens import odd_texts
from tests.hub.gguf.test_tokens import tokenizer as read

CONFIG = LLaMAConfig(
    vocab_size=300, d_model=8, d_ff=8, num_layers=1, num_heads=1, pad_id=0, bos_id=0, eos_id=0
)


def again(ours, config=CONFIG):
    return read(token_facts(ours, config))


def test_a_tokenizer_that_was_trained_here():
    texts = odd_texts(100)
    assert again(TOKENS).encode(texts) == TOKENS.encode(texts)
    assert again(TOKENS).vocab_size == 300 > TOKENS.vocab_size
    assert token_facts(TOKENS, CONFIG)["tokenizer.ggml.pre"] == "gpt-2"


@pytest.mark.parametrize("name", RULES)
def test_each_rule_is_found_again(name):
    facts = byte_facts(name)
    ours, config = read(facts), dataclasses.replace(CONFIG, bos_id=298, eos_id=(299, 298))
    result = token_facts(ours, config)
    same = {"deepseek-r1-qwen": "qwen2", "llama3": "llama-bpe", "llama-v3": "llama-bpe"}
    same |= {"refact": "smollm"}
    assert result["tokenizer.ggml.pre"] == same.get(name, name)
    assert result["tokenizer.ggml.eot_token_id"] == 298
    for key in ("tokens", "merges", "bos_token_id", "eos_token_id"):
        assert result[f"tokenizer.ggml.{key}"] == facts[f"tokenizer.ggml.{key}"]
    texts = odd_texts(100)
    assert read(result).encode(texts) == ours.encode(texts)


def test_special_tokens_keep_their_kind():
    ours = TOKENS.with_special_tokens(["<|im_start|>", "<|im_end|>"])
    special = ["<|im_start|>", "<|im_end|>"]
    texts = ["<|im_start|>user\nbe<|im_end|>\n"]
    assert again(ours).encode(texts, special=special) == ours.encode(texts, special=special)
    assert again(ours).encode(texts) == ours.encode(texts)


def test_what_is_refused():
    words = TextTokenizer.train(["to be"], "wordpiece", 100)
    with pytest.raises(ValueError, match="model of the tokenizer must be one of a byte-level"):
        token_facts(words, CONFIG)
    spec = json.loads(TOKENS.content)
    spec["pre_tokenizer"]["add_prefix_space"] = True
    spaced = TextTokenizer(json.dumps(spec).encode())
    with pytest.raises(ValueError, match="the rule that splits texts must be one of"):
        token_facts(spaced, CONFIG)
    library = tokenizers.Tokenizer.from_buffer(TOKENS.content)
    library.post_processor = tokenizers.processors.TemplateProcessing(
        single="! $A", special_tokens=[("!", 1)]
    )
    framed = TextTokenizer(library.to_str().encode(), True)
    with pytest.raises(ValueError, match="the special tokens of each text must be one of"):
        token_facts(framed, CONFIG)
    many = dataclasses.replace(CONFIG, eos_id=(0, 1, 2, 3))
    with pytest.raises(ValueError, match="eos_id must be at most three tokens"):
        token_facts(TOKENS, many)


def test_bos_of_each_text():
    file = types.SimpleNamespace(path="x.gguf")
    facts = byte_facts("llama-bpe")
    file.facts = {"general.architecture": "llama"} | facts
    content, _ = tokenizer_of(file)
    ours = TextTokenizer(json.dumps(content).encode(), True)
    config = dataclasses.replace(CONFIG, bos_id=298, eos_id=299)
    assert token_facts(ours, config)["tokenizer.ggml.add_bos_token"] is True
    assert token_facts(TOKENS, config)["tokenizer.ggml.add_bos_token"] is False
