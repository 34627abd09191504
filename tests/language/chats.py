"""A random chat model in Hugging Face's layout."""

from __future__ import annotations

import torch
import transformers

from tests.text.chat_formats import FORMATS, write_folder


def chat_folder(folder, name="llama-3", max_length=96):
    """Write a random LLaMA with the tokenizer and template of a family; return both of theirs."""
    tokenizer = write_folder(name, folder)
    torch.manual_seed(3)
    ids = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=16, intermediate_size=24, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=max_length,
        initializer_range=0.4, pad_token_id=0, **ids,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config).eval()
    model.generation_config.eos_token_id = ids["eos_token_id"]
    model.save_pretrained(folder)
    return model, tokenizer


def end_of_turn(name, tokenizer):
    """The id of the token that ends a turn."""
    return tokenizer.convert_tokens_to_ids(FORMATS[name][4])
