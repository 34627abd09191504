"""Each key of the metadata is read, harmless or refused."""

import types

import gguf
import pytest

from keras_transformer.hub.gguf.architectures import ARCHITECTURES
from keras_transformer.hub.gguf.metadata import (
    SAMPLING,
    architecture_of,
    config_of,
    generation_of,
    known_keys,
    table_of,
)

GEMMA2 = {
    "general.architecture": "gemma2",
    "gemma2.context_length": 8192,
    "gemma2.embedding_length": 4608,
    "gemma2.block_count": 46,
    "gemma2.feed_forward_length": 36864,
    "gemma2.attention.head_count": 32,
    "gemma2.attention.head_count_kv": 16,
    "gemma2.attention.key_length": 128,
    "gemma2.attention.layer_norm_rms_epsilon": 1e-6,
    "tokenizer.ggml.eos_token_id": 1,
}
LLAMA = {x.replace("gemma2", "llama"): y for x, y in GEMMA2.items()}
LLAMA |= {"general.architecture": "llama"}


def file_of(facts, *names):
    tensor = types.SimpleNamespace(shape=(300, 4608))
    tensors = dict.fromkeys(("token_embd.weight", *names), tensor)
    return types.SimpleNamespace(facts=facts, tensors=tensors, path="x.gguf")


def config(facts, *names):
    file = file_of(facts, *names)
    return config_of(file, architecture_of(file))


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_each_known_key_is_in_one_column(name):
    table = table_of(name)
    keys = {f"{name}.{key}" for key in known_keys()}
    assert {gguf.Keys.LLM.BLOCK_COUNT.format(arch=name)} <= keys and len(keys) > 100
    columns = [{*table.read}, {*table.harmless}, {*table.refused}]
    assert keys <= set().union(*columns)
    assert sum(map(len, columns)) == len(set().union(*columns))


def test_general_keys_change_nothing(recwarn):
    general = [x for x in vars(gguf.Keys.General).values() if isinstance(x, str)]
    search = [f"general.sampling.{x}" for x in SAMPLING]
    facts = {x: "any" for x in general if x.startswith("general.") and x not in search}
    kept = {x: y for x, y in facts.items() if not x.startswith("general.sampling.")}
    kept |= {"general.type": "model", "general.quantization_version": 2}
    assert config(kept | LLAMA) == config(LLAMA)
    assert not recwarn


@pytest.mark.parametrize(
    "changes,message",
    [
        ({"general.architecture": "mamba"}, "general.architecture in x.gguf must be one of"),
        ({"general.architecture": 3}, "general.architecture in x.gguf must be one of"),
        (
            {"general.type": "adapter"},
            "general.type in x.gguf is 'adapter', which is not supported",
        ),
        ({"general.quantization_version": 1}, "general.quantization_version .* is 1"),
        ({"general.sampling.mirostat": 2}, "general.sampling.mirostat .* is 2"),
        ({"llama.block_count": None}, "x.gguf lacks llama.block_count"),
        ({"llama.block_count": 1 << 40}, "block_count in x.gguf must be at most 1000"),
        ({"llama.block_count": 0}, "block_count in x.gguf must be a whole number"),
        ({"llama.attention.head_count": [4, 8]}, "head_count in x.gguf must be the same number"),
        ({"llama.attention.value_length": 64}, "attention.value_length must be 128"),
        ({"llama.rope.dimension_count": 64}, "rope.dimension_count must be 128"),
        ({"llama.expert_count": 8}, "llama.expert_count in x.gguf is 8, which is not supported"),
        ({"llama.attention.causal": False}, "llama.attention.causal in x.gguf is False"),
        ({"llama.rope.scaling.yarn_ext_factor": 0.5}, "yarn_ext_factor in x.gguf is 0.5"),
    ],
)
def test_what_is_refused(changes, message):
    facts = {x: y for x, y in (LLAMA | changes).items() if y is not None}
    with pytest.raises(ValueError, match=message):
        config(facts)


def test_a_file_without_an_embedding():
    file = types.SimpleNamespace(facts=LLAMA, tensors={}, path="x.gguf")
    with pytest.raises(ValueError, match=r"x.gguf lacks token_embd.weight"):
        architecture_of(file)


def test_unknown_keys_give_a_warning():
    with pytest.warns(UserWarning, match="x.gguf has fields that are not known: llama.new_key"):
        config(LLAMA | {"llama.new_key": 1})


def test_equal_numbers_of_all_blocks_are_one():
    count = {"llama.attention.head_count_kv": [16] * 46}
    assert config(LLAMA | count) == config(LLAMA)


def test_what_llama_cpp_takes_for_a_missing_key():
    largest = config(GEMMA2)
    assert largest["query_pre_attn_scalar"] == 144 and largest["head_dim"] == 128
    assert largest["sliding_window"] == 4096 and largest["final_logit_softcapping"] == 30.0
    assert largest["layer_types"][:2] == ["sliding_attention", "full_attention"]
    smaller = config(GEMMA2 | {"gemma2.block_count": 42})
    assert smaller["query_pre_attn_scalar"] == 128
    pattern = {"gemma2.attention.sliding_window_pattern": [False] * 45 + [True]}
    assert config(GEMMA2 | pattern)["layer_types"][-1] == "sliding_attention"
    assert config(LLAMA)["rope_theta"] == 10000.0 and config(LLAMA)["tie_word_embeddings"]
    assert not config(LLAMA, "output.weight")["tie_word_embeddings"]


def test_factors_of_a_granite():
    granite = {x.replace("llama.", "granite."): y for x, y in LLAMA.items()}
    granite |= {"general.architecture": "granite"}
    names = ("embedding_multiplier", "residual_multiplier", "logits_scaling")
    assert [config(granite)[x] for x in names] == [1.0, 1.0, 1.0]
    for absent in ({}, {"granite.attention.scale": 0.0}):
        assert config(granite | absent)["attention_multiplier"] == 128**-0.5
    factors = {"granite.logit_scale": 16.0, "granite.attention.scale": 0.0078125}
    found = config(granite | factors)
    assert (found["logits_scaling"], found["attention_multiplier"]) == (16.0, 0.0078125)


def test_windows_of_an_olmo3_are_refused():
    olmo = {x.replace("llama.", "olmo2."): y for x, y in LLAMA.items()}
    olmo |= {"general.architecture": "olmo2", "olmo2.attention.sliding_window": 4096}
    with pytest.raises(ValueError, match="olmo2.attention.sliding_window in x.gguf is 4096, which"):
        config(olmo)


def test_a_part_of_the_heads_of_a_phi3_rotates():
    phi3 = {x.replace("llama.", "phi3."): y for x, y in LLAMA.items()}
    phi3 |= {"general.architecture": "phi3", "phi3.rope.dimension_count": 96}
    assert config(phi3)["partial_rotary_factor"] == 0.75
    assert config(phi3)["sliding_window"] is None
    assert config(phi3 | {"phi3.attention.sliding_window": 0})["sliding_window"] is None
    assert config(phi3 | {"phi3.attention.sliding_window": 9})["sliding_window"] == 9


def test_end_tokens_and_search():
    ends = {"tokenizer.ggml.eot_token_id": 7, "tokenizer.ggml.eom_token_id": 1}
    assert generation_of(file_of(LLAMA | ends)) == {"eos_token_id": [1, 7]}
    search = {"general.sampling.temp": 0.6, "general.sampling.min_p": 0.1}
    expected = dict(eos_token_id=1, do_sample=True, temperature=0.6, min_p=0.1)
    assert generation_of(file_of(LLAMA | search)) == expected
    greedy = {"general.sampling.temp": 0.0, "general.sampling.penalty_repeat": 1.1}
    expected = dict(eos_token_id=1, repetition_penalty=1.1)
    assert generation_of(file_of(LLAMA | greedy)) == expected
