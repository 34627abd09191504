"""BART and what is built like it: the same logits and searches, the same weights back."""

import numpy as np
import pytest
import torch
import transformers
from keras import ops

from keras_transformer.backend import compiled
from keras_transformer.hub.hugging_face_checkpoint import read_model, write_model
from keras_transformer.running.search_functions import translation_function
from keras_transformer.search import Search
from tests.backends import cases
from tests.hub.families.parity import (
    BART,
    VOCABULARY,
    EncoderDecoderParity,
    configure,
    edit,
    fill,
    marian,
    pair_batch,
    read_pair,
    until_end,
)


def m2m(**changes):
    config = transformers.M2M100Config(**BART | changes)
    return transformers.M2M100ForConditionalGeneration(config)


def mbart(**changes):
    config = transformers.MBartConfig(**BART | dict(decoder_start_token_id=2) | changes)
    return transformers.MBartForConditionalGeneration(config)


def bart(**changes):
    config = transformers.BartConfig(**BART | changes)
    return transformers.BartForConditionalGeneration(config)


def pegasus():
    sizes = BART | dict(activation_function="relu", scale_embedding=True)
    config = transformers.PegasusConfig(**sizes, decoder_start_token_id=0)
    return transformers.PegasusForConditionalGeneration(config)


UNEQUAL = dict(decoder_layers=1, decoder_ffn_dim=40, decoder_attention_heads=2)
MODELS = {
    "marian": lambda: marian(activation_function="swish", scale_embedding=True),
    "marian-unscaled-gelu": lambda: marian(d_model=24, encoder_layers=1, decoder_layers=3),
    "marian-two-vocabularies": lambda: marian(
        decoder_vocab_size=VOCABULARY - 12,
        share_encoder_decoder_embeddings=False,
        pad_token_id=40,
        decoder_start_token_id=40,
    ),
    "marian-untied": lambda: marian(
        decoder_vocab_size=VOCABULARY - 12,
        share_encoder_decoder_embeddings=False,
        tie_word_embeddings=False,
        pad_token_id=40,
        decoder_start_token_id=40,
        **UNEQUAL,
    ),
    "marian-one-vocabulary-untied": lambda: marian(tie_word_embeddings=False),
    "m2m_100": m2m,
    "m2m_100-untied": lambda: m2m(tie_word_embeddings=False, **UNEQUAL),
    "m2m_100-wide": lambda: m2m(d_model=24, encoder_ffn_dim=40, decoder_ffn_dim=40, pad_token_id=0),
    "mbart": lambda: mbart(scale_embedding=True),
    "mbart-relu": lambda: mbart(activation_function="relu", decoder_layers=1),
    "mbart-untied": lambda: mbart(tie_word_embeddings=False, decoder_ffn_dim=40),
    "bart": lambda: bart(scale_embedding=True, encoder_layers=3),
    "bart-unequal": lambda: bart(tie_word_embeddings=False, **UNEQUAL),
    "pegasus": pegasus,
}


ELSEWHERE = ("marian-two-vocabularies", "m2m_100", "bart-unequal")


@pytest.fixture(scope="module", params=cases(MODELS, *ELSEWHERE))
def pair(request, tmp_path_factory):
    """A random model of `transformers`, its folder, and ours read from there."""
    torch.manual_seed(0)
    folder, is_learned = tmp_path_factory.mktemp(request.param), "bart" in request.param
    return read_pair(MODELS[request.param]().eval(), folder, is_sinusoidal=not is_learned)


class TestBART(EncoderDecoderParity):
    """Families with BART's blocks: sinusoids or learned positions, one vocabulary or two."""


@pytest.mark.once("made of parts that are tested under each backend")
def test_forced_first_tokens(tmp_path):
    torch.manual_seed(0)
    theirs = m2m(init_std=0.5).eval()
    theirs.save_pretrained(tmp_path)
    ours = read_model(tmp_path, dtype="float32")
    source, _ = pair_batch(ours.config)
    expected = theirs.generate(
        input_ids=torch.tensor(source).long(),
        attention_mask=torch.tensor(source != ours.config.pad_id).long(),
        num_beams=3,
        length_penalty=1.0,
        max_length=13,
        forced_bos_token_id=7,
        forced_eos_token_id=ours.config.eos_id,
        bad_words_ids=[[ours.config.pad_id]],
    ).numpy()[:, 1:]
    search = compiled(translation_function(Search(3, 1.0, scoring="transformers"), ours), ours)
    inputs = source, np.full(len(source), 12, "int32"), np.full((len(source), 1), 7, "int32")
    found = ops.convert_to_numpy(search(*map(ops.convert_to_tensor, inputs))[0])[:, 0]
    for mine, other in zip(found.tolist(), expected.tolist(), strict=True):
        assert mine[0] == 7
        assert until_end(mine, ours.config) == until_end(other, ours.config)


@pytest.mark.once("weights are read as arrays")
def test_a_bare_bart(tmp_path):
    """`facebook/bart-base`: names without a prefix, and no bias of the logits; older files more."""
    torch.manual_seed(0)
    theirs = bart().eval()
    fill(theirs)
    theirs.model.save_pretrained(tmp_path)
    more = {f"{side}.version": np.ones(1, "float32") for side in ("encoder", "decoder")}
    edit(tmp_path, lambda tensors: tensors.update(more))
    ours = read_model(tmp_path, dtype="float32")
    assert not ours.config.output_bias and ours.config.tie_output
    write_model(tmp_path / "again", ours)
    again = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "again").eval()
    source, target = pair_batch(ours.config)
    mask = torch.tensor(source != ours.config.pad_id).long()
    inputs = dict(input_ids=torch.tensor(source), decoder_input_ids=torch.tensor(target))
    with torch.no_grad():
        expected = [x(**inputs, attention_mask=mask).logits for x in (theirs, again)]
    found = ops.convert_to_numpy(ours({"source_ids": source, "target_ids": target}))
    for logits in expected:
        np.testing.assert_allclose(found, logits, atol=1e-4, rtol=1e-4)


@pytest.mark.once("weights are read as arrays")
def test_tables_that_should_be_tied(tmp_path):
    """Of different tables, `tie_word_embeddings` decides whether they are right."""
    mbart(tie_word_embeddings=False).save_pretrained(tmp_path)
    assert not read_model(tmp_path).config.share_embeddings
    configure(tmp_path, tie_word_embeddings=True)
    with pytest.raises(ValueError, match="embed_tokens.weight and model.shared.weight .* equal"):
        read_model(tmp_path)
    configure(tmp_path, tie_word_embeddings=False)
    edit(tmp_path, lambda tensors: tensors.pop("model.encoder.embed_tokens.weight"))
    with pytest.raises(ValueError, match="lack model.encoder.embed_tokens.weight"):
        read_model(tmp_path)
