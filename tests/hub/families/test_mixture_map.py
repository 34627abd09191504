"""Mixtral and Qwen3-MoE of `transformers`: the same logits, tokens, and weights back."""

import numpy as np
import pytest
import torch
import transformers
from keras import ops

from keras_transformer.backend import compiled
from keras_transformer.hub.hugging_face_checkpoint import read_model, write_model
from keras_transformer.models import LLaMA, LLaMAConfig
from keras_transformer.running.search_functions import generation_function
from keras_transformer.search import Generation
from tests.backends import cases
from tests.hub.families.parity import (
    DECODER_IDS,
    DecoderOnlyParity,
    assert_refused,
    edit,
    fill,
    until,
)

SIZES = dict(
    hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=32,
)  # fmt: skip
QWEN = dict(num_experts=16, num_experts_per_tok=2, moe_intermediate_size=12, head_dim=6)
CONFIGURATIONS = {
    "mixtral": ("mixtral", dict(num_local_experts=4, sliding_window=5)),
    "mixtral-one": ("mixtral", dict(num_local_experts=3, num_experts_per_tok=1)),
    "qwen": ("qwen3_moe", QWEN | dict(norm_topk_prob=True, attention_bias=True)),
    "qwen-dense-layers": (
        "qwen3_moe",
        QWEN
        | dict(
            num_hidden_layers=4, decoder_sparse_step=2, mlp_only_layers=[1, 9],
            use_sliding_window=True, sliding_window=5, tie_word_embeddings=True,
        ),
    ),
}  # fmt: skip
CLASSES = {
    "mixtral": (transformers.MixtralForCausalLM, transformers.MixtralConfig),
    "qwen3_moe": (transformers.Qwen3MoeForCausalLM, transformers.Qwen3MoeConfig),
}


@pytest.fixture(scope="module", params=cases(CONFIGURATIONS, "qwen-dense-layers"))
def pair(request, tmp_path_factory):
    kind, options = CONFIGURATIONS[request.param]
    model, config = CLASSES[kind]
    torch.manual_seed(0)
    theirs = model(config(**SIZES | DECODER_IDS | options)).eval()
    fill(theirs)
    folder = tmp_path_factory.mktemp("theirs")
    theirs.save_pretrained(folder)
    return kind, theirs, folder, read_model(folder, dtype="float32")


class TestMixtures(DecoderOnlyParity):
    """Routing with and without normalized weights; layers without experts."""

    @pytest.mark.once("logits are equal under each here, steps in tests/models")
    def test_beam_search(self, pair):
        _, theirs, _, ours = pair
        prompt = [[5, 17, 60]]
        search = Generation(
            max_new_tokens=8, beam_size=3, length_penalty=1.0, scoring="transformers"
        )
        tensors = map(ops.convert_to_tensor, (np.array(prompt, "int32"), np.array([8], "int32")))
        found, _ = compiled(generation_function(search, ours), ours)(*tensors)
        given = torch.tensor(prompt)
        expected = theirs.generate(
            given, attention_mask=torch.ones_like(given), do_sample=False, num_beams=3,
            length_penalty=1.0, max_new_tokens=8,
        )[0, 3:].tolist()  # fmt: skip
        assert until(ops.convert_to_numpy(found)[0, 0].tolist(), 2)[:8] == until(expected, 2)


def test_which_layers_have_experts(pair):
    _, theirs, _, ours = pair
    has_experts = [hasattr(layer.mlp, "experts") for layer in theirs.model.layers]
    counts = [block.options.num_experts for block in ours.decoder.blocks]
    assert [count is not None for count in counts] == has_experts


@pytest.mark.once("configs are plain values")
def test_a_mixture_of_this_library_is_written(tmp_path):
    sizes = dict(d_model=8, d_ff=8, num_layers=2, num_heads=2, num_kv_heads=2, head_dim=4)
    config = LLaMAConfig(
        9, **sizes, num_experts=3, balance_loss=0.01, dense_layers=(0,), qk_norm=True
    )
    write_model(tmp_path, LLaMA(config))
    assert read_model(tmp_path).config == config


@pytest.mark.once("errors come before a backend")
def test_an_expert_of_another_shape_is_named(pair, tmp_path):
    kind, _, _, ours = pair
    write_model(tmp_path, ours, kind)
    part = "block_sparse_moe.experts.2.w2" if kind == "mixtral" else "mlp.experts.2.down_proj"
    layer = ours.config.num_layers - 1  # which has experts
    name = f"model.layers.{layer}.{part}.weight"
    edit(tmp_path, lambda tensors: tensors.update({name: tensors[name][:, 1:].copy()}))
    with pytest.raises(ValueError, match=f"{name} must have the shape"):
        read_model(tmp_path)


@pytest.mark.parametrize(
    "kind,options,message",
    [
        ("mixtral", dict(num_local_experts=0), "num_local_experts must be a whole number of at le"),
        (
            "mixtral",
            dict(num_local_experts=2, num_experts_per_tok=3),
            "num_experts_per_tok must be at most num_local_experts=2, got 3",
        ),
        ("mixtral", dict(num_local_experts=2, num_experts=3), "num_local_experts and num_experts"),
        ("mixtral", dict(router_aux_loss_coef=-1), "router_aux_loss_coef must be a number of at"),
        ("qwen3_moe", dict(norm_topk_prob=1), "norm_topk_prob must be true or false, got 1"),
        ("qwen3_moe", dict(mlp_only_layers=[-1]), "mlp_only_layers must be a list of indices of"),
        ("qwen3_moe", dict(decoder_sparse_step=0), "decoder_sparse_step must be a whole number"),
    ],
)
def test_what_is_not_known_is_refused(kind, options, message, tmp_path):
    assert_refused(tmp_path, message, model_type=kind, **SIZES | options)
