"""Gemma 1, 2 and 3 of `transformers`: the same logits and tokens, and the same weights back."""

import json

import numpy as np
import pytest
import torch
import transformers
from keras import ops

from keras_transformer.hub.hugging_face_checkpoint import read_model, write_model
from keras_transformer.models import Gemma, GemmaConfig
from tests.backends import cases
from tests.hub.families.parity import (
    DECODER_IDS,
    DecoderOnlyParity,
    assert_refused,
    configure,
    edit,
    filled,
    their_logits,
)

SIZES = dict(
    hidden_size=20, intermediate_size=28, num_hidden_layers=3, num_attention_heads=4,
    num_key_value_heads=2, head_dim=6, max_position_embeddings=48, sliding_window=5,
    query_pre_attn_scalar=9,
)  # fmt: skip
CAPS = dict(attn_logit_softcapping=1.5, final_logit_softcapping=3.0)
PATTERN = ["sliding_attention", "sliding_attention", "full_attention"]
ROTARY = {
    "full_attention": dict(rope_type="linear", factor=4.0, rope_theta=5000.0),
    "sliding_attention": dict(rope_type="default", rope_theta=70.0),
}
CONFIGURATIONS = {
    "gemma": ("gemma", dict(num_key_value_heads=1, sliding_window=None)),
    "gemma2": ("gemma2", CAPS),
    "gemma2-no-caps": (
        "gemma2",
        dict(attn_logit_softcapping=None, final_logit_softcapping=None, query_pre_attn_scalar=6),
    ),
    "gemma3": ("gemma3_text", dict(layer_types=PATTERN, rope_parameters=ROTARY)),
    "gemma3-usual": ("gemma3_text", dict(num_hidden_layers=7, final_logit_softcapping=4.0)),
}
CLASSES = {
    "gemma": (transformers.GemmaForCausalLM, transformers.GemmaConfig),
    "gemma2": (transformers.Gemma2ForCausalLM, transformers.Gemma2Config),
    "gemma3_text": (transformers.Gemma3ForCausalLM, transformers.Gemma3TextConfig),
}


@pytest.fixture(scope="module", params=cases(CONFIGURATIONS, "gemma3"))
def pair(request, tmp_path_factory):
    kind, options = CONFIGURATIONS[request.param]
    model, config = CLASSES[kind]
    torch.manual_seed(0)
    theirs = filled(model(config(**SIZES | DECODER_IDS | options)))
    folder = tmp_path_factory.mktemp("theirs")
    theirs.save_pretrained(folder)
    return kind, theirs, folder, read_model(folder, dtype="float32")


class TestGemma(DecoderOnlyParity):
    """Norms after sub-layers, caps, windows by layer, two rotary bases."""


@pytest.mark.once("what the files say")
def test_older_files_of_gemma_3(tmp_path):
    """Two bases and one scaling outside of `rope_parameters`; a pattern in place of types."""
    torch.manual_seed(0)
    options = dict(layer_types=PATTERN, rope_parameters=ROTARY)
    theirs = transformers.Gemma3TextConfig(**SIZES | DECODER_IDS | options)
    filled(transformers.Gemma3ForCausalLM(theirs)).save_pretrained(tmp_path)
    config = read_model(tmp_path).config
    path = tmp_path / "config.json"
    old = json.loads(path.read_text())
    del old["rope_parameters"], old["layer_types"]
    path.write_text(json.dumps(old))
    scaling = dict(rope_type="linear", factor=4.0)
    configure(tmp_path, rope_theta=5000.0, rope_local_base_freq=70.0, rope_scaling=scaling)
    configure(tmp_path, sliding_window_pattern=3)
    assert read_model(tmp_path).config == config
    assert (config.theta, config.local_theta, config.window_layers) == (5000.0, 70.0, (0, 1))


@pytest.fixture(scope="module")
def with_images(tmp_path_factory):
    """A Gemma 3 with images, as TranslateGemma is, and its text model."""
    torch.manual_seed(0)
    text = SIZES | dict(vocab_size=99, rope_parameters=ROTARY)
    vision = dict(
        hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2,
        image_size=8, patch_size=4,
    )  # fmt: skip
    config = transformers.Gemma3Config(
        text_config=text, vision_config=vision, mm_tokens_per_image=4, bos_token_id=1,
        eos_token_id=[2, 7], pad_token_id=0, image_token_index=98, boi_token_index=96,
        eoi_token_index=97,
    )  # fmt: skip
    theirs = filled(transformers.Gemma3ForConditionalGeneration(config))
    folder = tmp_path_factory.mktemp("theirs")
    theirs.save_pretrained(folder)
    return theirs, folder


@pytest.mark.once("made of parts that are tested under each backend")
@pytest.mark.parametrize("prefix", [None, "language_model.model.", "language_model."])
def test_the_text_part_of_a_model_with_images(with_images, tmp_path, prefix):
    """By the names of this `transformers`, of the first files, and of a bare model."""
    theirs, folder = with_images
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())

    def rename(tensors):
        for name in list(tensors):
            old = "model.language_model." if ".language_model." in name else "language_model.model."
            if prefix is not None and name.startswith(old):
                tensors[prefix + name.removeprefix(old)] = tensors.pop(name)

    edit(tmp_path, rename)
    ours = read_model(tmp_path, dtype="float32")
    assert ours.config.eos_id == (2, 7)
    ids = np.random.default_rng(0).integers(3, 95, (2, 12))
    expected = their_logits(theirs, ids)
    found = ops.convert_to_numpy(ours({"token_ids": ids.astype("int32")}))
    np.testing.assert_allclose(found, expected, atol=1e-4)
    write_model(tmp_path / "text", ours)
    written = transformers.Gemma3ForCausalLM.from_pretrained(tmp_path / "text")
    np.testing.assert_allclose(their_logits(written, ids), expected, atol=1e-4)
    with pytest.raises(ValueError, match="gemma3: it also holds a model of images; write gemma3_t"):
        write_model(tmp_path / "whole", ours, "gemma3")


@pytest.mark.once("what the files say")
def test_norms_are_stored_less_one(tmp_path):
    sizes = dict(d_model=8, d_ff=8, num_layers=1, num_heads=2, num_kv_heads=1, head_dim=4)
    write_model(tmp_path, Gemma(GemmaConfig(9, **sizes)))
    theirs = transformers.Gemma2ForCausalLM.from_pretrained(tmp_path)
    norms = [x for name, x in theirs.state_dict().items() if name.endswith("norm.weight")]
    assert len(norms) == 5 and not any(x.any() for x in norms)


@pytest.mark.parametrize(
    "options,message",
    [
        (dict(hidden_activation="gelu"), "hidden_activation must be 'gelu_pytorch_tanh', got"),
        (dict(attention_bias=True), "attention_bias must be False, got True"),
        (dict(tie_word_embeddings=False), "tie_word_embeddings must be True, got False"),
        (dict(use_bidirectional_attention=1), "use_bidirectional_attention must be true, false or"),
        (dict(attn_logit_softcapping=3.0), "attn_logit_softcapping must be None, got 3.0"),
        (dict(layer_types=["linear_attention"] * 3), "layer_types must be a list of"),
        (
            dict(rope_parameters={"sliding_attention": dict(rope_type="linear", factor=2.0)}),
            "rope_parameters of sliding_attention must not be scaled",
        ),
        (
            dict(rope_parameters={"full_attention": "linear"}),
            "full_attention of rope_parameters must be an object or null, got 'linear'",
        ),
    ],
    ids=lambda x: next(iter(x)) if isinstance(x, dict) else "",
)
def test_what_is_not_known_is_refused(options, message, tmp_path):
    assert_refused(tmp_path, message, model_type="gemma3_text", **SIZES | options)
