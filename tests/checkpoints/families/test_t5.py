"""T5 and mT5 of `transformers`: the same logits and searches, and the same weights back."""

import numpy as np
import pytest
import torch
import transformers

from keras_transformer.checkpoints.hugging_face import read_model, write_model
from tests.checkpoints.families.parity import VOCABULARY, EncoderDecoderParity, edit, read_pair

T5 = dict(vocab_size=VOCABULARY, d_model=16, d_kv=6, d_ff=24, num_layers=2, num_heads=3)
T5 |= dict(decoder_start_token_id=0)


def t5(**changes):
    return transformers.T5ForConditionalGeneration(transformers.T5Config(**T5 | changes))


def t5_untied(**changes):
    model = t5(tie_word_embeddings=False, **changes)
    model.lm_head.weight = torch.nn.Parameter(torch.empty(VOCABULARY, 16))
    return model


def mt5():
    config = transformers.MT5Config(**T5 | dict(feed_forward_proj="gated-gelu"))
    return transformers.MT5ForConditionalGeneration(config)


MODELS = {
    "t5": t5,
    "t5-far": lambda: t5(
        relative_attention_num_buckets=8, relative_attention_max_distance=9, num_decoder_layers=1
    ),
    "t5-gated": lambda: t5(feed_forward_proj="gated-gelu"),
    "t5-begins-with-another": lambda: t5(pad_token_id=1, eos_token_id=2),
    "t5-gated-untied": lambda: t5_untied(feed_forward_proj="gated-silu"),
    "mt5": mt5,
}


@pytest.fixture(scope="module", params=MODELS)
def pair(request, tmp_path_factory):
    """A random model of `transformers`, its folder, and ours read from there."""
    torch.manual_seed(0)
    return read_pair(MODELS[request.param]().eval(), tmp_path_factory.mktemp(request.param))


class TestT5(EncoderDecoderParity):
    """The first T5s, v1.1 and mT5."""


def test_what_the_first_t5s_had_besides(tmp_path):
    t5().save_pretrained(tmp_path)

    def besides(tensors):
        tensors["lm_head.weight"] = tensors["shared.weight"].copy()
        unused = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
        tensors[unused] = np.zeros((32, 3), "float32")

    edit(tmp_path, besides)
    model = read_model(tmp_path)
    assert model.config.tie_output and model.config.scale_output
    write_model(tmp_path / "mt5", read_model(tmp_path), kind="t5")
