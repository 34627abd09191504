"""GGUF files of tiny models of `transformers`, written as llama.cpp's converter writes them.

The names of tensors come from the tables of the package `gguf`.
"""

import json

import gguf
import numpy as np
import torch
import transformers

from keras_transformer.text.text_tokenizer import TextTokenizer
from tests.hub.families.parity import fill

VOCABULARY, BOS, EOS = 300, 298, 299
TOKENS = TextTokenizer.train(["To be, or not to be: that is the question."] * 2, "bytes", 300)
SIZES = dict(
    vocab_size=VOCABULARY, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
    num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64, bos_token_id=1,
    eos_token_id=2, pad_token_id=0,
)  # fmt: skip
WIDE = dict(head_dim=16)  # other than hidden_size / num_attention_heads
GPT2 = dict(
    vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=4, n_positions=64, bos_token_id=1,
    eos_token_id=2,
)  # fmt: skip
NORMS_PLUS_ONE = ("gemma", "gemma2", "gemma3")
INTERLEAVED = ("llama", "smollm3", "granite")
KEYS = {  # of llama.cpp, and fields of `transformers`
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "block_count": "num_hidden_layers",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "attention.layer_norm_epsilon": "layer_norm_epsilon",
    "feed_forward_length": "intermediate_size",
    "attention.sliding_window": "sliding_window",
    "attn_logit_softcapping": "attn_logit_softcapping",
    "final_logit_softcapping": "final_logit_softcapping",
    "attention.key_length": "head_dim",
    "attention.value_length": "head_dim",
    "embedding_scale": "embedding_multiplier",
    "residual_scale": "residual_multiplier",
    "attention.scale": "attention_multiplier",
    "logit_scale": "logits_scaling",
}


def model_of(kind, **config):
    """A random model of `transformers`."""
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(kind, **config)
    theirs = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    fill(theirs)
    return theirs.eval()


def byte_facts(pre="gpt-2"):
    """The metadata of the byte-level tokenizer `TOKENS`."""
    pieces = sorted(TOKENS.pieces(), key=TOKENS.pieces().get)
    pieces += [f"[PAD{i}]" for i in range(len(pieces), VOCABULARY)]
    types = [3] + [1] * (TOKENS.vocab_size - 1)
    types += [5] * (BOS - len(types)) + [3, 3]
    pieces[BOS:] = ["<s>", "</s>"]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": pieces,
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.merges": merges(),
        "tokenizer.ggml.bos_token_id": BOS,
        "tokenizer.ggml.eos_token_id": EOS,
        "tokenizer.ggml.padding_token_id": 0,
    }


def merges():
    """The merges of `TOKENS`."""
    return [" ".join(x) for x in json.loads(TOKENS.content)["model"]["merges"]]


def facts_of(architecture, config):
    """The metadata of a model."""
    config = config.to_dict()
    config |= dict(intermediate_size=config.get("intermediate_size", 4 * config.get("n_embd", 0)))
    rotary = config.get("rope_parameters") or {}
    synonyms = dict(
        max_position_embeddings="n_positions", hidden_size="n_embd", num_hidden_layers="n_layer",
        num_attention_heads="n_head",
    )  # fmt: skip
    facts = {
        f"{architecture}.{key}": config.get(field, config.get(synonyms.get(field)))
        for key, field in KEYS.items()
    }
    if architecture == "gemma3":
        facts["gemma3.rope.freq_base"] = rotary["full_attention"]["rope_theta"]
        rotary = {}
    if rotary:
        facts[f"{architecture}.rope.freq_base"] = rotary["rope_theta"]
    if rotary.get("rope_type") in ("linear", "yarn"):
        facts[f"{architecture}.rope.scaling.type"] = rotary["rope_type"]
        facts[f"{architecture}.rope.scaling.factor"] = rotary["factor"]
        length = rotary.get("original_max_position_embeddings")
        facts[f"{architecture}.rope.scaling.original_context_length"] = length
    return {name: value for name, value in facts.items() if value is not None}


def tensors_of(architecture, theirs):
    """The tensors of a model, in the layout of llama.cpp."""
    arch = next(x for x, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture)
    config, names = theirs.config, gguf.get_tensor_name_map(arch, 9)
    tensors = {}
    for name, weight in theirs.state_dict().items():
        stored = names.get_name(name, try_suffixes=(".weight", ".bias"))
        if stored is None or (config.tie_word_embeddings and name == "lm_head.weight"):
            assert name in ("lm_head.weight",) or name.endswith((".attn.bias", "masked_bias")), name
            continue
        value = weight.numpy()
        if architecture in NORMS_PLUS_ONE and name.endswith("norm.weight"):
            value = value + 1
        if architecture in INTERLEAVED and (".attn_q." in stored or ".attn_k." in stored):
            count = config.num_attention_heads
            count = config.num_key_value_heads if ".attn_k." in stored else count
            halves = value.reshape(count, 2, value.shape[0] // count // 2, *value.shape[1:])
            value = halves.swapaxes(1, 2).reshape(value.shape)
        if (architecture == "gpt2" and ".attn.c_" in name) or ".mlp.c_" in name:
            value = value.T
        tensors[stored] = np.ascontiguousarray(value)
    return tensors


def write(path, architecture, facts, tensors, kinds=None):
    """Write a file; `kinds` are the types of tensors that are not in float32."""
    writer = gguf.GGUFWriter(path, architecture)
    for key, value in facts.items():
        if isinstance(value, bool):
            writer.add_bool(key, value)
        elif isinstance(value, int):
            writer.add_uint32(key, value)
        elif isinstance(value, float):
            writer.add_float32(key, value)
        elif isinstance(value, str):
            writer.add_string(key, value)
        else:
            writer.add_array(key, value)
    for name, value in tensors.items():
        kind = (kinds or {}).get(name)
        writer.add_tensor(name, value, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_model(path, architecture, theirs, **changes):
    """Write a model with a byte-level tokenizer; `changes` of None leave a key out."""
    facts = facts_of(architecture, theirs.config) | byte_facts() | changes
    facts = {key: value for key, value in facts.items() if value is not None}
    return write(path, architecture, facts, tensors_of(architecture, theirs))
