"""Whisper of `transformers`: the same logits and greedy tokens, and the same weights back."""

import numpy as np
import pytest
import torch
import transformers
from keras import ops
from safetensors.numpy import load_file

from keras_transformer.backend import compiled
from keras_transformer.hub.hugging_face_checkpoint import read_model, write_model
from keras_transformer.running.search_functions import translation_function
from keras_transformer.search import Search
from tests.backends import cases

SIZES = dict(d_model=16, encoder_layers=2, decoder_layers=2, encoder_ffn_dim=24)
SIZES |= dict(encoder_attention_heads=4, decoder_attention_heads=4, decoder_ffn_dim=24)
SIZES |= dict(vocab_size=31, num_mel_bins=7, max_source_positions=12, max_target_positions=20)
SIZES |= dict(pad_token_id=29, bos_token_id=29, eos_token_id=29, decoder_start_token_id=30)
MODELS = {
    "plain": {},
    "padding-of-its-own": dict(pad_token_id=0, activation_function="gelu_new"),
    "unequal": dict(
        decoder_attention_heads=2, decoder_ffn_dim=40, pad_token_id=0, activation_function="relu"
    ),
    "wide": dict(d_model=24, encoder_layers=1, decoder_layers=3, num_mel_bins=5),
}


@pytest.fixture(scope="module", params=cases(MODELS, "unequal"))
def pair(request, tmp_path_factory):
    """A random model of `transformers`, its folder, and ours read from there."""
    torch.manual_seed(1)
    config = transformers.WhisperConfig(**SIZES | MODELS[request.param], begin_suppress_tokens=None)
    theirs = transformers.WhisperForConditionalGeneration(config).eval()
    with torch.no_grad():
        for name, weight in theirs.named_parameters():
            weight.normal_(float("norm" in name and name.endswith("weight")), 0.3)
    folder = tmp_path_factory.mktemp(request.param)
    theirs.save_pretrained(folder)
    return theirs, folder, read_model(folder, dtype="float32")


def features(config, frames=None, rows=3):
    shape = rows, frames or config.max_frames, config.num_mels
    return np.random.default_rng(0).standard_normal(shape).astype("float32")


def test_encoder_and_logits(pair):
    theirs, _, ours = pair
    clips = features(ours.config)
    target = np.random.default_rng(1).integers(1, 28, (3, 6)).astype("int32")
    with torch.no_grad():
        expected = theirs(
            input_features=torch.tensor(clips).transpose(1, 2),
            decoder_input_ids=torch.tensor(target).long(),
        )
    memory = ours.encoder(ours.source_embedding(ops.convert_to_tensor(clips)))
    found = ops.convert_to_numpy(memory)
    np.testing.assert_allclose(found, expected.encoder_last_hidden_state, atol=1e-4, rtol=1e-4)
    logits = ops.convert_to_numpy(ours({"features": clips, "target_ids": target}))
    np.testing.assert_allclose(logits, expected.logits, atol=1e-4, rtol=1e-4)


def greedy(theirs, clips, room):
    """The plain loop: a full pass for each token."""
    config = theirs.config
    clips = torch.tensor(clips).transpose(1, 2)
    ids = torch.full((len(clips), 1), config.decoder_start_token_id)
    for _ in range(room):
        with torch.no_grad():
            scores = theirs(input_features=clips, decoder_input_ids=ids).logits[:, -1]
        scores[:, config.decoder_start_token_id] = -torch.inf
        if config.pad_token_id != config.eos_token_id:
            scores[:, config.pad_token_id] = -torch.inf
        ids = torch.cat([ids, scores.argmax(-1, keepdim=True)], dim=1)
    return ids[:, 1:].tolist()


def until_end(ids, eos_id):
    return ids[: ids.index(eos_id)] if eos_id in ids else ids


def test_greedy_search(pair):
    theirs, _, ours = pair
    clips, room, eos_id = features(ours.config), 12, ours.config.eos_id
    search = compiled(translation_function(Search(1, max_extra_length=room + 1), ours), ours)
    limits = ops.convert_to_tensor(np.full(3, room + 1, "int32"))
    found = ops.convert_to_numpy(search(ops.convert_to_tensor(clips), limits)[0])[:, 0]
    for mine, other in zip(found.tolist(), greedy(theirs, clips, room), strict=True):
        assert until_end(mine[:room], eos_id) == until_end(other, eos_id)


def test_round_trip(pair, tmp_path):
    theirs, folder, ours = pair
    write_model(tmp_path, ours)
    before, after = (load_file(x / "model.safetensors") for x in (folder, tmp_path))
    assert set(before) == set(after)
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value)
    again = type(theirs).from_pretrained(tmp_path).eval()
    inputs = dict(input_features=torch.tensor(features(ours.config)).transpose(1, 2))
    inputs["decoder_input_ids"] = torch.tensor([[30, 4, 5]] * 3)
    with torch.no_grad():
        np.testing.assert_array_equal(again(**inputs).logits, theirs(**inputs).logits)
