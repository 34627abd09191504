"""Which axis of which weight is split, for each family of models."""

import re

import pytest

from keras_transformer.config import TransformerConfig
from keras_transformer.distribution.layouts import DATA, MODEL, TENSOR_PARALLEL, axes_of
from keras_transformer.models import (
    BERT,
    ESM,
    GPT,
    T5,
    BERTConfig,
    ESMConfig,
    Gemma,
    GemmaConfig,
    GPTConfig,
    LLaMA,
    LLaMAConfig,
    Speech,
    SpeechConfig,
    T5Config,
    TextToSpeech,
    TextToSpeechConfig,
    Transformer,
    ViT,
    ViTConfig,
)
from tests.tiny import tiny

SIZES = dict(d_model=8, d_ff=16, num_heads=4)
STACK, STACKS = dict(num_layers=1), dict(num_encoder_layers=1, num_decoder_layers=1)
FAMILIES = {
    "transformer": lambda: Transformer(
        TransformerConfig(16, 16, **SIZES, **STACKS, share_embeddings=False, tie_output=False)
    ),
    "t5": lambda: T5(T5Config(16, head_dim=2, gated=True, **SIZES, **STACKS)),
    "t5gemma": lambda: tiny("t5gemma"),
    "llama": lambda: LLaMA(LLaMAConfig(16, num_kv_heads=2, **SIZES, **STACK)),
    "qwen": lambda: LLaMA(
        LLaMAConfig(16, qkv_bias=True, output_bias=True, qk_norm=True, **SIZES, **STACK)
    ),
    "mixture": lambda: LLaMA(LLaMAConfig(16, num_experts=4, **SIZES, **STACK)),
    "performer": lambda: GPT(GPTConfig(16, kernel="performer", **SIZES, **STACK)),
    "gemma": lambda: Gemma(
        GemmaConfig(16, num_kv_heads=2, head_dim=4, qk_norm=True, **SIZES, **STACK)
    ),
    "gpt": lambda: GPT(GPTConfig(16, **SIZES, **STACK)),
    "bert": lambda: BERT(BERTConfig(16, **SIZES, **STACK)),
    "esm": lambda: ESM(ESMConfig(40, **SIZES, **STACK)),
    "vit": lambda: ViT(ViTConfig(16, image_size=8, patch_size=4, **SIZES, **STACK)),
    "speech": lambda: Speech(SpeechConfig(16, num_mels=4, max_frames=8, **SIZES, **STACKS)),
    "text_to_speech": lambda: TextToSpeech(TextToSpeechConfig(16, **SIZES, **STACKS)),
}
# Matrices that every device keeps whole: they are small, or their output is needed whole.
WHOLE = re.compile(
    r".*(positions|types|relative_bias/embedding)/embeddings|.*/positions|.*class_token"
    r"|.*/directions|.*(patches|convolution_\d)/kernel|transform/dense/kernel|head/kernel"
    r"|prenet/.*/kernel|(frames|stop)/kernel|.*/feed_forward/router"
)


@pytest.mark.parametrize("family", FAMILIES)
def test_each_matrix_matches_one_rule_or_stays_whole(family):
    matched = set()
    for weight in FAMILIES[family]().weights:
        if len(weight.shape) < 2:
            continue
        rules = [rule for rule in TENSOR_PARALLEL if re.fullmatch(rule, weight.path)]
        assert len(rules) + bool(WHOLE.fullmatch(weight.path)) == 1, weight.path
        matched |= set(rules)
    assert len(matched) >= 2


def test_axes_by_hand():
    kernel = "encoder/block_0/attention/query_key_value/kernel"
    assert axes_of(kernel, (8, 24), 4, 2, False) == (None, MODEL)
    assert axes_of(kernel, (8, 24), 4, 2, True) == (DATA, MODEL)
    assert axes_of(kernel, (8, 24), 8, 1, True) == (None, DATA)
    assert axes_of("encoder/block_0/feed_forward/output/kernel", (16, 8), 4, 2, False) == (
        MODEL,
        None,
    )
    assert axes_of("encoder/block_0/feed_forward/output/bias", (8,), 4, 2, False) == (None,)
    assert axes_of("encoder/block_0/attention_norm/norm/gamma", (8,), 4, 2, True) == (None,)
    assert axes_of("embedding/tokens/embeddings", (13, 8), 1, 2, False) == (None, None)


def test_a_width_that_cannot_be_split():
    with pytest.raises(ValueError, match=r"model=3 must divide axis 1 of .*hidden/kernel, got"):
        axes_of("decoder/block_0/feed_forward/hidden/kernel", (8, 16), 1, 3, False)
