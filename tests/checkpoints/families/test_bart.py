"""Marian, M2M-100, mBART and Pegasus: the same logits and searches, the same weights back."""

import numpy as np
import pytest
import torch
import transformers
from keras import ops

from keras_transformer.backend import compiled
from keras_transformer.checkpoints.hugging_face import read_model
from keras_transformer.inference.search_functions import translation_function
from keras_transformer.search import Search
from tests.backends import cases
from tests.checkpoints.families.parity import (
    BART,
    VOCABULARY,
    EncoderDecoderParity,
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


def pegasus():
    sizes = BART | dict(activation_function="relu", scale_embedding=True)
    config = transformers.PegasusConfig(**sizes, decoder_start_token_id=0)
    return transformers.PegasusForConditionalGeneration(config)


MODELS = {
    "marian": lambda: marian(activation_function="swish", scale_embedding=True),
    "marian-unscaled-gelu": lambda: marian(d_model=24, encoder_layers=1, decoder_layers=3),
    "marian-two-vocabularies": lambda: marian(
        decoder_vocab_size=VOCABULARY - 12,
        share_encoder_decoder_embeddings=False,
        pad_token_id=40,
        decoder_start_token_id=40,
    ),
    "m2m_100": m2m,
    "m2m_100-wide": lambda: m2m(d_model=24, encoder_ffn_dim=40, decoder_ffn_dim=40, pad_token_id=0),
    "mbart": lambda: mbart(scale_embedding=True),
    "mbart-relu": lambda: mbart(activation_function="relu", decoder_layers=1),
    "pegasus": pegasus,
}


@pytest.fixture(scope="module", params=cases(MODELS, "marian-two-vocabularies", "m2m_100", "mbart"))
def pair(request, tmp_path_factory):
    """A random model of `transformers`, its folder, and ours read from there."""
    torch.manual_seed(0)
    folder, is_learned = tmp_path_factory.mktemp(request.param), request.param.startswith("mbart")
    return read_pair(MODELS[request.param]().eval(), folder, is_sinusoidal=not is_learned)


class TestBART(EncoderDecoderParity):
    """Families with BART's blocks: sinusoids or learned positions, one vocabulary or two."""


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
